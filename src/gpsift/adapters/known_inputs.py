"""What a model of another library knows of its inputs, or what the user says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpsift._utils.validation import default_names, read_features
from gpsift.reference.inputs import Inputs, same_rows


def known_inputs(
    n_features: int,
    X_train: np.ndarray | None,
    *,
    names: Sequence[str] | None = None,
    known_names: Any = None,
    given: Any = None,
    categorical: tuple[int, ...] = (),
) -> Inputs:
    """The inputs of a reference.

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
    categorical : tuple of int
        Columns that the model takes as categories.
    """
    labels, are_given = _read_names(names, known_names, n_features)
    if given is None:
        return Inputs(labels, are_given, X_train, categorical)
    values = _read_training_inputs(given, n_features)
    is_own = same_rows(values, X_train)
    return Inputs(labels, are_given, X_train if is_own else values, categorical, is_own=is_own)


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


def read_only(values: Any) -> np.ndarray:
    """Points of a model as doubles; rankings hand them out, and nobody shall write into the user's model."""
    array = np.asarray(values, dtype=float).view()
    array.flags.writeable = False
    return array
