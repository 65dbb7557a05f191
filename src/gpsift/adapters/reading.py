"""Options of readers, inputs of references and noise of observations: what the readers of all libraries share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, NamedTuple, Self, TypeVar, get_args

import numpy as np

from gpsift._utils.validation import default_names, read_features
from gpsift.adapters.kernels import NoClosedForm
from gpsift.likelihoods import Likelihood
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions import Family
from gpsift.reference.inputs import Inputs, same_rows
from gpsift.reference.response import Predictive

T = TypeVar("T")


@dataclass(frozen=True)
class Options:
    """How a model is to be read; each library's `reference_of` takes some of these."""

    output: Any = None
    noise: Any = None
    derivatives: str = "auto"
    X_train: Any = None
    feature_names: Sequence[str] | None = None
    likelihood: Any = None
    output_names: Sequence[str] | None = None

    def checked(self, ways: Any, *noise_words: str) -> Self:
        """Refuse derivatives that are not among `ways`, a `Literal`, and noise that is none; returns itself."""
        check_derivatives(self.derivatives, ways)
        if self.noise is not None:
            check_noise(self.noise, *noise_words)
        return self

    @property
    def are_defaults(self) -> bool:
        """Whether nothing was asked for."""
        return all(getattr(self, field.name) is field.default for field in fields(self))


def output_index(model: Any, output: Any, n_outputs: int) -> int:
    """Which of the targets of a model is to be ranked; it must be said where there are several."""
    if output is None and n_outputs > 1:
        raise ValueError(
            f"This {type(model).__name__} predicts {n_outputs} targets, and each has a ranking of its own. Choose one: "
            f"`as_reference(model, output=0)`, up to {n_outputs - 1}."
        )
    if output is None:
        return 0
    if isinstance(output, bool) or not isinstance(output, int | np.integer) or not 0 <= output < n_outputs:
        raise ValueError(f"`output` must be a whole number from 0 to {n_outputs - 1}, got {output!r}.")
    return int(output)


def check_noise(noise: Any, *words: str) -> None:
    """Refuse a `noise` that is neither a variance nor one of the words that a reader takes for one."""
    is_variance = isinstance(noise, Real) and not isinstance(noise, bool) and 0.0 <= float(noise) < np.inf
    if not is_variance and not (isinstance(noise, str) and noise in words):
        listed = ", ".join(f'"{word}"' for word in words)
        raise ValueError(f"`noise` must be {f'{listed} or ' if words else ''}a variance, got {noise!r}.")


def check_derivatives(derivatives: Any, known: Any) -> None:
    """Refuse a way of making derivatives that is not among those of `known`, a `Literal`."""
    *others, last = (f'"{way}"' for way in get_args(known))
    if derivatives not in get_args(known):
        raise ValueError(f"`derivatives` must be {', '.join(others)} or {last}, got {derivatives!r}.")


def closed_form_or_none(
    read: Callable[[], T], model: Any, derivatives: str, otherwise: str = "automatic differentiation"
) -> T | None:
    """What `read` makes of a model in closed form; None where derivatives are to be made in another way.

    Parameters
    ----------
    read : callable
        Raises `NoClosedForm` where there is none, which is an error with ``derivatives="closed"``.
    model : object
    derivatives : str
        "auto" and "closed" look for a closed form, all other words do not.
    otherwise : str
        What "auto" does where there is none.
    """
    if derivatives not in ("auto", "closed"):
        return None
    try:
        return read()
    except NoClosedForm as missing:
        if derivatives == "auto":
            return None
        raise NoClosedForm(
            f"This {type(model).__name__} has no closed form here ({missing}). Leave `derivatives` out for {otherwise}."
        ) from missing


def known_inputs(
    n_features: int,
    X_train: np.ndarray | None,
    *,
    names: Sequence[str] | None = None,
    known_names: Any = None,
    given: Any = None,
    categorical: tuple[int, ...] = (),
) -> Inputs:
    """The inputs of a reference.

    Parameters
    ----------
    n_features : int
    X_train : array (n, p) or None
        The training inputs that the model keeps.
    names : sequence of str, optional
        Those that the user gave.
    known_names : sequence of str, optional
        Those that the model knows.
    given : array or data frame (n, p), optional
        Training inputs that the user gave, which go before the model's own.
    categorical : tuple of int
        Columns that the model takes as categories.
    """
    labels, are_given = _read_names(names, known_names, n_features)
    if given is None:
        return Inputs(labels, are_given, X_train, categorical)
    values = _read_training_inputs(given, n_features)
    is_own = same_rows(values, X_train)
    return Inputs(labels, are_given, X_train if is_own else values, categorical, is_own=is_own)


def _read_training_inputs(given: Any, n_features: int) -> np.ndarray:
    values, _ = read_features(given, name="X_train")
    if values.shape[1] != n_features:
        raise ValueError(f"`X_train` has {values.shape[1]} columns but the model has {n_features} features.")
    return values


def _read_names(given: Sequence[str] | None, known: Any, n_features: int) -> tuple[tuple[str, ...], bool]:
    """Names of the features, those given, those that the model knows, or x1, ...; and whether the user chose them."""
    names = given if given is not None else known
    if names is None:
        return default_names(n_features), False
    names = tuple(str(name) for name in names)
    if len(names) != n_features:
        raise ValueError(f"`feature_names` has {len(names)} names but the model has {n_features} features.")
    return names, True


def read_only(values: Any) -> np.ndarray:
    """Points of a model as doubles; rankings hand them out, and nobody shall write into the user's model."""
    array = np.asarray(values, dtype=float).view()
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class NormalNoise:
    """A new observation of a normal latent value: the same with the variance of the noise added."""

    var: float

    def __call__(self, latent_mean: np.ndarray, latent_var: np.ndarray) -> Family:
        return families.Gaussian(latent_mean, latent_var + self.var)


@dataclass(frozen=True)
class Observed:
    """The same by a likelihood, which sees the latent value with the white noise of its kernel added."""

    likelihood: Likelihood
    white_var: float = 0.0

    def __call__(self, latent_mean: np.ndarray, latent_var: np.ndarray) -> Family:
        return self.likelihood.predictive(latent_mean, latent_var + self.white_var, np.ones_like(latent_mean))


class Noise(NamedTuple):
    """What is observed of a latent function, as soon as the variance of the kernel's white noise is known."""

    predictive: Callable[[float], Predictive]
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @classmethod
    def normal(cls, var: float, given: float | None, notices: tuple[str, ...] = ()) -> Noise:
        """Normal noise: that of the model, to which white noise is added, or the variance that the user gave."""
        return cls(lambda white: NormalNoise(var + white if given is None else float(given)), notices=notices)

    def fields(self, inputs: Inputs, white_var: float) -> dict[str, Any]:
        """The fields of a reference with these inputs."""
        predictive = self.predictive(white_var)
        return {"predictive": predictive, "inputs": inputs, "mean_of": self.mean_of, "notices": self.notices}
