"""Read and check what users pass: tables and targets as float arrays, groups of features as indices of columns.

An error for values that cannot be used says what was expected, what was passed, and what to do.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, NoReturn

import numpy as np
from scipy import sparse

from gpsift._utils.arrays import is_on_device, to_numpy
from gpsift._utils.text import join_names

# Larger numbers are refused: their squares leave the range of floating point.
LARGEST_NUMBER = 1e100
# float() would accept objects of these types, which are not real numbers.
NOT_REAL = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


@dataclass(frozen=True, eq=False)
class CheckedTable:
    """A table that has been read and checked; `read_features` returns its values without a copy."""

    values: np.ndarray  # (n, p) floats in C order, which no other code changes
    names: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]


def read_features(X: Any, *, name: str = "X") -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Read a table as an (n, p) float array, with its column names where it has any.

    The table may be anything with two dimensions and real numbers: a NumPy array, nested lists, a pandas or polars data
    frame, a tensor.
    """
    if isinstance(X, CheckedTable):
        return X.values, X.names
    _refuse_unreadable(X, name)
    values, names = feature_values(X, name)
    n, p = values.shape
    if n == 0 or p == 0:
        raise ValueError(f"`{name}` is empty: {n} rows and {p} features.")
    refuse_not_finite(np.sum(~np.isfinite(values), axis=0), names, name)
    refuse_extreme(values, name)
    return values, names


def read_target(y: Any, n_rows: int, *, name: str = "y") -> np.ndarray:
    """Read a target as an (n,) float array with as many entries as there are rows."""
    _refuse_unreadable(y, name)
    values = target_values(y, name)
    if values.shape[0] != n_rows:
        raise ValueError(f"`{name}` has {values.shape[0]} entries but `X` has {n_rows} rows.")
    bad = ~np.isfinite(values)
    if bad.any():
        refuse_missing(int(bad.sum()), int(np.flatnonzero(bad)[0]), name)
    return values


def feature_values(X: Any, name: str) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """Read a table as `read_features` does, without checks of its size and values."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        return _read_frame(X, name)
    values = _as_real_array(X, name)
    if values.ndim != 2:
        array = f"np.asarray({name})" if hasattr(X, "to_numpy") else name
        advice = f" One feature: pass `{array}.reshape(-1, 1)`; one row: `{array}.reshape(1, -1)`."
        raise ValueError(
            f"`{name}` must be 2-d (rows, features), got shape {values.shape}.{advice if values.ndim == 1 else ''}"
        )
    return values, None


def target_values(y: Any, name: str) -> np.ndarray:
    """Read a target as `read_target` does, without checks of its length and values."""
    values = _read_frame(y, name)[0] if hasattr(y, "columns") else _as_real_array(y, name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"`{name}` must be 1-d, one number a row, got shape {values.shape}.")
    return values


def is_dask(values: Any) -> bool:
    """Whether this is a collection of dask; the test does not import dask."""
    return any(cls.__module__.partition(".")[0] in ("dask", "dask_expr") for cls in type(values).__mro__)


def refuse_not_finite(counts: np.ndarray, names: Sequence[str] | None, name: str) -> None:
    """Refuse a table if the counts of missing or infinite values in its columns are not all 0."""
    if not counts.any():
        return
    labels = names if names is not None else default_names(counts.size)
    bad = ", ".join(f"{labels[j]} ({counts[j]} rows)" for j in np.flatnonzero(counts)[:8])
    raise ValueError(
        f"`{name}` has missing or infinite values in {int((counts > 0).sum())} column(s): {bad}. "
        "Remove those rows or fill them in first."
    )


def refuse_missing(count: int, first: int, name: str) -> NoReturn:
    """Refuse a target with `count` missing or infinite values, the first of them in row `first`."""
    raise ValueError(
        f"`{name}` has {count} missing or infinite value(s), the first in row {first}. Remove those rows or fill them "
        "in first."
    )


def refuse_extreme(values: np.ndarray, name: str) -> None:
    """Refuse numbers so large, or differences so small, that their squares leave the range of floating point."""
    ranges = np.atleast_1d(np.ptp(values, axis=0))
    if np.max(np.abs(values)) > LARGEST_NUMBER or np.any((ranges > 0) & (ranges < 1.0 / LARGEST_NUMBER)):
        raise ValueError(
            f"`{name}` holds numbers so large or differences so small (beyond {LARGEST_NUMBER:g} or its inverse) "
            "that their squares leave the range of floating point. Rescale it, for example to other units."
        )


def constant_columns(X: np.ndarray) -> np.ndarray:
    """Mark the columns whose values are equal up to rounding."""
    lowest, highest = X.min(axis=0), X.max(axis=0)
    return highest - lowest <= 4.0 * np.finfo(float).eps * np.maximum(-lowest, highest)


def column_sd(X: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column, exactly 0 for a constant one."""
    return np.where(constant_columns(X), 0.0, X.std(axis=0))


