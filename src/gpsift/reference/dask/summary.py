"""Summarise rows before a fit: extremes, means, standard deviations, and values to refuse.

Means and squared deviations of two sets of rows are added by the formulas of Chan, Golub and LeVeque (1983), which are
accurate where the mean is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpsift._utils.rows import Rows, Totals
from gpsift.likelihoods import Likelihood
from gpsift.reference.inputs import InputMoments, standard_units

# Values that are not finite, or too large to be squared, are refused when all rows have been seen.
UNCHECKED: Any = {"invalid": "ignore", "over": "ignore"}
NOWHERE = -1


@dataclass(frozen=True, eq=False)
class Spread(Totals):
    """The mean of n numbers or rows, and the sum of the squared deviations from it."""

    n: int
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        mean = values.mean(axis=0)
        return cls(len(values), mean, np.sum((values - mean) ** 2, axis=0))

    def __add__(self, other: Self) -> Self:
        n = self.n + other.n
        with np.errstate(**UNCHECKED):
            step = other.mean - self.mean
            mean = self.mean + step * (other.n / n)
            squares = self.squares + other.squares + step**2 * (self.n * other.n / n)
        return type(self)(n, mean, squares)

    @property
    def sd(self) -> np.ndarray:
        return np.sqrt(self.squares / self.n)


@dataclass(frozen=True, eq=False)
class Bounds(Totals):
    """The smallest and the largest value of each column, and the numbers of the first rows that have them."""

    n: int
    low: np.ndarray
    high: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> Self:
        lowest, highest = values.argmin(axis=0), values.argmax(axis=0)
        columns = np.arange(values.shape[1])
        return cls(len(values), values[lowest, columns], values[highest, columns], lowest, highest)

    def __add__(self, other: Self) -> Self:
        return type(self)(
            self.n + other.n,
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
            np.where(other.low < self.low, self.n + other.lowest, self.lowest),
            np.where(other.high > self.high, self.n + other.highest, self.highest),
        )

    @property
    def rows(self) -> np.ndarray:
        """Two rows: the smallest and the largest values of the columns."""
        return np.stack([self.low, self.high])


@dataclass(frozen=True, eq=False)
class MarkCounts(Totals):
    """The number of rows marked in each column, and the first one, `NOWHERE` where there is none."""

    n: int
    counts: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, marks: np.ndarray) -> Self:
        counts = marks.sum(axis=0)
        return cls(len(marks), counts, np.where(counts > 0, marks.argmax(axis=0), NOWHERE))

    def __add__(self, other: Self) -> Self:
        later = np.where(other.counts > 0, self.n + other.first, NOWHERE)
        first = np.where(self.counts > 0, self.first, later)
        return type(self)(self.n + other.n, self.counts + other.counts, first)


def mark_missing(rows: Rows) -> MarkCounts:
    """Mark the features of a chunk of rows that are not finite."""
    return MarkCounts.of(~np.isfinite(rows.X))


@dataclass(frozen=True, eq=False)
class Values(Totals):
    """The distinct values of each column, None for a column with more than `most`."""

    most: int
    columns: tuple[np.ndarray | None, ...]

    @classmethod
    def of(cls, X: np.ndarray, most: int) -> Self:
        # Some rows are sorted first, because sorting all rows of a column with many values takes long.
        few = (len(np.unique(column[: 10 * most])) <= most for column in X.T)
        columns = zip(X.T, few, strict=True)
        return cls(most, tuple(_few(np.unique(column), most) if is_few else None for column, is_few in columns))

    def __add__(self, other: Self) -> Self:
        both = zip(self.columns, other.columns, strict=True)
        return type(self)(
            self.most, tuple(None if a is None or b is None else _few(np.union1d(a, b), self.most) for a, b in both)
        )

    @property
    def table(self) -> np.ndarray:
        """A table with these values in its columns, (most + 1, p), and 0, 1, ... for columns with many values."""
        size = self.most + 1
        columns = [np.arange(size, dtype=float) if c is None else np.resize(c, size) for c in self.columns]
        return np.column_stack(columns)


def _few(values: np.ndarray, most: int) -> np.ndarray | None:
    return values if len(values) <= most else None


@dataclass(frozen=True, eq=False)
class Summary(Totals):
    """The statistics of rows that a fit needs before it has a model.

    Columns are those of X, then y, then any known noise or sizes. Columns of `wrong` are y and its sizes, marked where
    the likelihood refuses them.
    """

    missing: MarkCounts
    wrong: MarkCounts
    bounds: Bounds
    spread: Spread
    values: Values


def summarise(most_values: int, likelihood: Likelihood, rows: Rows) -> Summary:
    """Summarise a chunk of rows in the user's units."""
    columns = np.column_stack([a for a in (rows.X, rows.y, rows.noise_var, rows.size) if a is not None])
    y, size = rows.targets_and_sizes()
    with np.errstate(**UNCHECKED):
        return Summary(
            MarkCounts.of(~np.isfinite(columns)),
            MarkCounts.of(np.column_stack([likelihood.wrong_targets(y, size), likelihood.wrong_sizes(size)])),
            Bounds.of(columns),
            Spread.of(columns),
            Values.of(rows.X, most_values),
        )


@dataclass(frozen=True, eq=False)
class ProductSums(Totals):
    """Sums over rows in standard units: of products of columns, and of fourth powers of lengths."""

    n: int
    products: np.ndarray
    quartic: float

    def moments(self, center: np.ndarray, sd: np.ndarray) -> InputMoments:
        """Return the moments of inputs with these means and standard deviations."""
        return InputMoments(self.n, center, sd, self.products / self.n, self.quartic / self.n)


def sum_products(center: np.ndarray, sd: np.ndarray, X: np.ndarray) -> ProductSums:
    """Sum products of columns over rows whose columns have these means and standard deviations."""
    Z = standard_units(X, center, sd)
    return ProductSums(len(Z), Z.T @ Z, float(np.sum(np.sum(Z**2, axis=1) ** 2)))
