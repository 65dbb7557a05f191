"""Draws around a mode, against a grid of the whole posterior, known distributions and ArviZ."""

from itertools import chain, islice

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import need
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import approx_fprime

import gpsift as gs
from gpsift._utils.pareto import pareto_shape
from gpsift.gp.hyperparameters.coordinates import CubeRoots, find_mode
from gpsift.gp.hyperparameters.laplace_approximation import (
    BLOCK,
    DF,
    LaplaceApproximation,
    Mixture,
    SplitT,
    negative_hessian,
    newton_step,
    prior_of_draws,
)
from gpsift.gp.hyperparameters.nuts import log_posterior
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.refit import dense_problem
from gpsift.kernels import SquaredExponential


def draws_of(mixture, seed):
    """Its draws one by one, without end."""
    return chain.from_iterable(mixture.blocks(seed))


@pytest.fixture(scope="module")
def small():
    """A problem with three hyperparameters, and its rows."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=30)
    y = np.sin(1.5 * x) + 0.3 * rng.normal(size=30)
    x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
    return Problem.exact(SquaredExponential().for_features(1), x[:, None], y, ("x1",)), x, y


def log_posterior_on_grid(x, y, log_l, log_s, log_e, prior):
    """Of logarithms of length-scale, signal and noise variance at every combination, by NumPy and SciPy alone."""
    length, s, e = np.meshgrid(np.exp(log_l), np.exp(log_s), np.exp(log_e), indexing="ij")
    value = np.empty(length.shape)
    squares = (x[:, None] - x) ** 2
    for i in range(log_l.size):
        K = s[i][..., None, None] * np.exp(-0.5 * squares / np.exp(2 * log_l[i])) + e[i][..., None, None] * np.eye(
            x.size
        )
        _, log_det = np.linalg.slogdet(K)
        value[i] = -0.5 * (log_det + np.linalg.solve(K, y[:, None])[..., 0] @ y + x.size * np.log(2 * np.pi))
    scale = prior.lengthscale.scale
    value += stats.invgamma(1.0, scale=scale).logpdf(length) + np.log(length)
    for var in (s, e):  # half-t with 4 degrees of freedom of the standard deviation
        value += stats.t(4).logpdf(np.sqrt(var)) + 0.5 * np.log(var)
    return value


def weighted_quantiles(values, weights, levels):
    order = np.argsort(values)
    return np.interp(levels, (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum(), values[order])


def test_draws_agree_with_the_whole_posterior(small):
    problem, x, y = small
    log_l, log_s, log_e = np.linspace(-1.5, 3, 45), np.linspace(-3, 6, 45), np.linspace(-5, 1.5, 40)
    log_density = log_posterior_on_grid(x, y, log_l, log_s, log_e, prior_of_draws())
    weights = np.exp(log_density - log_density.max())
    draws = np.array(
        [draw.log_params for draw in LaplaceApproximation.fit(problem, problem.log_params).draws(4000, seed=0)]
    )
    for axis, grid in enumerate((log_l, log_s, log_e)):
        marginal = weights.sum(axis=tuple({0, 1, 2} - {axis}))
        low, high = weighted_quantiles(grid, marginal, [0.05, 0.95])
        ends = np.quantile(draws[:, axis], [0.05, 0.95])
        assert np.all(np.abs(ends - [low, high]) < 0.1 * (high - low))


def test_log_ratios_are_those_of_posterior_and_approximation(small):
    problem, *_ = small
    around = LaplaceApproximation.fit(problem, problem.log_params)
    density = around.coordinates.density(log_posterior(problem, prior_of_draws()))
    (part,) = around.mixture.parts
    assert part.mode[0] > 6 * np.linalg.norm(part.axes[0])  # all draws are possible
    expected = [density(u)[0] - around.mixture.log_density(u) for u in islice(draws_of(around.mixture, 3), 20)]
    found = [draw.log_ratio + problem.evidence(draw.log_params).value for draw in around.draws(20, seed=3)]
    assert_allclose(found, expected, atol=1e-8)


def test_impossible_draws_are_left_out():
    """Of a feature that does nothing the root is close to 0, and is never negative."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(25, 1)), rng.normal(size=25)
    problem = Problem.exact(SquaredExponential().for_features(1), X, y, ("x1",))
    around = LaplaceApproximation.fit(problem, problem.log_params)
    assert any(u[0] < 0 for u in islice(draws_of(around.mixture, 0), 1000))
    log_lengths = [draw.log_params[0] for draw in around.draws(1000, seed=0)]
    positive = [u[0] for u in islice(draws_of(around.mixture, 0), 1100) if u[0] > 0]
    assert_allclose(log_lengths[:900], (-3 * np.log(positive) + problem.log_units[0])[:900])


