"""How good predictions are, besides their log density."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import numpy as np

from gpsift.gp.hyperparameters.score_tests import average_ranks


def prediction_metrics(y: np.ndarray, mean: np.ndarray, *, classes: bool) -> Mapping[str, float]:
    """Metrics of predictive means: of values, or of the probability of class 1 or of each class, (n, C)."""
    if classes:
        return class_metrics(y, mean)
    mse = float(np.mean((y - mean) ** 2))
    return {"rmse": float(np.sqrt(mse)), "mse": mse}


def class_metrics(y: np.ndarray, probability: np.ndarray) -> Mapping[str, float]:
    """Accuracy, precision, recall, F1, area under the ROC curve and Brier score.

    With more than two classes precision, recall and F1 are averaged over the classes, the area over pairs of classes,
    and the Brier score is the squared distance between probabilities and outcome.
    """
    several = probability.ndim == 2
    predicted = probability.argmax(axis=1) if several else (probability > 0.5).astype(float)
    precision, recall, f1 = np.mean(
        [found_class(y == c, predicted == c) for c in _judged(y, predicted, several)], axis=0
    )
    outcome = np.eye(probability.shape[1])[y.astype(int)] if several else y
    return {
        "accuracy": float(np.mean(predicted == y)),
        "precision": float(precision),
        "recall": float(recall),
        "f1": float(f1),
        "auc": mean_pair_area(y, probability) if several else area_under_roc(y == 1, probability),
        "brier": float(np.mean(((probability - outcome) ** 2).reshape(y.size, -1).sum(axis=1))),
    }


def _judged(y: np.ndarray, predicted: np.ndarray, several: bool) -> np.ndarray:
    """The classes that count: those that were seen or predicted, of two only class 1."""
    return np.union1d(y, predicted) if several else np.ones(1)


def found_class(is_class: np.ndarray, is_predicted: np.ndarray) -> tuple[float, float, float]:
    """Precision, recall and F1 of one class, 0 where nothing is divided by nothing."""
    right, n_class, n_predicted = (int(np.count_nonzero(a)) for a in (is_class & is_predicted, is_class, is_predicted))
    return right / max(n_predicted, 1), right / max(n_class, 1), 2 * right / max(n_predicted + n_class, 1)


def area_under_roc(is_class: np.ndarray, score: np.ndarray) -> float:
    """The chance that a row of the class has a larger score than one of the others; NaN where there are none of either.

    By the sum of the ranks of the class (Mann & Whitney 1947), in which ties count half.
    """
    n_class = int(np.count_nonzero(is_class))
    n_pairs = n_class * (is_class.size - n_class)
    if n_pairs == 0:
        return float("nan")
    return float((average_ranks(score[:, None])[is_class].sum() - 0.5 * n_class * (n_class + 1)) / n_pairs)


def mean_pair_area(y: np.ndarray, probability: np.ndarray) -> float:
    """The area averaged over pairs of classes, each by the probabilities of both (Hand & Till 2001)."""
    areas = []
    for first, second in permutations(range(probability.shape[1]), 2):
        either = (y == first) | (y == second)
        areas.append(area_under_roc(y[either] == first, probability[either, first]))
    return float(np.mean(areas))
