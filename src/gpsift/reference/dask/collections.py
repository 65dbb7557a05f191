"""dask arrays and data frames as users have them -> rows in partitions, or an error that says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpsift._utils.validation import is_dask, read_target
from gpsift.reference.dask.passes import Pass, dask_module
from gpsift.reference.dask.rows import ClusterRows, Partition, Reading


def read_collections(
    X: Any, y: Any = None, noise_var: Any = None, size: Any = None, *, size_name: str = "size"
) -> ClusterRows:
    """Rows of a dask array or data frame X, with the targets, known noise and sizes that belong to them.

    Targets are a dask array, a series or a data frame with one column; known noise and sizes may be a number for all
    rows. Where dask does not know how many rows there are in each partition, as in data frames, one pass counts them.
    Partitions may be of any size; those of the others are made those of X.
    """
    fields = {"X": X, "y": y, "noise_var": noise_var, size_name: size}
    numbers = {name: _number(fields[name], name) for name in ("noise_var", size_name) if np.ndim(fields[name]) == 0}
    given = {name: values for name, values in fields.items() if values is not None and name not in numbers}
    for name, values in given.items():
        _refuse_unreadable(values, name)
    is_frame = hasattr(X, "columns")
    # What dask makes of a frame when it is computed may have other partitions: small files are read together.
    given = {name: values if hasattr(values, "chunks") else values.optimize() for name, values in given.items()}
    if X.ndim != 2:
        raise ValueError(f"`X` must be 2-d (rows, features), got {X.ndim} dimension(s): pass a frame or 2-d array.")
    names = tuple(str(column) for column in X.columns) if is_frame else None
    n_features = len(X.columns) if is_frame else X.shape[1]
    lengths = _lengths(given)
    n_rows = sum(lengths["X"])
    if n_rows == 0 or n_features == 0:
        raise ValueError(f"`X` is empty: {n_rows} rows and {n_features} features.")
    for name, each in lengths.items():
        if sum(each) != n_rows:
            raise ValueError(f"`{name}` has {sum(each)} entries but `X` has {n_rows} rows.")
    tables = {
        name: _partitions(values if lengths[name] == lengths["X"] else _divided(values, lengths[name], lengths["X"]))
        for name, values in given.items()
    }
    partitions = [
        Partition(n, tuple(tables[name][k] if name in tables else numbers.get(name) for name in fields))
        for k, n in enumerate(lengths["X"])
        if n > 0
    ]
    return ClusterRows(partitions, names, Reading(n_features, size_name=size_name), held=given)


def _number(value: Any, name: str) -> float | None:
    return None if value is None else float(read_target(np.array([value]), 1, name=name)[0])


def _refuse_unreadable(values: Any, name: str) -> None:
    dask_module()
    if not is_dask(values):
        remedy = f"`dask.array.from_array({name}, chunks=...)`" if name != "X" else "`y.compute()` beside it"
        raise TypeError(
            f"`{name}` is in memory (a {type(values).__name__}) and the others are dask collections: pass {remedy}."
        )
    if not hasattr(values, "to_delayed") or not hasattr(values, "ndim"):
        raise TypeError(
            f"`{name}` must be a dask array, data frame or series, got a {type(values).__name__}. Make one of it, "
            "such as with its `to_dataframe()`."
        )


def _partitions(values: Any) -> list[Any]:
    """The delayed partitions along the rows."""
    if not hasattr(values, "chunks"):
        return list(values.to_delayed())
    whole_rows = values.rechunk({1: -1}) if values.ndim == 2 and len(values.chunks[1]) > 1 else values
    return list(np.ravel(whole_rows.to_delayed()))


def _lengths(given: dict[str, Any]) -> dict[str, list[int]]:
    """How many rows there are in each partition; counted in one pass where that is not known."""
    known = {name: _known_lengths(values) for name, values in given.items()}
    counting = Pass("count", None)
    for name, values in given.items():
        if known[name] is None:
            for partition in _partitions(values):
                counting.add(_count, name, partition)
    counted: dict[str, list[int]] = {name: [] for name in given}
    for name, n in counting.results():
        counted[name].append(n)
    return {name: counted[name] if lengths is None else lengths for name, lengths in known.items()}


def _known_lengths(values: Any) -> list[int] | None:
    chunks = getattr(values, "chunks", None)
    if chunks is None or np.isnan(chunks[0]).any():
        return None
    return [int(n) for n in chunks[0]]


def _count(_carried: None, name: str, partition: Any) -> tuple[str, int]:
    return name, len(partition)


def _divided(values: Any, lengths: Sequence[int], wanted: Sequence[int]) -> Any:
    """A target in other partitions."""
    array = dask_module("dask.array")
    if not hasattr(values, "chunks"):
        values = values.to_dask_array(lengths=list(lengths))
    elif _known_lengths(values) is None:
        values = array.Array(values.dask, values.name, (tuple(lengths), *values.chunks[1:]), dtype=values.dtype)
    return values.rechunk({0: tuple(wanted)})