def test_a_switched_off_feature_is_open(small):
    """The posterior of two inputs, one of which the fit has switched off, does not depend on that."""
    _, x, y = small
    X = np.column_stack([x, np.random.default_rng(1).normal(size=x.size)])
    problem = Problem.exact(SquaredExponential().for_features(2), X, y, ("x1", "x2"))
    start = problem.log_params
    switched_off = start.copy()
    switched_off[1] = np.inf
    modes = [LaplaceApproximation.fit(problem, each).mixture.parts[0].mode for each in (start, switched_off)]
    assert_allclose(np.abs(modes[0]), np.abs(modes[1]), atol=0.02)


def test_a_search_ends_at_a_place_that_is_known():
    """And in units of typical widths it ends where it does without."""
    mode, seen = np.array([3.0, -2.0]), []

    def density(u):
        seen.append(u)
        return -0.25 * float(np.sum((u - mode) ** 4)), -((u - mode) ** 3)

    assert_allclose(find_mode(density, np.zeros(2), np.array([0.1, 2.0])), mode, atol=0.05)
    n_until_the_end = len(seen)
    end = find_mode(density, np.zeros(2), np.array([0.1, 2.0]), lambda u: np.linalg.norm(u - mode) < 1.0)
    assert len(seen) - n_until_the_end < n_until_the_end
    assert 0.05 < np.linalg.norm(end - mode) < 1.0


class TestCoordinates:
    coordinates = CubeRoots(np.array([True, True, False]), np.array([0.2, -0.1, 0.3]))

    def test_there_and_back(self):
        log_params = np.array([0.3, 4.0, -2.0])
        assert_allclose(self.coordinates.at(self.coordinates.of(log_params)).params, log_params, atol=1e-12)

    def test_a_search_may_pass_zero(self):
        assert_allclose(self.coordinates.at(np.array([-0.5, 0.7, 1.0])).params[0], -3 * np.log(0.5) + 0.2)

    def test_the_gradient_is_that_of_the_density(self):
        def of_log_params(log_params):
            return -0.5 * float(log_params @ log_params), -log_params

        density = self.coordinates.density(of_log_params)
        u = np.array([0.8, 1.3, 0.4])
        assert_allclose(density(u)[1], approx_fprime(u, lambda v: density(v)[0], 1e-7), rtol=1e-4)

    def test_the_density_integrates_to_the_same(self):
        one = CubeRoots(np.array([True]), np.zeros(1))
        density = one.density(lambda log_params: (float(stats.norm(0.5, 0.8).logpdf(log_params[0])), np.zeros(1)))
        assert_allclose(quad(lambda u: np.exp(density(np.array([u]))[0]), 0, 5)[0], 1.0, rtol=1e-6)


