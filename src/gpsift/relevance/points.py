"""Read the points of a ranking: rows of a table in memory, of a dask collection, or of the training data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from gpsift._utils.validation import is_dask, read_features, refuse_not_finite
from gpsift.reference import dask as cluster
from gpsift.reference.inputs import Inputs, Points, same_rows
from gpsift.relevance.measure import Measure

# At most this many rows of a dask collection have pointwise scores.
KEPT_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class RankedPoints:
    """The points of a ranking."""

    points: Points  # those with pointwise scores, in this process
    rows: np.ndarray  # the row numbers of the points in X, (n,)
    is_sample: bool  # whether they were drawn at random
    # The rows of a dask collection, if scores are averaged over all of them.
    full_data: cluster.ClusterRows | None = None

    @classmethod
    def read(cls, inputs: Inputs, X: Any, points: Any, seed: int, measure: Measure) -> Self:
        """Read the arguments of `rank`, for a model with these inputs."""
        source = _read_source(inputs, X)
        is_count = np.ndim(points) == 0
        if source is None:
            if X is None or (type(X) is np.ndarray and same_rows(X, inputs.X)):  # checked when the model was fitted
                table = inputs.training_points.table
            else:
                table, names = read_features(X)
                inputs.check(names, table.shape[1])
            rows = _choose_rows(points, len(table), seed)
            numbers = np.arange(len(table)) if rows is None else rows
            return cls(inputs.points(table, rows), numbers, is_sample=rows is not None and is_count)
        chosen = _choose_rows(points, source.n, seed)
        if chosen is None and measure.is_joint:
            raise ValueError(
                f"{measure.label} looks at all points together, and these are rows of a dask collection. Take some of "
                "them: `rank(..., points=2000)`."
            )
        kept = _choose_rows(KEPT_ROWS, source.n, seed) if chosen is None else chosen
        numbers = np.arange(source.n) if kept is None else kept
        ascending, back = np.unique(numbers, return_inverse=True)
        taken = source.take(ascending).take(back)
        return cls(
            inputs.points(taken.X, size=taken.size),
            numbers,
            is_sample=kept is not None and is_count,
            full_data=source if chosen is None else None,
        )

    @property
    def n_scored(self) -> int:
        """Number of rows that the scores are averaged over."""
        return len(self.rows) if self.full_data is None else self.full_data.n


def _read_source(inputs: Inputs, X: Any) -> cluster.ClusterRows | None:
    """Return the rows of a dask collection, X or the model's training inputs; None for rows in memory."""
    if not is_dask(X):
        return inputs.source if X is None else None
    if not inputs.are_known:
        raise ValueError(
            "This model does not know its training inputs, which give the units of scores, and the rows of a dask "
            "collection do not come here all at once. Pass points in memory, such as `X.head(1000)`."
        )
    source = cluster.read_collections(X)
    inputs.check(source.names, source.reading.n_columns)
    refuse_not_finite(source.map_reduce(cluster.mark_missing).counts, source.names, "X")
    if inputs.source is not None:
        return source.read_as(**inputs.source.reading.chunking)
    n_train = 1 if inputs.X is None else len(inputs.X)
    return source.read_as(n_columns=max(n_train, source.reading.n_columns))


def _choose_rows(points: Any, n: int, seed: int) -> np.ndarray | None:
    if points is None:
        return None
    if isinstance(points, int | np.integer) and not isinstance(points, bool):
        if points < 1:
            raise ValueError(f"`points` must be at least 1, got {points}.")
        if points >= n:
            return None
        return np.sort(np.random.default_rng(seed).choice(n, size=int(points), replace=False))
    rows = np.asarray(points)
    if rows.dtype == bool and rows.shape == (n,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu":
        raise ValueError("`points` must be a number of rows, or a 1-d array of row indices or of n booleans.")
    if rows.min() < 0 or rows.max() >= n:
        raise ValueError(f"`points` names row {rows.max() if rows.max() >= n else rows.min()} but `X` has {n} rows.")
    return rows