def default_names(n_features: int) -> tuple[str, ...]:
    """Return names for columns without names: x1, x2, ...."""
    return tuple(f"x{j + 1}" for j in range(n_features))


def _read_frame(X: Any, name: str) -> tuple[np.ndarray, tuple[str, ...]]:
    names = tuple(str(column) for column in X.columns)
    repeated = sorted(column for column, count in Counter(names).items() if count > 1)
    if repeated:
        raise ValueError(f"`{name}` has several columns called {', '.join(repeated)}. Give each its own name.")
    kinds: Any = getattr(X, "dtypes", None)
    if len(names) and hasattr(kinds, "unique") and all(kind == np.float64 for kind in kinds.unique()):
        return np.array(X.to_numpy(), dtype=float, order="C"), names  # all columns of a frame of pandas at once
    columns, not_numeric = [], []
    for label, column in zip(names, X.columns, strict=True):
        try:
            columns.append(_as_real_array(X[column], f"{name}[{label!r}]"))
        except TypeError:
            not_numeric.append(label)
    if not_numeric:
        raise TypeError(
            f"`{name}` has column(s) that do not hold numbers: {', '.join(not_numeric)}. "
            "Drop them or encode them as numbers (for example with pandas.get_dummies)."
        )
    return np.column_stack(columns) if columns else np.empty((len(X), 0)), names


def _as_real_array(values: Any, name: str) -> np.ndarray:
    """Convert values to a float array; refuse what float() would silently change."""
    if hasattr(values, "to_numpy"):
        kind = getattr(values, "dtype", "")
        if str(kind) == "category":
            raise TypeError(f"`{name}` holds values that are not numbers but categories. Encode it as numbers first.")
        # Where pandas has its own mark for missing values, the values are converted as objects.
        has_marks = getattr(kind, "na_value", None) is not None
        values = values.to_numpy(dtype=object) if has_marks else values.to_numpy()
    if np.ma.isMaskedArray(values):
        values = np.ma.filled(values.astype(float), np.nan)
    if is_on_device(values):
        values = to_numpy(values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"`{name}` cannot be read as an array of numbers ({error}). Rows of unequal length, or a tensor with "
            "gradients? Detach it first."
        ) from error
    if array.dtype.kind == "c":
        raise TypeError(f"`{name}` holds complex numbers; only real numbers can be used.")
    if array.dtype.kind == "O":
        array = _objects_to_floats(array, name)
    if array.dtype.kind not in "buif":
        kind = {"U": "text", "S": "text", "M": "dates", "m": "time differences"}.get(array.dtype.kind, "no numbers")
        raise TypeError(f"`{name}` holds {kind} (dtype {array.dtype}), not numbers. Encode it as numbers first.")
    return np.array(array, dtype=float, order="C")


def _objects_to_floats(array: np.ndarray, name: str) -> np.ndarray:
    # NAType is the type of pandas.NA; its name finds it without an import of pandas.
    filled = [np.nan if v is None or type(v).__name__ == "NAType" else v for v in array.ravel()]
    array = np.array(filled, dtype=object).reshape(array.shape)
    # Strings of digits are refused too: float("1e5") would hide that a column was read as text.
    wrong = next((v for v in array.ravel() if isinstance(v, NOT_REAL)), None)
    if wrong is not None:
        raise TypeError(f"`{name}` holds values that are not real numbers, such as {wrong!r}.")
    try:
        return array.astype(float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"`{name}` holds values that are not numbers ({error}).") from error


