"""Divide rows into those to fit to and those to score, and compute metrics of predictions.

A user chooses `LeaveOneOut`, `Folds` or `TestSet`. Each makes a `CVScheme`, which has the folds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from gpsift.selection.data import Data, is_whole


@dataclass(frozen=True, eq=False)
class Fold:
    """One split of the data: rows to fit to, rows to score, and the numbers of these.

    `test` is None for leave-one-out, which needs no rows of its own.
    """

    name: str
    train: Data
    test: Data | None
    rows: np.ndarray

    @classmethod
    def all_rows(cls, data: Data, test: Data | None = None) -> Fold:
        """Make the fold that fits to all rows and scores a test set, or each row given all others."""
        return cls("all", data, test, np.arange((data if test is None else test).y.size))

    @property
    def y(self) -> np.ndarray:
        """The target of the scored rows."""
        return self.train.y if self.test is None else self.test.y


@dataclass(frozen=True, eq=False)
class CVScheme:
    """A cross-validation scheme: its name, its folds, and the parts of a search that each fold repeats.

    `leaves_rows_out` says whether scored rows are left out of the fit, `validates_search` whether each fold finds its
    own order of the features.
    """

    label: str
    folds: tuple[Fold, ...]
    leaves_rows_out: bool = True
    validates_search: bool = True

    @property
    def is_validated(self) -> bool:
        """Whether the rows that are scored had no part in the order of the features."""
        return self.leaves_rows_out and (len(self.folds) == 1 or self.validates_search)


class HeldOut(ABC):
    """A choice of the rows on which submodels are scored."""

    @abstractmethod
    def scheme(self, data: Data, *, classes: bool) -> CVScheme:
        """Make the folds of these data; `classes` says whether the target is one of classes."""


@dataclass(frozen=True)
class LeaveOneOut(HeldOut):
    """Leave-one-out: each row given all others, with hyperparameters, standardisation and order found on all rows.

    It is fast, and optimistic.
    """

    def scheme(self, data: Data, *, classes: bool) -> CVScheme:
        """Make one fold of all rows."""
        return CVScheme("leave-one-out", (Fold.all_rows(data),), leaves_rows_out=False)


@dataclass(frozen=True, eq=False)
class TestSet(HeldOut):
    """A test set: rows that submodels are scored on and that no fit has seen.

    Parameters
    ----------
    X, y : array or data frame (m, p), and array (m,)
    exposure, trials : array (m,) or float, optional
        As in `GP.fit`, where the rows to fit to have them.
    """

    __test__ = False  # a class of this name is no test of pytest's

    X: Any
    y: Any
    exposure: Any = None
    trials: Any = None

    def scheme(self, data: Data, *, classes: bool) -> CVScheme:
        """Make one fold that fits to all rows and scores the test set."""
        own = {name: getattr(self, name) for name in ("exposure", "trials") if getattr(self, name) is not None}
        missing = [name for name in data.prediction_options if name not in own]
        if missing:
            raise ValueError(f"The test set lacks {', '.join(missing)}: TestSet(X, y, {missing[0]}=...).")
        test = Data.read(self.X, self.y, own, where="_test")
        if test.X.shape[1] != data.X.shape[1]:
            raise ValueError(f"`X_test` has {test.X.shape[1]} columns but `X` has {data.X.shape[1]}.")
        fold = Fold.all_rows(data, Data(test.X, test.y, data.names, test.extras))
        return CVScheme(f"a test set of {test.y.size} rows", (fold,))


@dataclass(frozen=True, eq=False)
class Folds(HeldOut):
    """Cross-validation with everything refitted in each fold.

    Parameters
    ----------
    splits : int, splitter or sequence of (train, test) row numbers
        A number of folds, which are stratified where the target is one of classes, a splitter of scikit-learn, or the
        rows themselves.
    validate_search : bool
        Find the order of the features in each fold anew. False takes the order of all rows, which is faster and
        optimistic.
    seed : int
        Of the folds, where `splits` is their number.
    """

    splits: Any = 10
    validate_search: bool = True
    seed: int = 0

    def scheme(self, data: Data, *, classes: bool) -> CVScheme:
        """Make the folds, checked."""
        pairs, label = self.splits, ""
        if is_whole(self.splits):
            pairs = _k_folds(int(self.splits), data, classes=classes, seed=self.seed)
            label = f"{self.splits}-fold cross-validation"
        elif hasattr(self.splits, "split"):
            pairs, label = self.splits.split(data.X, data.y), type(self.splits).__name__
        folds = [_read_split(number, pair, data, classes=classes) for number, pair in enumerate(pairs, start=1)]
        if not folds:
            raise ValueError("`cv` gave no split.")
        return CVScheme(label or f"{len(folds)} given splits", tuple(folds), validates_search=self.validate_search)


def read_held_out(cv: Any) -> HeldOut:
    """Read the user's `cv`: None is leave-one-out, and anything but a `HeldOut` makes `Folds`."""
    if cv is None:
        return LeaveOneOut()
    if isinstance(cv, HeldOut):
        return cv
    is_splitter = hasattr(cv, "split") or isinstance(cv, Iterable)
    if is_whole(cv) or (is_splitter and not isinstance(cv, str | Mapping | type)):
        return Folds(cv)
    raise TypeError(
        "`cv` must be LeaveOneOut(), Folds(...) or TestSet(X, y), or in short None (leave-one-out), a number of folds, "
        f"a scikit-learn splitter or a sequence of (train, test) row numbers, got {cv!r}."
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
    if counts.min() < k:  # so that every class is in every fold
        k = int(counts.min())
    return StratifiedKFold(k, shuffle=True, random_state=seed).split(data.X, data.y)


def _read_split(number: int, split: Any, data: Data, *, classes: bool) -> Fold:
    everything = np.arange(data.y.size)
    try:
        train, test = (everything[np.asarray(rows)] for rows in split)
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"Split {number} of `cv` is no pair of row numbers (train, test) below {data.y.size}. Other rows to "
            "judge on are `cv=TestSet(X, y)`."
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


def prediction_metrics(y: np.ndarray, mean: np.ndarray, *, classes: bool) -> Mapping[str, float]:
    """Return metrics of predictive means, which are values, or the probability of class 1 or of each class, (n, C)."""
    if classes:
        return class_metrics(y, mean)
    mse = float(np.mean((y - mean) ** 2))
    return {"rmse": float(np.sqrt(mse)), "mse": mse}


def class_metrics(y: np.ndarray, probability: np.ndarray) -> Mapping[str, float]:
    """Return accuracy, precision, recall, F1, area under the ROC curve and Brier score.

    With more than two classes precision, recall and F1 are averaged over the classes, the area over ordered pairs of
    classes (Hand & Till 2001), and the Brier score is the squared distance between probabilities and outcome.
    """
    from sklearn.metrics import precision_recall_fscore_support  # when first used: importing the package stays fast

    several = probability.ndim == 2
    predicted = probability.argmax(axis=1) if several else (probability > 0.5).astype(float)
    # Of two classes only class 1 counts, of several all that occur or are predicted; 0 / 0 is 0.
    counted = np.union1d(y, predicted) if several else np.ones(1)
    precision, recall, f1, _ = precision_recall_fscore_support(
        y, predicted, labels=counted, average="macro", zero_division=0.0
    )
    outcome, areas = y, [] if several else [area_under_roc(y == 1, probability)]
    if several:
        outcome = np.eye(probability.shape[1])[y.astype(int)]
        for first, second in permutations(range(probability.shape[1]), 2):
            either = (y == first) | (y == second)
            areas.append(area_under_roc(y[either] == first, probability[either, first]))
    return {
        "accuracy": float(np.mean(predicted == y)),
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "auc": float(np.mean(areas)),
        "brier": float(np.mean(((probability - outcome) ** 2).reshape(y.size, -1).sum(axis=1))),
    }


def area_under_roc(is_class: np.ndarray, score: np.ndarray) -> float:
    """Return the probability that a row of the class has a larger score than one of the others; NaN without either."""
    from sklearn.metrics import roc_auc_score

    if is_class.all() or not is_class.any():
        return float("nan")
    return float(roc_auc_score(is_class, score))
