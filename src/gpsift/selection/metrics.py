"""How good predictions are, besides their log density."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


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
    from sklearn import metrics

    several = probability.ndim == 2
    predicted = probability.argmax(axis=1) if several else (probability > 0.5).astype(float)
    how = {"average": "macro" if several else "binary", "zero_division": 0.0}
    complete = np.unique(y).size == (probability.shape[1] if several else 2)
    auc = metrics.roc_auc_score(y, probability, **({"multi_class": "ovo"} if several else {})) if complete else np.nan
    outcome = np.eye(probability.shape[1])[y.astype(int)] if several else y
    return {
        "accuracy": float(np.mean(predicted == y)),
        "precision": float(metrics.precision_score(y, predicted, **how)),
        "recall": float(metrics.recall_score(y, predicted, **how)),
        "f1": float(metrics.f1_score(y, predicted, **how)),
        "auc": float(auc),
        "brier": float(np.mean(((probability - outcome) ** 2).reshape(y.size, -1).sum(axis=1))),
    }
