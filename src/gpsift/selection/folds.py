"""Which rows a model is fitted to and which it is scored on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from gpsift.selection.data import Data


@dataclass(frozen=True, eq=False)
class Fold:
    """Rows to fit to and rows to score on.

    `test` is None for leave-one-out, which needs no rows of its own; `rows` are the row numbers of what is scored.
    """

    name: str
    train: Data
    test: Data | None
    rows: np.ndarray

    @property
    def y(self) -> np.ndarray:
        """What is predicted."""
        return self.train.y if self.test is None else self.test.y


@dataclass(frozen=True, eq=False)
class Scheme:
    """How predictions are judged: in words, the folds, and whether these leave rows out of the ranking too."""

    label: str
    folds: tuple[Fold, ...]
    leaves_rows_out: bool


def read_cv(cv: Any, data: Data, extras: tuple[str, ...], *, classes: bool, seed: int) -> Scheme:
    """The scheme that `cv` stands for: None, a number of folds, a splitter, a sequence of splits, or a test set."""
    everything = np.arange(data.y.size)
    if cv is None:
        return Scheme("leave-one-out", (Fold("all", data, None, everything),), leaves_rows_out=False)
    if _is_test_set(cv):
        test = _read_test_set(cv, data, extras)
        fold = Fold("all", data, test, np.arange(test.y.size))
        return Scheme(f"a test set of {test.y.size} rows", (fold,), leaves_rows_out=True)
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        label, splits = f"{cv}-fold cross-validation", _k_folds(int(cv), data, classes=classes, seed=seed)
    elif hasattr(cv, "split") and not isinstance(cv, str):
        label, splits = type(cv).__name__, cv.split(data.X, data.y)
    elif isinstance(cv, Iterable) and not isinstance(cv, str | Mapping):
        label, splits = "given splits", cv
    else:
        raise TypeError(
            f"`cv` must be None (leave-one-out), a number of folds, a scikit-learn splitter, a sequence of (train, "
            f"test) row numbers, or a test set (X_test, y_test), got {cv!r}."
        )
    folds = [
        _read_split(number, split, data, everything, classes=classes) for number, split in enumerate(splits, start=1)
    ]
    if not folds:
        raise ValueError("`cv` gave no split.")
    return Scheme(
        label if label != "given splits" else f"{len(folds)} given splits", tuple(folds), leaves_rows_out=True
    )


def _k_folds(k: int, data: Data, *, classes: bool, seed: int) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import KFold, StratifiedKFold

    n = data.y.size
    if not 2 <= k <= n:
        raise ValueError(f"`cv` must lie between 2 and the number of rows ({n}), got {k}.")
    if not classes:
        return KFold(k, shuffle=True, random_state=seed).split(data.X)
    labels, counts = np.unique(data.y, return_counts=True)
    if counts.min() < 2:
        raise ValueError(
            f"Class {labels[counts.argmin()]:g} has a single row, so one fold would have to predict it unseen. Join "
            "classes, or use leave-one-out (`cv=None`)."
        )
    if counts.min() < k:  # every class in at least two folds is enough: the others train on it
        k = int(counts.min())
    return StratifiedKFold(k, shuffle=True, random_state=seed).split(data.X, data.y)


def _read_split(number: int, split: Any, data: Data, everything: np.ndarray, *, classes: bool) -> Fold:
    try:
        train, test = (everything[np.asarray(rows)] for rows in split)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"Split {number} of `cv` is no pair of row numbers (train, test) below {data.y.size}."
        ) from error
    if train.size < 2 or test.size == 0:
        raise ValueError(f"Split {number} of `cv` has {train.size} rows to fit to and {test.size} to predict.")
    if classes and np.unique(data.y[train]).size < np.unique(data.y).size:
        present = ", ".join(f"{label:g}" for label in np.unique(data.y[train]))
        raise ValueError(
            f"Split {number} of `cv` has only class {present} in the rows to fit to. Use fewer folds or a stratified "
            "splitter, such as `cv=5`."
        )
    return Fold(f"fold {number}", data.take(train), data.take(test), test)


def _is_test_set(cv: Any) -> bool:
    return isinstance(cv, tuple) and len(cv) in (2, 3) and len(getattr(cv[0], "shape", np.shape(cv[0]))) == 2


def _read_test_set(cv: tuple[Any, ...], data: Data, extras: tuple[str, ...]) -> Data:
    own = dict(cv[2]) if len(cv) == 3 else {}
    missing = [name for name in extras if name not in own and name != "noise_var"]
    if missing:
        raise ValueError(
            f"The test set lacks {', '.join(missing)}: give it as (X_test, y_test, {{{missing[0]!r}: values}})."
        )
    test = Data.read(cv[0], cv[1], own, where="_test")
    if test.X.shape[1] != data.X.shape[1]:
        raise ValueError(f"`X_test` has {test.X.shape[1]} columns but `X` has {data.X.shape[1]}.")
    return Data(test.X, test.y, data.names, test.extras)
