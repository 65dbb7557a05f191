"""This module has the inputs of a model (column names, training rows, moments) and the points at which it predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from gpsift._utils.recipe import CleaningRecipe
from gpsift._utils.text import join_names
from gpsift._utils.validation import column_sd


@dataclass(frozen=True, eq=False)
class Inputs:
    """The input columns of a model, and the rows that it was trained on.

    Parameters
    ----------
    names : tuple of str
        Names of the columns, in order.
    names_given : bool
        Whether the names are those of the user's data, not defaults.
    X : array (n, p) or None
        The training inputs in the user's units; None where they are not known, or not in this process.
    categorical : tuple of int
        Columns that the model treats as categories: it has no slope along them.
    summary : InputMoments or None
        Moments of training inputs that are not in this process.
    source : row source or None
        Access to training inputs that are not in this process, such as `gpsift.reference.dask.ClusterRows`.
    sample : array (m, p) or None
        Some training inputs of `source`, drawn at random.
    recipe : CleaningRecipe or None
        How the table of the inputs was cleaned, where a file keeps it for new rows.
    is_own : bool
        Whether X holds exactly the rows that the model was trained on, in their order. False for rows that were passed
        afterwards, which only determine units.
    """

    names: tuple[str, ...]
    names_given: bool = False
    X: np.ndarray | None = None
    categorical: tuple[int, ...] = ()
    summary: InputMoments | None = None
    source: Any = None
    sample: np.ndarray | None = None
    is_own: bool = True
    recipe: CleaningRecipe | None = None

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def n_rows(self) -> int:
        """Number of training rows, 0 where they are not known."""
        if self.X is not None:
            return len(self.X)
        return 0 if self.summary is None else self.summary.n

    @property
    def are_known(self) -> bool:
        """Whether the training inputs are known, or at least their moments."""
        return self.X is not None or self.summary is not None

    @cached_property
    def sd(self) -> np.ndarray:
        """Standard deviation of each column in the training data; 0 for a constant one."""
        return self.moments.sd if self.X is None else column_sd(self.X)

    @property
    def center(self) -> np.ndarray:
        """Mean of each column in the training data."""
        return self.moments.center if self.X is None else self.X.mean(axis=0)

    @cached_property
    def moments(self) -> InputMoments:
        """Moments of the training inputs."""
        if self.summary is not None:
            return self.summary
        assert self.X is not None
        return InputMoments.of(self.X)

    @property
    def training_sample(self) -> np.ndarray | None:
        """The training inputs, or a sample of those that are not in this process; None where there is neither."""
        return self.sample if self.X is None else self.X

    def correlation_of(self, columns: Sequence[int]) -> np.ndarray:
        """Return the correlations of some columns in the training data, without the matrix of all columns."""
        chosen = list(columns)
        if self.X is None:
            return self.moments.correlation[np.ix_(chosen, chosen)]
        return InputMoments.of(self.X[:, chosen]).correlation

    def on_columns(self, columns: Sequence[int]) -> Inputs:
        """Return the inputs in some of the columns; the training rows must be in this process."""
        chosen = list(columns)
        assert self.X is not None
        return Inputs(
            names=tuple(self.names[j] for j in chosen),
            names_given=self.names_given,
            X=self.X[:, chosen],
            categorical=tuple(place for place, j in enumerate(chosen) if j in self.categorical),
            is_own=self.is_own,
        )

    def points(self, X: np.ndarray, rows: np.ndarray | None = None, size: np.ndarray | None = None) -> Points:
        """Return the rows of a table as points, or those with the given numbers.

        Only this method decides whether they are training points.
        """
        units = self if self.are_known else replace(self, X=X, is_own=False)
        return Points(X, units, self.is_own and same_rows(X, self.X), rows, size)

    @property
    def training_points(self) -> Points:
        """All rows that the model was trained on."""
        if self.X is None:
            raise ValueError("This model does not know its training inputs; pass the points to look at as `X`.")
        return self.points(self.X)

    def check(self, names: Sequence[str] | None, n_columns: int) -> None:
        """Refuse a table whose columns are not those of the model."""
        known = self.names
        names = names if self.names_given else None
        missing = [name for name in known if names is not None and name not in names]
        if missing:
            raise ValueError(f"`X` lacks {join_names(missing)}, which the model was fitted on ({join_names(known)}).")
        if n_columns != len(known):
            raise ValueError(
                f"`X` has {n_columns} features but the model was fitted on {len(known)} ({join_names(known)}). "
                "Select or reorder the columns."
            )
        if names is not None and tuple(names) != known:
            raise ValueError(
                f"`X` has its columns in another order than the model was fitted on ({join_names(known)})."
            )


@dataclass(frozen=True, eq=False)
class Points:
    """Points at which a model predicts; made by `Inputs.points`.

    Parameters
    ----------
    table : array (N, p)
        The rows that the points are taken from, in the user's units.
    inputs : Inputs
        The inputs whose spread gives the units of scores and steps: the model's, or the table where it knows none.
    is_training : bool
        Whether the table holds the rows that the model was trained on.
    rows : array (n,) or None
        Numbers of the points in the table, None for all.
    size : array (n,) or None
        Trials or exposures; None takes the known ones at training points, and 1 elsewhere.
    """

    table: np.ndarray
    inputs: Inputs
    is_training: bool = False
    rows: np.ndarray | None = None
    size: np.ndarray | None = None

    @cached_property
    def X(self) -> np.ndarray:
        """The points themselves, (n, p)."""
        return self.table if self.rows is None else self.table[self.rows]

    def __len__(self) -> int:
        return len(self.table if self.rows is None else self.rows)

    def take(self, which: slice) -> Self:
        """Return some of the points."""
        rows = np.arange(len(self.table)) if self.rows is None else self.rows
        return replace(self, rows=rows[which], size=None if self.size is None else self.size[which])

    def on_columns(self, columns: Sequence[int]) -> Points:
        """Return the points with some of the columns only, for a model of these columns."""
        inputs = self.inputs.on_columns(columns)
        table = inputs.X if self.table is self.inputs.X else self.table[:, list(columns)]
        assert table is not None
        return Points(table, inputs, self.is_training, self.rows, self.size)

    def with_values(self, X: np.ndarray) -> Self:
        """Return other points, which are no training points, in the same units."""
        return replace(self, table=X, is_training=False, rows=None, size=None)

    def transformed(self, transform: Callable[[np.ndarray], np.ndarray], inputs: Inputs) -> Points:
        """Return the points after a transformation of the user's columns, for a model with these inputs."""
        # A repeated transformation of training points may differ from the model's training inputs by rounding.
        is_known = self.is_training and inputs.X is not None
        return inputs.points(inputs.X if is_known else transform(self.table), self.rows, self.size)  # type: ignore[arg-type]

    def resample_units(self, rng: np.random.Generator) -> tuple[Points, np.ndarray]:
        """Draw as many points as there are, with replacement (the bootstrap); return these points and their numbers.

        The returned points are all points, in units of training rows that are drawn with replacement: of the same rows,
        where the points are the training rows. Units do not change where training rows are not in this process.
        """
        chosen, inputs = rng.integers(len(self), size=len(self)), self.inputs
        if inputs.X is None:
            return self, chosen
        rows = (
            chosen if self.table is inputs.X and self.rows is None else rng.integers(inputs.n_rows, size=inputs.n_rows)
        )
        return replace(self, inputs=replace(inputs, X=inputs.X[rows])), chosen

    def for_model(self, inputs: Inputs) -> Points:
        """Return these points for a model of the same columns that was trained on other rows."""
        return inputs.points(self.table, self.rows, self.size)


def same_rows(X: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Whether two tables are the same object, or hold the same numbers."""
    return X is not None and other is not None and (X is other or np.array_equal(X, other))


@dataclass(frozen=True, eq=False)
class InputMoments:
    """Moments of n rows of p features; z are the rows in standard units, 0 for a constant feature.

    They determine the units of scores and the conditionals of VAR. All are sums over rows, which need not be in this
    process.
    """

    n: int
    center: np.ndarray  # mean of each feature, (p,)
    sd: np.ndarray  # standard deviation of each feature, 0 for a constant one
    correlation: np.ndarray  # the mean of z_j z_k, (p, p)
    quartic: float  # the mean of |z|^4, for estimating the noise of the correlations

    @classmethod
    def of(cls, X: np.ndarray) -> Self:
        """Compute the moments of the rows of X."""
        center, sd = X.mean(axis=0), column_sd(X)
        Z = standard_units(X, center, sd)
        return cls(len(X), center, sd, Z.T @ Z / len(X), float(np.mean(np.sum(Z**2, axis=1) ** 2)))


def standard_units(X: np.ndarray, center: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Return (X - center) / sd, and 0 for a constant feature."""
    return np.where(sd > 0, (X - center) / np.where(sd > 0, sd, 1.0), 0.0)
