"""Moments along an axis against the function itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from gpsift.selection.conditional_test.axes import ContinuousAxis, DiscreteAxis, JointAxis, quantiles


@pytest.fixture
def column(rng):
    return np.exp(rng.normal(size=300))


def along(axis, function):
    """The curves of a function of the feature alone, the same for every row."""
    values = function(axis.values[:, 0])
    return np.broadcast_to(values[:, None], (len(axis.own), values.size, 1))


def smooth(x):
    return np.tanh(x - 1.0)


def test_own_values_lie_on_the_curve(column):
    axis = ContinuousAxis(column)
    found = np.einsum("ig,igc->i", axis.own, along(axis, smooth))
    # Between its points the curve is smoother than the steps from one value of the data to the next.
    assert np.sqrt(np.mean((found - smooth(column)) ** 2)) < 0.03


@pytest.mark.parametrize("sd", [0.05, 0.4, 1.0])
def test_moments_are_those_of_many_draws_of_the_conditional(rng, column, sd):
    axis = ContinuousAxis(column)
    mean = rng.normal(size=column.size)
    values = smooth(quantiles(column, mean[:, None] + sd * rng.normal(size=(column.size, 4000))))
    found_mean, found_cov = axis.draws(mean, np.full(column.size, sd)).moments(along(axis, smooth))
    assert_allclose(found_mean[:, 0], values.mean(axis=1), atol=0.04)
    assert_allclose(found_cov[:, 0, 0], values.var(axis=1), atol=0.025)


def test_levels_are_cut_from_normal_scores(rng):
    x = rng.choice([1.0, 2.0, 5.0], p=[0.5, 0.3, 0.2], size=400)
    axis = DiscreteAxis(x[:, None])
    redraws = axis.draws(np.zeros(400), np.ones(400))
    shares = [np.mean(x == value) for value in (1.0, 2.0, 5.0)]
    assert_allclose(redraws.weights, np.tile(shares, (400, 1)), rtol=1e-9)
    surely = axis.draws(np.full(400, 3.0), np.full(400, 0.01))
    assert_allclose(surely.weights[:, 2], 1.0, atol=1e-9)
    assert_allclose(np.einsum("ig,igc->i", axis.own, along(axis, np.square)), x**2)


def test_moments_of_levels_are_sums_over_them(rng):
    axis = DiscreteAxis(rng.integers(0, 2, size=(50, 1)).astype(float))
    probability = rng.uniform(size=50)
    redraws = axis.draws_by_gp(probability, np.zeros(50))
    curves = rng.normal(size=(50, 2, 2))
    mean, cov = redraws.moments(curves)
    rise = curves[:, 1] - curves[:, 0]
    assert_allclose(mean, curves[:, 0] + probability[:, None] * rise)
    spread = probability * (1.0 - probability)
    assert_allclose(cov, spread[:, None, None] * rise[:, :, None] * rise[:, None, :])


def test_columns_that_move_together_have_their_joint_conditional(rng):
    rows = rng.normal(size=(500, 2))
    root = np.array([[0.6, 0.0], [0.3, 0.4]])
    axis = JointAxis(rows, np.zeros((500, 2)), root)
    values = axis.values[0]
    assert_allclose(np.cov(values, rowvar=False), root @ root.T, atol=0.06)
    assert axis.own is None


def test_quantiles_stay_within_the_data(column):
    assert_allclose(quantiles(column, np.array([-9.0, 9.0])), [column.min(), column.max()])
    assert_allclose(np.mean(column <= quantiles(column, np.array(0.7))), ndtr(0.7), atol=0.01)
