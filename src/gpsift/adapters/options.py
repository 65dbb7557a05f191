"""Options that the readers of several libraries take, checked in one way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Self, TypeVar, get_args

import numpy as np

from gpsift.adapters.terms import NoClosedForm

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