class TestMode:
    """Of a density that is a little skew, in powers and logarithms."""

    coordinates = CubeRoots(np.array([True, False, False]), np.zeros(3))
    mode, precision = np.array([0.7, -1.0, 2.0]), np.array([[60.0, 3.0, 1.0], [3.0, 2.0, 0.5], [1.0, 0.5, 4.0]])

    def density(self, u):
        off = u - self.mode
        slopes = -self.precision @ off
        slopes[1] -= 0.3 * off[1] ** 2
        return -0.5 * float(off @ self.precision @ off) - 0.1 * off[1] ** 3, slopes

    def test_curvatures_from_one_side_are_those_from_both(self):
        for place in (self.mode, self.mode + np.array([0.02, 0.3, -0.1])):
            exact = self.precision + np.diag([0.0, 0.6 * (place - self.mode)[1], 0.0])
            one_side = negative_hessian(self.density, place, self.coordinates, self.density(place)[1])
            assert_allclose(one_side, exact, rtol=1e-4)
            assert_allclose(negative_hessian(self.density, place, self.coordinates), exact, rtol=1e-8)

    def test_one_side_takes_half_of_the_evaluations(self):
        asked = []

        def density(u):
            asked.append(u)
            return self.density(u)

        negative_hessian(density, self.mode, self.coordinates, np.zeros(3))
        assert len(asked) == 3
        negative_hessian(density, self.mode, self.coordinates)
        assert len(asked) == 9

    def test_slopes_in_single_precision_are_not_exact(self, small):
        problem, *_ = small
        assert problem.engine.has_exact_slopes
        assert not problem.stateless().engine.has_exact_slopes

    def test_a_step_leads_to_the_mode_from_near(self):
        near, far = self.mode + np.array([[0.05, 0.2, -0.1], [0.3, 2.0, 2.0]])
        steps = [
            newton_step(negative_hessian(self.density, place, self.coordinates, slopes), slopes)
            for place, slopes in ((place, self.density(place)[1]) for place in (near, far))
        ]
        assert_allclose(near + steps[0], self.mode, atol=0.02)
        assert_array_equal(steps[1], 0.0)

    def test_the_mode_that_is_found_has_no_slope(self, small):
        problem, *_ = small
        around = LaplaceApproximation.fit(problem, problem.log_params)
        (part,) = around.mixture.parts
        slopes = around.coordinates.density(log_posterior(problem, prior_of_draws()))(part.mode)[1]
        assert np.linalg.norm(part.axes.T @ slopes) < 1e-5


class TestSplitT:
    def test_a_normal_density_is_found_exactly(self):
        covariance = np.array([[2.0, 0.6], [0.6, 0.5]])
        precision, mode = np.linalg.inv(covariance), np.array([1.0, -2.0])

        def density(u):
            off = u - mode
            return -0.5 * float(off @ precision @ off), -precision @ off

        plain = CubeRoots(np.zeros(2, bool), np.zeros(2))
        top = find_mode(density, np.zeros(2))
        found = SplitT.at(top, negative_hessian(density, top, plain), lambda u: density(u)[0])
        assert_allclose(top, mode, atol=1e-5)
        assert_allclose(found.axes @ found.axes.T, covariance, rtol=1e-6)
        assert_allclose(found.widths, 1.0, rtol=1e-4)
        draws = np.array(list(islice(draws_of(Mixture((found,)), 0), 20_000)))
        assert_allclose(np.cov(draws.T), covariance * DF / (DF - 2), atol=0.06)

    def test_sides_have_their_widths(self):
        split = SplitT(np.zeros(1), np.eye(1), np.array([[2.0], [0.5]]))
        values = np.array(list(islice(draws_of(Mixture((split,)), 1), 40_000)))[:, 0]
        assert_allclose(np.mean(values > 0), 0.8, atol=0.01)
        for side, width in ((values[values > 0], 2.0), (-values[values < 0], 0.5)):
            assert stats.kstest(side / width, lambda x: 2 * stats.t(DF).cdf(x) - 1).pvalue > 0.01
        for value in (-0.7, 0.1, 3.0):
            expected = stats.t(DF).logpdf(value / (2.0 if value > 0 else 0.5)) - stats.t(DF).logpdf(0)
            assert_allclose(split.log_density(np.array([value])), expected - np.log(1.25), atol=1e-12)

    def test_densities_integrate_to_the_same(self):
        """Whatever axes and widths."""
        grid = np.linspace(-25, 25, 151)
        for axes, widths in (
            (np.eye(2), np.ones((2, 2))),
            (np.array([[1.5, 0.3], [0.2, 0.6]]), np.array([[2.0, 0.7], [0.5, 1.2]])),
        ):
            split = SplitT(np.array([0.3, -0.2]), axes, widths)
            total = np.sum([[np.exp(split.log_density(np.array([a, b]))) for a in grid] for b in grid]) / 9
            assert_allclose(total, 2 * np.pi, rtol=2e-3)


