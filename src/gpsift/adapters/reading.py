"""Read options, training inputs and noise of models, for the adapters of all libraries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Self, TypeVar, get_args

import numpy as np

from gpsift._utils.validation import default_names, read_features
from gpsift.adapters.kernels import NoClosedForm
from gpsift.likelihoods import Likelihood
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.affine import Affine
from gpsift.reference.inputs import Inputs, same_rows
from gpsift.reference.response import Predictive

T = TypeVar("T")

# The remedy in messages about models that cannot be read.
AS_FUNCTION = '`as_reference(lambda X: (mean, var), family="gaussian", X_train=X)`'


@dataclass(frozen=True)
class Options:
    """The options of `as_reference`; the `reference_of` of each library takes some of them."""

    output: Any = None
    noise: Any = None
    derivatives: str = "auto"
    X_train: Any = None
    feature_names: Sequence[str] | None = None
    likelihood: Any = None
    output_names: Sequence[str] | None = None

    def check(self, derivatives: Any, *noise_words: str) -> Self:
        """Refuse an option `derivatives` that is not in a `Literal`, and noise that is no variance; return self."""
        check_derivatives(self.derivatives, derivatives)
        if self.noise is not None:
            check_noise(self.noise, *noise_words)
        return self

    @property
    def are_defaults(self) -> bool:
        """Whether no option was given."""
        return all(getattr(self, field.name) is field.default for field in fields(self))


def output_index(model: Any, output: Any, n_outputs: int) -> int:
    """Check the number of the target to rank; it is required where there are several."""
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
    """Refuse a `noise` that is neither a variance nor one of the words that a reader accepts."""
    is_variance = isinstance(noise, Real) and not isinstance(noise, bool) and 0.0 <= float(noise) < np.inf
    if not is_variance and not (isinstance(noise, str) and noise in words):
        listed = ", ".join(f'"{word}"' for word in words)
        raise ValueError(f"`noise` must be {f'{listed} or ' if words else ''}a variance, got {noise!r}.")


def check_derivatives(derivatives: Any, known: Any) -> None:
    """Refuse an option `derivatives` that is not in `known`, a `Literal`."""
    *others, last = (f'"{word}"' for word in get_args(known))
    if derivatives not in get_args(known):
        raise ValueError(f"`derivatives` must be {', '.join(others)} or {last}, got {derivatives!r}.")


def closed_form_or_none(
    read: Callable[[], T], model: Any, derivatives: str, otherwise: str = "automatic differentiation"
) -> T | None:
    """Read a model in closed form; return None where derivatives are computed by another method.

    `read` raises `NoClosedForm` where there is none. With ``derivatives="closed"`` this is an error, whose message
    names the method `otherwise`; with "auto" the result is None. With all other words `read` is not called.
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


def read_inputs(
    n_features: int,
    X_train: np.ndarray | None,
    *,
    names: Sequence[str] | None = None,
    known_names: Any = None,
    given: Any = None,
    categorical: tuple[int, ...] = (),
) -> Inputs:
    """Read the names and training inputs of a reference.

    `names` and `given`, the user's names and training inputs, take precedence over the model's `known_names` and
    `X_train`. `categorical` are the columns that the model treats as categories.
    """
    labels = known_names if names is None else names
    are_given = labels is not None
    labels = tuple(map(str, labels)) if are_given else default_names(n_features)
    if len(labels) != n_features:
        raise ValueError(
            f"`feature_names` has {len(labels)} names but the model has {n_features} features. Give one name for each."
        )
    if given is None:
        return Inputs(labels, are_given, X_train, categorical)
    values, _ = read_features(given, name="X_train")
    if values.shape[1] != n_features:
        raise ValueError(
            f"`X_train` has {values.shape[1]} columns but the model has {n_features} features. Pass the columns "
            "that it was fitted on."
        )
    is_own = same_rows(values, X_train)
    return Inputs(labels, are_given, X_train if is_own else values, categorical, is_own=is_own)


