"""Metrics of classes against those of scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics

from gpsift.selection.cross_validation import area_under_roc, class_metrics


def several(rng, n=60, n_classes=4):
    """Probabilities in steps of a tenth, so that some tie."""
    probability = rng.dirichlet(np.ones(n_classes), size=n).round(1) + 0.01
    probability /= probability.sum(axis=1, keepdims=True)
    return rng.integers(n_classes, size=n).astype(float), probability


def expected(y, predicted, average):
    how = {"average": average, "zero_division": 0.0}
    scores = (metrics.precision_score, metrics.recall_score, metrics.f1_score)
    return [score(y, predicted, **how) for score in scores]


@pytest.mark.parametrize("n_classes", [3, 4])
def test_several_classes(rng, n_classes):
    y, probability = several(rng, n_classes=n_classes)
    found = class_metrics(y, probability)
    predicted = probability.argmax(axis=1)
    assert [found["precision"], found["recall"], found["f1"]] == pytest.approx(expected(y, predicted, "macro"))
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, probability, multi_class="ovo"))
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(y, predicted))
    assert found["brier"] == pytest.approx(
        np.mean(np.sum((probability - np.eye(n_classes)[y.astype(int)]) ** 2, axis=1))
    )


def test_a_class_that_is_never_predicted_counts_as_zero(rng):
    y, probability = several(rng, n_classes=3)
    probability[:, 2] = 0.0
    found = class_metrics(y, probability)
    assert [found["precision"], found["recall"], found["f1"]] == pytest.approx(
        expected(y, probability.argmax(axis=1), "macro")
    )


def test_a_class_that_is_predicted_but_never_seen_counts_as_zero(rng):
    y, probability = several(rng, n_classes=3)
    y[y == 2] = 0.0
    found = class_metrics(y, probability)
    assert [found["precision"], found["recall"], found["f1"]] == pytest.approx(
        expected(y, probability.argmax(axis=1), "macro")
    )


def test_a_class_that_is_neither_seen_nor_predicted_does_not_count(rng):
    y, probability = several(rng, n_classes=3)
    y[y == 2] = 0.0
    probability[:, 2] = 0.0
    found = class_metrics(y, probability)
    assert [found["precision"], found["recall"], found["f1"]] == pytest.approx(
        expected(y, probability.argmax(axis=1), "macro")
    )
    assert np.isnan(found["auc"])


@pytest.mark.parametrize("share", [0.0, 0.4])  # with 0 nothing is predicted
def test_two_classes(rng, share):
    y, p = (rng.uniform(size=50) < 0.4).astype(float), (rng.uniform(size=50) * (1.0 + share) / 2.0).round(2)
    found = class_metrics(y, p)
    assert [found["precision"], found["recall"], found["f1"]] == pytest.approx(expected(y, p > 0.5, "binary"))
    assert found["auc"] == pytest.approx(metrics.roc_auc_score(y, p))
    assert found["brier"] == pytest.approx(metrics.brier_score_loss(y, p))


def test_no_area_with_one_class():
    assert np.isnan(area_under_roc(np.ones(3, bool), np.arange(3.0)))