class TestMixture:
    """Of two modes, a wide one and a narrow one that is higher."""

    parts = (
        SplitT(np.array([-4.0]), np.array([[2.0]]), np.ones((2, 1)), top=-1.0),
        SplitT(np.array([5.0]), np.array([[0.5]]), np.ones((2, 1)), top=0.5),
    )

    def test_a_mode_weighs_what_is_around_it(self):
        masses = np.array([2.0 * np.exp(-1.0), 0.5 * np.exp(0.5)])
        assert_allclose(np.exp(Mixture(self.parts).log_weights), masses / masses.sum())
        draws = np.array(list(islice(draws_of(Mixture(self.parts), 0), 4000)))
        assert_allclose(np.mean(draws > 2.5), masses[1] / masses.sum(), atol=0.02)

    def test_the_density_is_that_of_all(self):
        mixture, u = Mixture(self.parts), np.array([1.0])
        each = [np.exp(part.log_density(u)) for part in self.parts]
        assert_allclose(np.exp(mixture.log_density(u)), np.exp(mixture.log_weights) @ each)


def test_modes_that_are_as_high_are_both_in():
    """A smooth function with much noise, or a rough one with little: these rows leave it open."""
    rng = np.random.default_rng([1, 77])
    X = rng.standard_normal((80, 6))
    U = X / np.array([1.0, 1.5, 3.0, 6.0, 1e6, 1e6])
    K = np.exp(-0.5 * ((U[:, None] - U) ** 2).sum(axis=-1))
    y = np.linalg.cholesky(K + 1e-9 * np.eye(80)) @ rng.standard_normal(80) + 0.3 * rng.standard_normal(80)
    gp = gs.GP(hyper=gs.MAP(starts=1)).fit(X, y)
    prior = gs.MAP(lengthscale=gs.InverseGamma(1.0, 1.0), constant=gs.GammaPrior(4.0, 4.0), starts=1)
    parts = LaplaceApproximation.fit(dense_problem(gp), gp.log_params, prior).mixture.parts
    assert len(parts) == 2
    assert parts[0].top - parts[1].top < 2.0
    assert abs(parts[0].mode[-1] - parts[1].mode[-1]) > 0.8  # the logarithm of the noise


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9])
def test_the_shape_of_a_tail_is_found(shape):
    ratios = stats.genpareto(shape).rvs(size=40_000, random_state=0)
    assert_allclose(pareto_shape(np.log(ratios)), shape, atol=0.1)


def test_a_tail_without_values_is_not_trusted():
    assert pareto_shape(np.zeros(100)) == np.inf


@pytest.mark.parametrize("n", [60, 100, 1000])
@pytest.mark.parametrize("sd", [0.3, 1.0, 3.0])
def test_k_hat_is_that_of_arviz(n, sd):
    arviz = need("arviz")
    log_ratios = sd * np.random.default_rng(n).standard_normal(n)
    assert_allclose(pareto_shape(log_ratios), float(arviz.psislw(log_ratios.copy())[1]), rtol=1e-9)


def test_ends_of_intervals_are_those_of_a_sampler():
    need("nutpie")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=60)
    sampled = gs.GP(hyper=gs.NUTS(prior=prior_of_draws(), progress=False, chains=2, draws=400, tune=300)).fit(X, y)
    low, high = gs.rank(sampled, X).interval(0.9).T
    ends = gs.rank(gs.GP(hyper=gs.MAP()).fit(X, y), X, intervals=True).interval(0.9)
    error = np.mean(np.abs(ends - np.column_stack([low, high]))) / np.mean(high - low)
    assert error < 0.15


def test_draws_go_on_in_blocks():
    mixture = Mixture(TestMixture.parts)
    blocks = list(islice(mixture.blocks(5), 3))
    assert [block.shape for block in blocks] == [(BLOCK, 1)] * 3
    assert_array_equal(np.concatenate(blocks), list(islice(draws_of(mixture, 5), 3 * BLOCK)))
    assert not np.intersect1d(blocks[0], blocks[1]).size