def compose_steps(steps: Sequence[Any], read: Callable[[Any, int], Affine | None], n_inputs: int) -> Affine | None:
    """Compose the maps of columns that transformers apply one after another.

    `read` takes a step and its number of columns; it returns None for a step that does more than shift, scale and
    select columns, and the composition is then None, too.
    """
    total = Affine.scaling(0.0, 1.0, n_inputs)
    for step in steps:
        affine = read(step, total.x_center.size)
        if affine is None:
            return None
        total = total.then(affine)
    return total


def read_only(values: Any) -> np.ndarray:
    """Return points of a model as a read-only array of doubles, because rankings give users access to them."""
    array = np.asarray(values, dtype=float).view()
    array.flags.writeable = False
    return array


@dataclass(frozen=True)
class NormalNoise:
    """A function of latent mean and variance: the distribution of an observation with noise N(0, `var`)."""

    var: float

    def __call__(self, latent_mean: np.ndarray, latent_var: np.ndarray) -> Distribution:
        return families.Gaussian(latent_mean, latent_var + self.var)


@dataclass(frozen=True)
class LikelihoodPredictive:
    """A function of latent mean and variance: the distribution of an observation by a likelihood, with white noise."""

    likelihood: Likelihood
    white_var: float = 0.0

    def __call__(self, latent_mean: np.ndarray, latent_var: np.ndarray) -> Distribution:
        return self.likelihood.predictive(latent_mean, latent_var + self.white_var, np.ones_like(latent_mean))


@dataclass(frozen=True)
class ObservationModel:
    """The model of an observation given the latent function: one of gpsift's likelihoods, or normal noise.

    White noise of the kernel is added to `noise_var`, unless the user passed the latter (`is_given`).
    """

    likelihood: Likelihood | None = None
    noise_var: float = 0.0
    is_given: bool = False
    notices: tuple[str, ...] = ()

    def predictive(self, white_var: float = 0.0) -> Predictive:
        """Return the function from latent mean and variance to an observation, with the white noise of the kernel."""
        if self.likelihood is not None:
            return LikelihoodPredictive(self.likelihood, white_var)
        return NormalNoise(self.noise_var if self.is_given else self.noise_var + white_var)

    def fields(self, inputs: Inputs, white_var: float = 0.0) -> dict[str, Any]:
        """Return the fields of a reference with these inputs."""
        is_target = self.likelihood is None or self.likelihood.standardises_target
        return {
            "predictive": self.predictive(white_var),
            "inputs": inputs,
            "mean_of": "the target" if is_target else "the latent function",
            "notices": self.notices,
        }


@dataclass(frozen=True)
class LikelihoodReader:
    """A reader of the likelihoods of one library, by tables of those that are known.

    Subclasses of the classes in the tables are not looked up: a subclass may predict something else.

    Parameters
    ----------
    normal : mapping of class to callable
        Maps a likelihood with normal noise to the variance of that noise.
    others : mapping of class to callable
        Maps a likelihood to one of gpsift's, or to None where its link is not known.
    listed, advice : str
        For messages: the known likelihoods, and a sentence with the remedy for others.
    describe : callable
        Maps a likelihood to its name in messages.
    """

    normal: Mapping[type, Callable[[Any], float]]
    others: Mapping[type, Callable[[Any], Likelihood | None]]
    listed: str
    advice: str
    describe: Callable[[Any], str] = lambda likelihood: type(likelihood).__name__

    def knows(self, likelihood: Any) -> bool:
        """Whether the class of a likelihood is in one of the tables."""
        return type(likelihood) in self.normal or type(likelihood) in self.others

    def read(self, likelihood: Any, noise: float | None = None) -> ObservationModel:
        """Read the observation model of a likelihood, with the noise variance that the user gave, if any."""
        kind = type(likelihood)
        if kind in self.normal:
            if noise is not None:
                return ObservationModel(noise_var=float(noise), is_given=True)
            return ObservationModel(noise_var=self.normal[kind](likelihood))
        ours = self.others[kind](likelihood) if kind in self.others else None
        if ours is None:
            raise TypeError(
                f"The likelihood {self.describe(likelihood)} is not known here. Known are {self.listed}. {self.advice}"
            )
        if noise is not None:
            raise ValueError(
                f"`noise` is for normal noise; the likelihood of this model is {kind.__name__}, and a {kind.__name__} "
                "has none. Leave `noise` out."
            )
        return ObservationModel(ours)
