"""Modes that lie over one another: whatever the coordinates around them, the distribution of the draws is the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need

import gpsift as gs
from gpsift._utils.threads import blas_threads_for
from gpsift.gp.hyperparameters import nuts
from gpsift.gp.hyperparameters.coordinates import KNOTS, Axes, PriorQuantiles, Whitened
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.warp_u import WarpU, find_modes
from gpsift.kernels import SquaredExponential

CENTRES = np.array([[0.0, 1.0, -1.0], [7.0, -3.0, 2.0]])
SDS = np.array([[0.5, 1.0, 0.3], [0.2, 0.6, 1.5]])
SHARES = np.array([0.3, 0.7])


def identity(n_parameters):
    return PriorQuantiles(np.tile(KNOTS[:, None], n_parameters))


def two_hills(s):
    """Normal hills more than ten standard deviations apart, and the gradient."""
    distances = (CENTRES - s) / SDS
    heights = np.log(SHARES / SDS.prod(axis=1)) - 0.5 * np.sum(distances**2, axis=1)
    total = np.logaddexp.reduce(heights)
    return float(total), np.exp(heights - total) @ (distances / SDS)


def warped(centres, axes, heights):
    by_prior = identity(len(centres[0]))
    return WarpU(
        tuple(Whitened(by_prior, Axes(*each)) for each in zip(centres, axes, strict=True)),
        np.array(heights),
    )


@pytest.mark.parametrize("heights", [(0.0, 0.0), (1.0, -2.0)])
@pytest.mark.parametrize("second_sd", [0.4, 1.3])
def test_a_density_moved_there_and_back_is_the_same(heights, second_sd):
    """By sums over a grid; centres, widths and heights of the modes are off on purpose."""

    def density(s):
        means, sds = np.array([-1.5, 2.0]), np.array([0.5, 0.9])
        hills = SHARES @ (np.exp(-0.5 * ((s - means) / sds) ** 2) / (sds * np.sqrt(2.0 * np.pi)))
        return float(np.log(hills)), np.zeros(1)

    coordinates = warped(np.array([[-1.2], [1.5]]), np.array([[[0.7]], [[second_sd]]]), heights)
    grid = np.linspace(-16.0, 16.0, 801)
    moments = np.zeros(3)
    for w in grid[:, None]:
        terms, _ = coordinates._terms(density, w)
        places = coordinates.points(w)[:, 0]
        moments += np.exp(terms) @ np.column_stack([np.ones(2), places, places**2])
    expected = [1.0, SHARES @ [-1.5, 2.0], SHARES @ [1.5**2 + 0.25, 4.0 + 0.81]]
    assert_allclose(moments * (grid[1] - grid[0]), expected, rtol=1e-6)


@pytest.fixture
def around_hills():
    axes = np.array([np.diag(sd) for sd in SDS]) + 0.05
    return warped(CENTRES + 0.1, axes, (0.5, -0.5))


def test_gradients_match_central_differences():
    """Where modes share places with one another: their axes are too wide."""
    wide = warped(CENTRES, 6.0 * np.array([np.diag(sd) for sd in SDS]) + 0.05, (0.5, -0.5))
    density, step = wide.density(two_hills), 1e-5
    for w in (np.array([0.3, -0.8, 0.5]), np.array([-1.5, 0.1, 2.0])):
        expected = [(density(w + step * e)[0] - density(w - step * e)[0]) / (2.0 * step) for e in np.eye(3)]
        assert_allclose(density(w)[1], expected, rtol=1e-5, atol=1e-6)


def test_a_place_where_nothing_can_be_computed_has_no_density(around_hills):
    density = around_hills.density(lambda s: (-np.inf, np.zeros_like(s)))
    value, gradient = density(np.ones(3))
    assert value == -np.inf
    assert np.array_equal(gradient, np.zeros(3))


def test_a_draw_is_the_same_whether_its_place_is_remembered_or_not(around_hills):
    places = np.random.default_rng(0).normal(size=(40, 3))
    fresh = around_hills.to_params(two_hills, np.random.default_rng(1))
    first = [fresh(w) for w in places]
    again = around_hills.to_params(None, np.random.default_rng(1))  # would fail if it were asked
    assert np.array_equal(first, [again(w) for w in places])
    assert len({*np.round(np.array(first)[:, 0] / 7.0)}) == 2


def test_what_is_remembered_does_not_grow_without_end(around_hills):
    density = around_hills.density(two_hills)
    for w in np.random.default_rng(0).normal(size=(1100, 3)):
        density(w)
    assert len(around_hills._remembered) <= 512


def test_chains_know_what_two_modes_weigh_that_no_chain_could_cross(around_hills):
    need("nutpie")
    rng = np.random.default_rng(0)
    problem = Problem.exact(SquaredExponential().for_features(1), rng.normal(size=(9, 1)), rng.normal(size=9), ("a",))
    model = nuts._compiled_model(problem, lambda: two_hills, CENTRES, around_hills)
    sampler, _ = nuts._import_sampler()
    trace = sampler.sample(model, draws=400, tune=100, chains=2, cores=1, seed=1, maxdepth=2, progress_bar=False)
    found = nuts.diagnose(trace)
    assert found["r_hat"] < 1.02
    draws = trace.posterior["log_params"].values.reshape(-1, 3)
    second = draws[:, 0] > 3.5
    # Four standard errors of a share, and of means and standard deviations, of as many draws as these are worth.
    error = 4.0 / np.sqrt(found["ess"])
    assert abs(second.mean() - 0.7) < 0.5 * error
    for hill, centre, sd in zip((draws[~second], draws[second]), CENTRES, SDS, strict=True):
        assert np.all(np.abs(hill.mean(axis=0) - centre) < 2.0 * error * sd)
        assert_allclose(hill.std(axis=0), sd, rtol=2.0 * error)


IS_LENGTHSCALE = np.array([True, True, False])
BY_PRIOR = PriorQuantiles(np.tile(KNOTS[:, None], 3))
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
    found = find_modes(hills([ONE, OTHER], [0.0, 0.0]), [start], IS_LENGTHSCALE)
    assert_allclose(sorted(found, key=lambda mode: mode[1]), [ONE, OTHER], atol=0.02)


def test_modes_without_a_valley_between_them_are_one():
    near = ONE + np.array([0.9, 0.0, 0.0])
    found = find_modes(hills([ONE, near], [0.0, 1.0]), [ONE, near], IS_LENGTHSCALE)
    assert len(found) == 1
    assert np.linalg.norm(found[0] - near) < np.linalg.norm(found[0] - ONE)


@pytest.mark.parametrize(("below", "n_modes"), [(4.5, 2), (5.5, 1)])
def test_modes_of_little_mass_are_left_out(below, n_modes):
    density = hills([ONE, OTHER], [0.0, -below])
    assert len(WarpU.of_modes(BY_PRIOR, density, np.array([ONE, OTHER]), IS_LENGTHSCALE).modes) == n_modes


def test_no_more_modes_are_joined_than_are_worth_it():
    centres = np.array([[1.2 * k - 4.0, (-1.0) ** k, 0.0] for k in range(7)])
    density = hills(centres, 0.1 * np.arange(7), sd=0.2)
    found = WarpU.of_modes(BY_PRIOR, density, centres, IS_LENGTHSCALE)
    assert_allclose(np.sort([mode.affine.center[0] for mode in found.modes]), centres[2:, 0], atol=0.02)


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=100)
    return Problem.exact(SquaredExponential().for_features(2), X, (y - y.mean()) / y.std(), ("a", "b"))


def test_one_mode_keeps_its_own_coordinates(problem):
    start = np.zeros((1, 4))
    with blas_threads_for(100):
        assert isinstance(nuts.coordinates_for(problem, gs.MAP(), start[0], start), Whitened)


def test_chains_change_between_modes_that_no_start_has_found(problem, monkeypatch):
    """The density is a known one, of hills in coordinates of which the prior is normal."""
    need("nutpie")
    by_prior = PriorQuantiles.of_prior(gs.MAP().log_prior_of_logarithms, problem.parameters, problem.log_units)
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
