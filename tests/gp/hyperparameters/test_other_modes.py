"""Modes that starts of a search miss: one feature explains the target, or another one does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need

import gpsift as gs
from gpsift._utils.threads import blas_threads_for
from gpsift.gp.hyperparameters import nuts
from gpsift.gp.hyperparameters.coordinates import KNOTS, ByPrior, Round
from gpsift.gp.hyperparameters.nuts import prior_of_logarithms
from gpsift.gp.hyperparameters.other_modes import joined_modes, modes_of
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.kernels import SquaredExponential

KINDS = np.array(["lengthscale", "lengthscale", "noise_var"])
BY_PRIOR = ByPrior(np.tile(KNOTS[:, None], 3))
ONE, OTHER = np.array([0.3, -2.5, -1.0]), np.array([-3.6, 0.8, -1.0])


def hills(centres, log_shares, sd=0.4):
    def density(z):
        distances = (np.array(centres) - z) / sd
        heights = np.array(log_shares) - 0.5 * np.sum(distances**2, axis=1)
        total = np.logaddexp.reduce(heights)
        return float(total), np.exp(heights - total) @ distances / sd

    return density


@pytest.mark.parametrize("start", [ONE, OTHER], ids=["one", "other"])
def test_the_mode_of_the_other_feature_is_found(start):
    found = modes_of(hills([ONE, OTHER], [0.0, 0.0]), [start], KINDS)
    assert_allclose(sorted(found, key=lambda mode: mode[1]), [ONE, OTHER], atol=0.02)


def test_modes_without_a_valley_between_them_are_one():
    near = ONE + np.array([0.9, 0.0, 0.0])
    found = modes_of(hills([ONE, near], [0.0, 1.0]), [ONE, near], KINDS)
    assert len(found) == 1
    assert np.linalg.norm(found[0] - near) < np.linalg.norm(found[0] - ONE)


@pytest.mark.parametrize(("below", "n_modes"), [(4.5, 2), (5.5, 1)])
def test_modes_of_little_mass_are_left_out(below, n_modes):
    density = hills([ONE, OTHER], [0.0, -below])
    assert len(joined_modes(BY_PRIOR, density, np.array([ONE, OTHER]), KINDS).modes) == n_modes


def test_no_more_modes_are_joined_than_are_worth_it():
    centres = np.array([[1.2 * k - 4.0, (-1.0) ** k, 0.0] for k in range(7)])
    density = hills(centres, 0.1 * np.arange(7), sd=0.2)
    found = joined_modes(BY_PRIOR, density, centres, KINDS)
    assert_allclose(np.sort([mode.centre[0] for mode in found.modes]), centres[2:, 0], atol=0.02)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=100)
    return Problem.exact(SquaredExponential().for_features(2), X, (y - y.mean()) / y.std(), ("a", "b"))


def test_one_mode_keeps_its_own_coordinates(problem):
    start = np.zeros((1, 4))
    with blas_threads_for(100):
        assert isinstance(nuts.coordinates_for(problem, gs.MAP(), start[0], start), Round)


def test_chains_change_between_modes_that_no_start_has_found(problem, monkeypatch):
    """The density is a known one, of hills in coordinates of which the prior is normal."""
    need("nutpie")
    by_prior = ByPrior.of(prior_of_logarithms(gs.MAP()), problem.parameters, problem.log_units)
    centres = by_prior(np.array([0.3, -2.0, 0.0, 0.0]))[0], by_prior(np.array([-3.6, 0.8, 0.0, 0.0]))[0]
    density = hills(centres, np.log([0.6, 0.4]), sd=0.1)
    monkeypatch.setattr(nuts, "log_posterior", lambda *_: density)
    monkeypatch.setattr(nuts, "has_several_modes", lambda _below: True)
    with blas_threads_for(100):
        found = gs.NUTS(draws=250, keep=1000, progress=False, cores=1, seed=2).estimate(problem).draws
    assert found.trace.sample_stats["n_steps"].max() <= 3
    assert found.diagnostics["r_hat"] < 1.05
    is_other = np.abs(found.log_params[:, 0] - centres[1][0]) < 0.5
    assert abs(is_other.mean() - 0.4) < 4.0 * 0.5 / np.sqrt(found.diagnostics["ess"])
