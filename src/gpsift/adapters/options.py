"""Options that the readers of several libraries take, checked in one way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, TypeVar, get_args

import numpy as np

from gpsift.adapters.terms import NoClosedForm
from gpsift.user_arrays import default_names, read_features

T = TypeVar("T")


def identity_of(
    n_features: int,
    X_train: np.ndarray | None,
    *,
    names: Sequence[str] | None = None,
    known_names: Any = None,
    given: Any = None,
) -> dict[str, Any]:
    """Names and training inputs, as the fields of a reference.

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
    """
    feature_names, has_given_names = _read_names(names, known_names, n_features)
    inputs = X_train if given is None else _read_training_inputs(given, n_features)
    return {"feature_names": feature_names, "has_given_names": has_given_names, "X_train": inputs}


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
