"""Transformers of scikit-learn in front of a model: which only shift, scale and select columns, and how."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from gpsift.reference.affine import Affine


def active_steps(pipeline: Pipeline) -> list[Any]:
    """The steps of a pipeline that do something."""
    return [step for _, step in pipeline.steps if not _passes_through(step)]


def transformed(steps: Sequence[Any], X: np.ndarray) -> np.ndarray:
    """X as the steps see it, each after the one before."""
    for k, step in enumerate(steps):
        X = step.transform(as_fitted(step, X) if k == 0 else X)
    return np.asarray(X, dtype=float)


def as_fitted(model: Any, X: np.ndarray) -> Any:
    """X with the names of columns that a model was fitted with, without which scikit-learn warns."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=names)


def column_map_of(steps: Sequence[Any], n_inputs: int) -> Affine | None:
    """What the steps do together, where all of them shift, scale and select columns; None otherwise."""
    total = Affine.scaling(0.0, 1.0, n_inputs)
    for step in steps:
        one = _map_of_step(step, total.x_center.size)
        if one is None:
            return None
        total = total.then(one)
    return total


def _map_of_step(step: Any, n_inputs: int) -> Affine | None:
    if _passes_through(step):
        return Affine.scaling(0.0, 1.0, n_inputs)
    if isinstance(step, Pipeline):
        return column_map_of(active_steps(step), n_inputs)
    if isinstance(step, ColumnTransformer):
        return _map_of_column_transformer(step, n_inputs)
    if isinstance(step, SelectorMixin):
        return Affine.selecting(step.get_support(indices=True))
    if type(step) not in SCALERS or getattr(step, "clip", False):
        return None
    center, scale = SCALERS[type(step)](step)
    return Affine.scaling(center, scale, n_inputs)


def _passes_through(step: Any) -> bool:
    # A ColumnTransformer replaces the word by a function that does nothing.
    does_nothing = type(step) is FunctionTransformer and step.func is None
    return step is None or does_nothing or (isinstance(step, str) and step == "passthrough")


def _or(value: Any, default: float) -> Any:
    return default if value is None else value


# (center, scale) of x -> (x - center) / scale. MinMaxScaler computes x scale_ + min_.
SCALERS: dict[type, Any] = {
    StandardScaler: lambda step: (step.mean_ if step.with_mean else 0.0, _or(step.scale_, 1.0)),
    MinMaxScaler: lambda step: (-step.min_ / step.scale_, 1.0 / step.scale_),
    MaxAbsScaler: lambda step: (0.0, step.scale_),
    RobustScaler: lambda step: (_or(step.center_, 0.0), _or(step.scale_, 1.0)),
}


def _map_of_column_transformer(step: ColumnTransformer, n_inputs: int) -> Affine | None:
    if step.transformer_weights:
        return None
    parts = []
    for _, transformer, chosen in step.transformers_:
        columns = _column_indices(step, chosen, n_inputs)
        if columns.size == 0 or (isinstance(transformer, str) and transformer == "drop"):
            continue
        part = _map_of_step(transformer, columns.size)
        if part is None:
            return None
        parts.append(Affine.selecting(columns).then(part))
    if not parts:
        return None
    columns, center, scale = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("selected", "x_center", "x_scale")
    )
    is_unique = np.unique(columns).size == columns.size
    return Affine(center, scale, columns=columns) if is_unique else None


def _column_indices(step: ColumnTransformer, chosen: Any, n_inputs: int) -> np.ndarray:
    """Columns that a part of a ColumnTransformer was given by index, name, slice or mask."""
    names = getattr(step, "feature_names_in_", None)
    index = {} if names is None else {name: j for j, name in enumerate(names)}
    if isinstance(chosen, slice):
        if isinstance(chosen.start, str) or isinstance(chosen.stop, str):
            start = None if chosen.start is None else index[chosen.start]
            stop = None if chosen.stop is None else index[chosen.stop] + 1  # labels are included, as in pandas
            chosen = slice(start, stop, chosen.step)
        return np.arange(n_inputs)[chosen]
    listed = np.atleast_1d(np.asarray(chosen))
    if listed.size == 0:
        return np.empty(0, dtype=int)
    if listed.dtype.kind in "UO":
        return np.array([index[name] for name in listed])
    return np.arange(n_inputs)[listed]
