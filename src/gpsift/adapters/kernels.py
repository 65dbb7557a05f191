"""Read covariance functions of other libraries as sums of gpsift's kernels.

An adapter has one table. For each kernel class of the library it has our kernel and the attributes that hold its
parameters:

    KERNELS = KernelReader(
        {
            gk.Sum: SumOf("kernels"),
            gk.Product: ProductOf("kernels"),
            gk.Matern52: radial(Matern52, lengthscale="lengthscales", signal_var="variance"),
            gk.White: white(variance="variance"),
        }
    )
    kernel, white_var = KERNELS.convert(model.kernel, n_features)

A kernel is read as a list of terms. Products are multiplied out: constants are factors, and the product of two squared
exponentials is one, with 1 / l^2 = 1 / l_1^2 + 1 / l_2^2 for each column. For a column that a
term does not depend on, the length-scale is infinite, or the variance of the slope is 0. A kernel that has no such form
raises `NoClosedForm`, and the adapter differentiates the predictions of the model instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from gpsift.kernels import Constant, Kernel, Linear, Matern32, Matern52, SquaredExponential, Sum
from gpsift.kernels.radial import Radial


class NoClosedForm(ValueError):
    """Error: a kernel, or another part of a model, has no equivalent in gpsift."""


@dataclass(frozen=True)
class White:
    """White noise as a term of a kernel: its covariance is `variance` for a point with itself, and otherwise 0."""

    variance: float


Term = Kernel | White
# The field that multiplies a term, for terms in which it is not signal_var.
FACTORS = {White: "variance", Constant: "constant_var", Linear: "linear_var"}
# The kernels of a class with a parameter `nu`, the order.
MATERN: dict[float, Callable[..., Radial]] = {1.5: Matern32, 2.5: Matern52, np.inf: SquaredExponential}


@dataclass(frozen=True, eq=False)
class Columns:
    """The coordinates z_k = scale_k x_index(k) that a kernel depends on; a `scale` of None is 1 for all."""

    index: np.ndarray
    n_features: int
    scale: np.ndarray | None = None

    def select(self, which: Any) -> Columns:
        """Keep some of the coordinates."""
        scale = None if self.scale is None else np.atleast_1d(self.scale[which])
        return Columns(np.atleast_1d(self.index[which]), self.n_features, scale)

    def select_inputs(self, which: Any) -> Columns:
        """Return columns of the inputs, whatever the present coordinates."""
        return Columns(np.arange(self.n_features)[which], self.n_features)

    def multiply(self, factor: np.ndarray) -> Columns:
        """Multiply the coordinates by factors."""
        scale = np.ones(self.index.size) if self.scale is None else self.scale
        return replace(self, scale=scale * factor)

    def scatter(self, values: np.ndarray, elsewhere: float) -> np.ndarray:
        """Return one value for each input: `values` for these columns, `elsewhere` for all others."""
        if np.unique(self.index).size < self.index.size:
            raise NoClosedForm("a kernel that takes a column twice")
        if values.ndim > 1 or values.size not in (1, self.index.size):
            raise NoClosedForm(f"{values.size} parameters for {self.index.size} columns")
        scattered = np.full(self.n_features, elsewhere)
        scattered[self.index] = values
        return scattered


# A row of the table maps a reader, a kernel of the library and its columns to terms, whose sum is the kernel.
Row = Callable[["KernelReader", Any, Columns], list[Term]]


class Leaf:
    """A row of the table for a kernel with parameters of its own.

    Parameters
    ----------
    build : callable
        Maps columns and the values of parameters, by name, to a term.
    **names : str
        For each of these parameters, the attribute of the library's kernel.
    """

    def __init__(self, build: Callable[..., Term], **names: str):
        self.build, self.names = build, names

    def __call__(self, reader: KernelReader, kernel: Any, columns: Columns) -> list[Term]:
        values = {ours: reader.value(getattr(kernel, theirs)) for ours, theirs in self.names.items()}
        return [self.build(columns, **values)]


class Composite:
    """A row of the table for a kernel made of others, which are in one attribute, a list, or in several."""

    def __init__(self, *names: str):
        self.names = names

    def parts_of(self, kernel: Any) -> list[Any]:
        """Return the kernels from which a kernel is made."""
        found = [getattr(kernel, name) for name in self.names]
        return found if len(found) > 1 else list(found[0])


class SumOf(Composite):
    """A row of the table for sums."""

    def __call__(self, reader: KernelReader, kernel: Any, columns: Columns) -> list[Term]:
        return [term for part in self.parts_of(kernel) for term in reader.terms(part, columns)]


class ProductOf(Composite):
    """A row of the table for products, which are multiplied out."""

    def __call__(self, reader: KernelReader, kernel: Any, columns: Columns) -> list[Term]:
        first, *others = (reader.terms(part, columns) for part in self.parts_of(kernel))
        for other in others:
            first = [_multiply(a, b) for a in first for b in other]
        return first


def radial(kind: Callable[..., Radial], **names: str) -> Leaf:
    """Make the row of a radial kernel from the attributes of its `lengthscale`, `signal_var` and `shape`."""
    return Leaf(partial(radial_term, kind), **names)


def matern(*, lengthscale: str) -> Row:
    """Make the row of a Matern kernel whose attribute `nu` is its order."""

    def read(reader: KernelReader, kernel: Any, columns: Columns) -> list[Term]:
        if kernel.nu not in MATERN:
            raise NoClosedForm(f"{type(kernel).__name__}(nu={kernel.nu:g})")
        return radial(MATERN[kernel.nu], lengthscale=lengthscale)(reader, kernel, columns)

    return read


def linear(*, variance: str) -> Leaf:
    """Make the row of a linear kernel."""
    return Leaf(linear_term, variance=variance)


def constant(*, variance: str) -> Leaf:
    """Make the row of a constant kernel."""
    return Leaf(constant_term, variance=variance)


def white(*, variance: str) -> Leaf:
    """Make the row of white noise."""
    return Leaf(white_term, variance=variance)


def radial_term(
    kind: Callable[..., Radial], columns: Columns, lengthscale: np.ndarray, **parameters: np.ndarray
) -> Radial:
    """Make a radial kernel with one length-scale for all of the columns, or one for each."""
    value, others = np.squeeze(lengthscale), {name: number(value) for name, value in parameters.items()}
    if columns.scale is not None:
        with np.errstate(divide="ignore"):  # the kernel does not depend on a coordinate that is multiplied by 0
            value = value / np.abs(columns.scale)
        value = value[0] if np.all(value == value[0]) else value
    if value.ndim == 0 and columns.index.size == columns.n_features > 1:
        return kind(float(value), shared=True, **others)
    return kind(columns.scatter(value, elsewhere=np.inf), **others)


def linear_term(columns: Columns, variance: Any = 1.0) -> Linear:
    """Make a linear kernel with one variance of the slopes for all of the columns, or one for each."""
    scale = 1.0 if columns.scale is None else columns.scale**2
    return Linear(columns.scatter(np.squeeze(variance) * scale, elsewhere=0.0))


def constant_term(_: Columns, variance: np.ndarray) -> Constant:
    """Make a constant kernel."""
    return Constant(number(variance))


def white_term(_: Columns, variance: np.ndarray) -> White:
    """Make white noise."""
    return White(number(variance))


def number(value: Any) -> float:
    """Return the value of a parameter that has one element."""
    if np.size(value) != 1:
        raise NoClosedForm(f"a parameter of shape {np.shape(value)} in place of a number")
    return float(np.squeeze(value))


@dataclass(frozen=True)
class KernelReader:
    """A reader of the kernels of one library, by a table of those that are known.

    Parameters
    ----------
    table : mapping of class to row
        Subclasses of a class are not looked up: a subclass may compute something else.
    value : callable
        Maps a parameter of the library to an array of doubles.
    columns : callable
        Maps a kernel and the columns of its arguments to the columns that it depends on.
    """

    table: Mapping[type, Row]
    value: Callable[[Any], np.ndarray] = field(default=partial(np.asarray, dtype=float), kw_only=True)
    columns: Callable[[Any, Columns], Columns] = field(default=lambda _, columns: columns, kw_only=True)

    def convert(self, kernel: Any, n_features: int, *, name: str | None = None) -> tuple[Kernel, float]:
        """Return the covariance function as a sum of our kernels, and the variance of the white noise in it.

        `NoClosedForm` names an unknown part, and the kernel by `name`, by default its class.
        """
        terms = self.terms(kernel, Columns(np.arange(n_features), n_features))
        return add_up(terms, type(kernel).__name__ if name is None else name)

    def terms(self, kernel: Any, columns: Columns) -> list[Term]:
        """Return the terms whose sum is the kernel, called with these columns."""
        row = self.row(kernel)
        return row(self, kernel, self.columns(kernel, columns))

    def row(self, kernel: Any) -> Row:
        """Return the row of the table for a kernel."""
        row = self.table.get(type(kernel))
        if row is None:
            raise NoClosedForm(type(kernel).__name__)
        return row

    def white_var(self, kernel: Any) -> float:
        """Return the variance of white noise in a kernel that need not have a closed form.

        Noise in products is found if the other factors are constants; otherwise it counts as part of the function.
        """
        row = self.table.get(type(kernel))
        if isinstance(row, SumOf):
            return sum(self.white_var(part) for part in row.parts_of(kernel))
        if isinstance(row, ProductOf):
            parts = row.parts_of(kernel)
            factors = [self._leaf_value(part, constant_term) for part in parts]
            rest = [part for part, factor in zip(parts, factors, strict=True) if factor is None]
            known = [factor for factor in factors if factor is not None]
            return math.prod(known) * self.white_var(rest[0]) if len(rest) == 1 else 0.0
        found = self._leaf_value(kernel, white_term)
        return 0.0 if found is None else found

    def _leaf_value(self, kernel: Any, build: Callable[..., Term]) -> float | None:
        """Return the parameter of a constant kernel or of white noise; None for other kernels."""
        row = self.table.get(type(kernel))
        if not isinstance(row, Leaf) or row.build is not build:
            return None
        return number(self.value(getattr(kernel, row.names["variance"])))

    def leaves(self, kernel: Any) -> Iterator[Any]:
        """Yield the parameters of all parts of a kernel, in the library's own types."""
        row = self.row(kernel)
        if isinstance(row, Composite):
            for part in row.parts_of(kernel):
                yield from self.leaves(part)
        elif isinstance(row, Leaf):
            yield from (getattr(kernel, name) for name in row.names.values())


