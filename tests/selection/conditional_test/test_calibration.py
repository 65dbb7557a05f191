"""Calibration of conditional distributions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.selection.conditional_test.axes import ContinuousAxis, DiscreteAxis, assess_calibration
from gpsift.selection.conditional_test.conditionals import make_tested_units
from gpsift.selection.data import Data


def fits(X, **features):
    data = Data.read(X, np.zeros(len(X)), {})
    units = make_tested_units(data, gs.Features(**features).units(data.names))
    return [assess_calibration(unit.axis, unit.draws) for unit in units]


def test_of_normal_columns_it_is_the_squared_multiple_correlation(rng):
    """Two columns with correlation 0.8, and one on its own."""
    X = rng.normal(size=(3000, 3))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    explained, calibration = np.array(fits(X)).T
    assert_allclose(explained, [0.64, 0.64, 0.0], atol=0.03)
    assert_allclose(calibration, 1.0, atol=0.03)


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_calibration_is_the_square_of_a_wrong_spread(rng, factor):
    axis = ContinuousAxis(rng.normal(size=2000))
    known, sd = 0.8 * axis.scores + 0.2, 0.3
    shifted = axis.draws(known + 0.1 * rng.normal(size=2000), np.full(2000, factor * sd))
    left = axis.scores - known
    expected = (np.mean(left**2) + 0.01) / (factor * sd) ** 2
    assert_allclose(
        assess_calibration(axis, shifted).calibration, expected, rtol=0.06
    )  # scores stay within those of the data


def test_of_levels_it_compares_probabilities_with_what_came(rng):
    """By hand: the Brier score against that of the shares, and against what the probabilities expect."""
    p = rng.uniform(0.05, 0.95, size=500)
    x = (rng.uniform(size=500) < p).astype(float)
    found = assess_calibration(axis := DiscreteAxis(x[:, None]), axis.draws_by_gp(p, np.zeros(500)))
    assert_allclose(found.explained, 1 - np.sum((x - p) ** 2) / np.sum((x - x.mean()) ** 2))
    assert_allclose(found.calibration, np.sum((x - p) ** 2) / np.sum(p * (1 - p)))


def test_copies_and_constants_are_explained_and_nothing_is_infinite(rng):
    x = rng.normal(size=80)
    found = np.array(fits(np.column_stack([x, x, np.ones(80), rng.normal(size=80)])))
    assert np.all(np.isfinite(found))
    assert np.all(found[:2, 0] > 0.99)
    assert_allclose(found[2], [1.0, 1.0])
    assert abs(found[3, 0]) < 0.2


def test_groups_are_looked_at_together(rng):
    X = rng.normal(size=(2000, 4))
    X[:, 1] = 0.8 * X[:, 0] + 0.6 * X[:, 1]
    explained, calibration = np.array(fits(X, groups={"pair": ["x2", "x3"]})).T
    assert_allclose(np.sort(explained), [0.0, 0.32, 0.64], atol=0.05)  # x4, the pair with x2 explained in it, x1
    assert_allclose(calibration, 1.0, atol=0.06)