def _refuse_unreadable(values: Any, name: str) -> None:
    if hasattr(values, "collect"):
        raise TypeError(f"`{name}` is a lazy {type(values).__name__}: pass `{name}.collect()`.")
    if is_dask(values):
        raise TypeError(
            f"`{name}` is a dask {type(values).__name__}, which only `GP.fit` and `rank` visit where it is: pass "
            f"`{name}.compute()`."
        )
    if sparse.issparse(values):
        raise TypeError(f"`{name}` is a sparse matrix; a Gaussian process needs a dense one: use `{name}.toarray()`.")


def read_groups(
    groups: Mapping[str, Sequence[str | int]] | None, feature_names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """Read groups of features as units to score: the groups, and every other feature by itself.

    Return the names of the units, in the order of the first column of each, and their columns, ascending. No feature
    may be in two groups.

    >>> read_groups({"place": ["lat", "lon"]}, ["lat", "age", "lon"])
    (('place', 'age'), ((0, 2), (1,)))
    """
    if groups is None:
        return tuple(feature_names), tuple((j,) for j in range(len(feature_names)))
    if not isinstance(groups, Mapping):
        raise TypeError(
            f'`groups` must be a mapping such as {{"place": ["lat", "lon"]}}, from names to features, got '
            f"{type(groups).__name__}."
        )
    owner: dict[int, str] = {}
    places = {feature: j for j, feature in reversed(list(enumerate(feature_names)))}
    units: list[tuple[tuple[int, ...], str]] = []
    for name, members in groups.items():
        columns = _read_members(name, members, feature_names, places)
        for j in columns:
            if j in owner:
                raise ValueError(f"Feature {feature_names[j]!r} is in two groups, {owner[j]!r} and {name!r}.")
            owner[j] = name
        if name in feature_names and name not in [feature_names[j] for j in columns]:
            raise ValueError(f"Group {name!r} has the name of a feature that is not in it. Give it another name.")
        units.append((columns, name))
    units += [((j,), name) for j, name in enumerate(feature_names) if j not in owner]
    units.sort()
    return tuple(name for _, name in units), tuple(columns for columns, _ in units)


def feature_index(feature: Any, names: Sequence[str]) -> int | None:
    """Find the index of a feature given by name or by number from 0; None if there is no such feature.

    >>> feature_index("age", ["dose", "age"]), feature_index(0, ["dose", "age"]), feature_index(2, ["dose", "age"])
    (1, 0, None)
    """
    if feature in names:
        return list(names).index(feature)
    is_number = isinstance(feature, Integral) and not isinstance(feature, bool | np.bool_)
    return int(feature) if is_number and 0 <= feature < len(names) else None


def _read_members(name: Any, members: Any, feature_names: Sequence[str], places: Mapping[str, int]) -> tuple[int, ...]:
    """Return the columns of a group, ascending; `places` maps each name to its column."""
    if not isinstance(name, str):
        raise TypeError(f"Names of groups must be text, got {name!r}.")
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise TypeError(f"Group {name!r} must list its features, such as [{members!r}], got {members!r} itself.")
    columns = []
    for member in members:
        is_number = isinstance(member, int | np.integer) and not isinstance(member, bool)
        if not is_number and not isinstance(member, str):
            raise TypeError(f"Group {name!r} must list names or indices of features, got {member!r}.")
        column = int(member) if is_number else places.get(member, -1)
        if not 0 <= column < len(feature_names):
            raise ValueError(
                f"Group {name!r} lists {member!r}, but the {len(feature_names)} features are "
                f"{join_names(feature_names)}."
            )
        columns.append(column)
    columns.sort()
    if not columns:
        raise ValueError(f"Group {name!r} is empty.")
    repeated = next((j for j, following in pairwise(columns) if j == following), None)
    if repeated is not None:
        raise ValueError(f"Group {name!r} lists feature {feature_names[repeated]!r} twice.")
    return tuple(columns)


def import_optional(library: str, purpose: str) -> Any:
    """Import a library, or raise an error that names its purpose."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise ImportError(
            f"{purpose} are made with {library}, which is not installed: pip install {library}."
        ) from error
