"""Features at long length-scales, where a search has left them behind."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from gpsift.gp.hyperparameters import Problem
from gpsift.gp.hyperparameters.left_behind import BACK, IDLE, SHORTER, idle_back, shorter_where_better
from gpsift.gp.inference import ExactInference
from gpsift.kernels import Constant, SquaredExponential
from gpsift.likelihoods import Gaussian

RNG = np.random.default_rng(2)
X = RNG.normal(size=(120, 4))
X /= X.std(axis=0)
Y = np.sin(2.0 * X[:, 0]) + 0.4 * np.sin(3.0 * X[:, 1]) + 0.3 * X[:, 2] + 0.1 * RNG.normal(size=120)
UNIT = 2.0  # where searches begin with four features


@pytest.fixture
def problem():
    kernel = (SquaredExponential() + Constant()).for_features(4)
    return Problem(kernel, Gaussian(), X, Y, ExactInference(X, Y), ("a", "b", "c", "d"))


def at(*lengths, signal_var=1.0, noise_var=0.05):
    return np.log([*lengths, signal_var, 0.1, noise_var])


def test_idle_features_come_back_and_others_stay(problem):
    lengths = [0.3, 1.01 * IDLE * UNIT, 0.99 * IDLE * UNIT, np.inf]
    found = idle_back(problem, at(*lengths))
    assert_allclose(np.exp(found[:4]), [0.3, BACK * UNIT, lengths[2], np.inf])
    assert_array_equal(found[4:], at(*lengths)[4:])


def test_a_feature_that_bends_is_tried_at_shorter_length_scales(problem):
    start = at(0.8, 6.0, 6.0, np.inf)
    found = shorter_where_better(problem, start)
    tried = {factor: at(0.8, factor * UNIT, 6.0, np.inf) for factor in SHORTER}
    best = max(SHORTER, key=lambda factor: problem.log_evidence(tried[factor]))
    assert np.exp(found[1]) == pytest.approx(best * UNIT)
    assert problem.log_evidence(found) > problem.log_evidence(start) + 5.0
    assert_array_equal(found[[0, 3, 4, 5, 6]], start[[0, 3, 4, 5, 6]])


def test_a_line_stays_a_line(problem):
    """Its large signal variance goes with its length-scale, and would be ruinous with a short one."""
    y = X @ [1.0, 0.5, 0.3, 0.2] + 0.1 * RNG.normal(size=120)
    linear = replace(problem, y=y, engine=ExactInference(X, y))
    start = at(30.0, 60.0, 100.0, 150.0, signal_var=900.0, noise_var=0.01)
    assert_array_equal(shorter_where_better(linear, start), start)
    bent = at(2.0, 60.0, 100.0, 150.0, signal_var=900.0, noise_var=0.01)
    assert linear.log_evidence(bent) < linear.log_evidence(start) - 10.0