def _multiply(a: Term, b: Term) -> Term:
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Constant):
            return scale_term(other, one.constant_var)
        if isinstance(one, White) and isinstance(other, White | Radial):
            return White(one.variance * factor_of_term(other))
    if isinstance(a, SquaredExponential) and isinstance(b, SquaredExponential):
        with np.errstate(divide="ignore"):  # columns on which neither depends
            lengthscale = 1.0 / np.sqrt(1.0 / np.square(a.lengthscale) + 1.0 / np.square(b.lengthscale))
        return SquaredExponential(lengthscale, a.signal_var * b.signal_var, shared=a.shared and b.shared)
    raise NoClosedForm(f"a product of {type(a).__name__} and {type(b).__name__}")


def _factor_name(term: Term) -> str:
    return next((name for kind, name in FACTORS.items() if isinstance(term, kind)), "signal_var")


def factor_of_term(term: Term) -> Any:
    """Return the parameter that multiplies a term: its variance, or the variances of slopes."""
    return getattr(term, _factor_name(term))


def scale_term(term: Term, factor: float) -> Term:
    """Multiply a term by a number."""
    return replace(term, **{_factor_name(term): factor * factor_of_term(term)})


def add_up(terms: Iterable[Term], name: str) -> tuple[Kernel, float]:
    """Return the sum of the terms of the kernel `name`, and the variance of the white noise among them."""
    terms = list(terms)
    noise_var = sum(term.variance for term in terms if isinstance(term, White))
    functions = tuple(term for term in terms if isinstance(term, Kernel) and np.any(factor_of_term(term)))
    if not functions:
        raise NoClosedForm(f"{name}, which has no part that depends on X")
    values = [np.asarray(v, dtype=float) for term in functions for v in term.values.values()]
    if any(np.any(np.isnan(value) | (value < 0)) for value in values):  # as after a fit that diverged
        raise NoClosedForm(f"{name}, some of whose parameters are negative or not numbers")
    return (functions[0] if len(functions) == 1 else Sum(functions)), float(noise_var)
