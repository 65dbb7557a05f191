"""StepwiseRegression lines of a few columns, and what they miss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.selection.conditional_test.conditionals import (
    TEST_LEVEL,
    StepwiseRegression,
    cosine_statistics,
    evidence_gain,
    product_statistics,
)


def lines(rng, n=120, p=8):
    """Normal scores of columns, and of a target that depends on two of them."""
    X = rng.normal(size=(n, p))
    y = 0.8 * X[:, 1] - 0.5 * X[:, 4] + 0.6 * rng.normal(size=n)
    return normal_scores(y[:, None])[:, 0], normal_scores(X)


def test_rows_left_out_are_those_of_fits_without_them(rng):
    target, others = lines(rng)
    straight = StepwiseRegression.fit(target, others, 2.0)
    mean, var = straight.leave_one_out
    Z = (others - others.mean(axis=0))[:, [1, 4]]
    assert straight.basis.shape[1] == 2
    for i in (0, 50, 119):
        rest = np.arange(len(target)) != i
        slopes = np.linalg.lstsq(Z[rest], target[rest], rcond=None)[0]
        assert_allclose(mean[i], Z[i] @ slopes, rtol=1e-9)
    left = target - Z @ np.linalg.lstsq(Z, target, rcond=None)[0]
    leverage = np.einsum("ij,jk,ik->i", Z, np.linalg.inv(Z.T @ Z), Z)
    assert_allclose(var, left @ left / (len(target) - 2) / (1.0 - leverage), rtol=1e-9)


def test_the_gain_is_near_that_of_the_log_evidence():
    """Of one slope under a normal prior of the size that a single row would have, in the mean over data sets."""
    n, found, expected = 400, [], []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        x, e = rng.normal(size=n), rng.normal(size=n)
        y = 0.3 * x + e
        found.append(evidence_gain(np.corrcoef(x, y)[0, 1] ** 2, n))
        # log of N(y; 0, I + x x^T) over N(y; 0, I), by the determinant and the inverse of a rank-one change.
        expected.append(0.5 * (x @ y) ** 2 / (1.0 + x @ x) - 0.5 * np.log1p(x @ x))
    assert_allclose(np.mean(found), np.mean(expected), rtol=0.1)


def test_a_copy_leaves_nothing(rng):
    target, others = lines(rng)
    others[:, 3] = -target
    straight = StepwiseRegression.fit(target, others, 2.0)
    mean, var = straight.leave_one_out
    assert_allclose(mean, target, atol=1e-6)
    assert np.all((var >= 0) & (var < 1e-9))
    assert not straight.misses_nonlinearity(others)


def test_a_constant_target_has_no_columns(rng):
    _, others = lines(rng)
    straight = StepwiseRegression.fit(np.zeros(len(others)), others, 2.0)
    assert straight.basis.shape[1] == 0
    assert not straight.misses_nonlinearity(others)


def test_columns_that_the_chosen_ones_decide_are_left(rng):
    target, others = lines(rng)
    others = np.column_stack([others, others[:, 1], np.zeros(len(target))])
    assert StepwiseRegression.fit(target, others, 2.0).basis.shape[1] == 2


@pytest.mark.parametrize(
    "bent",
    [
        lambda X: X[:, 0] ** 2,
        lambda X: np.sin(3.0 * X[:, 0]),
        lambda X: X[:, 0] * X[:, 1],
        lambda X: X[:, 2] + 0.7 * np.abs(X[:, 0]),
    ],
    ids=["square", "wave", "product", "line and corner"],
)
def test_bends_are_missed(rng, bent):
    X = rng.normal(size=(200, 10))
    target = normal_scores((bent(X) + 0.5 * rng.normal(size=200))[:, None])[:, 0]
    others = normal_scores(X)
    assert StepwiseRegression.fit(target, others, 2.0).misses_nonlinearity(others)


def test_straight_lines_look_bent_as_seldom_as_they_may():
    n_bent = 0
    for seed in range(150):
        target, others = lines(np.random.default_rng(seed), n=80, p=6)
        n_bent += StepwiseRegression.fit(target, others, 2.0).misses_nonlinearity(others)
    assert n_bent <= 150 * 2 * TEST_LEVEL + 3 * np.sqrt(150 * 2 * TEST_LEVEL)


def test_deviations_are_those_of_noise(rng):
    """The spread of what noise gives is 1, for curves and for products, also of columns that go along, or have ties."""
    X = rng.normal(size=(100, 4))
    X[:, 1] += 2.0 * X[:, 0]
    X[:, 3] = X[:, 3] > 1.0
    scores, noise = normal_scores(X), rng.normal(size=(400, 100))
    noise -= noise.mean(axis=1, keepdims=True)
    for along in (cosine_statistics, product_statistics):
        spread = np.std([along(each, scores) for each in noise], axis=0)
        assert np.sum(spread == 0.0) <= 1  # a wave that has the same height at both values
        assert_allclose(spread[spread > 0.0], 1.0, atol=0.15)
