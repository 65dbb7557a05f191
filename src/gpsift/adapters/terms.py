"""Covariance functions of other libraries as sums of our kernels: what all their readers share.

A reader gives the terms of a kernel, each on some of the columns; here they are multiplied out, scaled and added up. A
column that a term does not look at has an infinite length-scale there, or a slope without variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpsift.kernels import Constant, Kernel, Linear, SquaredExponential, Sum
from gpsift.kernels.radial import Radial


class NoClosedForm(ValueError):
    """A kernel that has no counterpart here."""


@dataclass(frozen=True)
class White:
    """Noise: `variance` between a point and itself, nothing between two."""

    variance: float


Term = Kernel | White
# What multiplies a term; the others call it signal_var.
FACTORS = {White: "variance", Constant: "constant_var"}


def reader_of(kernel: Any, readers: Mapping[type, Callable[..., list[Any]]]) -> Callable[..., list[Any]]:
    """What reads the terms of a kernel of this class."""
    # By the class itself, not by what it inherits: a subclass may compute something else.
    reader = readers.get(type(kernel))
    if reader is None:
        raise NoClosedForm(type(kernel).__name__)
    return reader


def radial(
    kind: Callable[..., Radial], lengthscale: Any, columns: np.ndarray, n_features: int, **parameters: float
) -> Radial:
    """A radial kernel of some of the columns, with one length-scale for all of them or one for each."""
    value = np.squeeze(np.asarray(lengthscale, dtype=float))
    if value.ndim == 0 and columns.size == n_features > 1:
        return kind(float(value), shared=True, **parameters)
    return kind(_spread(value, columns, n_features, elsewhere=np.inf), **parameters)


def linear(variance: Any, columns: np.ndarray, n_features: int) -> Linear:
    """A linear kernel of some of the columns, with one variance of the slopes for all of them or one for each."""
    return Linear(_spread(np.squeeze(np.asarray(variance, dtype=float)), columns, n_features, elsewhere=0.0))


def _spread(values: np.ndarray, columns: np.ndarray, n_features: int, elsewhere: float) -> np.ndarray:
    if np.unique(columns).size < columns.size:
        raise NoClosedForm("a kernel that takes a column twice")
    if values.ndim > 1 or values.size not in (1, columns.size):
        raise NoClosedForm(f"{values.size} parameters for {columns.size} columns")
    every = np.full(n_features, elsewhere)
    every[columns] = values
    return every


def product(first: Iterable[Term], second: Iterable[Term]) -> list[Term]:
    """Terms of the product of two sums."""
    second = list(second)
    return [_product_of_two(a, b) for a in first for b in second]


def _product_of_two(a: Term, b: Term) -> Term:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Constant):
            return scaled(other, one.constant_var)
        if isinstance(one, White) and isinstance(other, White | Radial):
            return White(one.variance * factor_of(other))
    if isinstance(a, SquaredExponential) and isinstance(b, SquaredExponential):
        with np.errstate(divide="ignore"):  # columns that neither looks at
            lengthscale = 1.0 / np.sqrt(1.0 / np.square(a.lengthscale) + 1.0 / np.square(b.lengthscale))
        return SquaredExponential(lengthscale, a.signal_var * b.signal_var, shared=a.shared and b.shared)
    raise NoClosedForm(f"a product of {type(a).__name__} and {type(b).__name__}")


def scaled(term: Term, factor: float) -> Term:
    """A term times a number."""
    if isinstance(term, Linear):
        return replace(term, linear_var=factor * np.asarray(term.linear_var))
    name = FACTORS.get(type(term), "signal_var")
    return replace(term, **{name: factor * getattr(term, name)})  # type: ignore[type-var]


def factor_of(term: Term) -> float:
    """What multiplies a term that is the same everywhere."""
    return float(getattr(term, FACTORS.get(type(term), "signal_var")))


def added_up(terms: Iterable[Term], named: str) -> tuple[Kernel, float]:
    """The sum of the terms, and the variance of the white noise among them.

    Parameters
    ----------
    terms : iterable of Term
    named : str
        What the user calls the kernel.
    """
    terms = list(terms)
    noise_var = sum(term.variance for term in terms if isinstance(term, White))
    functions = tuple(term for term in terms if isinstance(term, Kernel) and _is_there(term))
    if not functions:
        raise NoClosedForm(f"{named}, which has no part that depends on X")
    for term in functions:
        _refuse_impossible(term, named)
    return (functions[0] if len(functions) == 1 else Sum(functions)), float(noise_var)


def _is_there(term: Kernel) -> bool:
    return bool(np.any(term.linear_var)) if isinstance(term, Linear) else factor_of(term) != 0.0


def _refuse_impossible(term: Kernel, named: str) -> None:
    """Refuse parameters that no covariance has, such as those of a fit that went astray."""
    values = [np.asarray(value, dtype=float) for value in term.values.values()]  # type: ignore[attr-defined]
    if any(np.any(np.isnan(value)) or np.any(value < 0) for value in values):
        raise NoClosedForm(f"{named}, some of whose parameters are negative or not numbers")
