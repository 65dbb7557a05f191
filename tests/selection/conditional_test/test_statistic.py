"""The statistic against draws of what it stands for."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import ndtr

from gpsift.selection.conditional_test.folds import StatisticSums


def test_mean_and_variance_are_those_of_a_feature_that_is_drawn_anew(rng):
    """Two predictions of each row, a feature with a normal conditional, and residuals that have seen all but it."""
    n, draws = 30, 100_000
    mean, sd = rng.normal(size=n), rng.uniform(0.2, 1.0, size=n)
    residual = rng.standard_t(4, size=(n, 2))

    def predicted(x):
        return np.stack([np.sin(2.0 * x), x**2], axis=-1)

    x = mean + sd * rng.normal(size=(draws, n))
    values = predicted(x)
    expected = values.mean(axis=0)
    off = values - expected
    covariance = np.einsum("dic,die->ice", off, off) / draws
    products = np.einsum("ic,dic->d", residual, off)
    sums = StatisticSums.of(residual, predicted(mean) - expected, covariance)
    assert_allclose(sums.variance, products.var(), rtol=0.02)
    assert_allclose(sums.products, np.sum(residual * (predicted(mean) - expected)))


def test_sums_of_parts_add_up(rng):
    residual, deviation = rng.normal(size=(2, 12, 3))
    root = rng.normal(size=(12, 3, 3))
    covariance = root @ np.swapaxes(root, 1, 2)
    whole = StatisticSums.of(residual, deviation, covariance)
    parts = [
        StatisticSums.of(residual[rows], deviation[rows], covariance[rows]) for rows in (slice(0, 5), slice(5, 12))
    ]
    assert_allclose((parts[0] + parts[1]).z, whole.z)
    assert_allclose(whole.p, 1.0 - ndtr(whole.z))


def test_the_larger_variance_counts():
    few = StatisticSums(products=2.0, variance=1.0, squares=4.0)
    assert few.z == 1.0
    assert StatisticSums(products=2.0, variance=4.0, squares=1.0).z == 1.0


def test_a_feature_that_nobody_uses_has_no_chance():
    assert StatisticSums().z == -np.inf
    assert StatisticSums().p == 1.0
