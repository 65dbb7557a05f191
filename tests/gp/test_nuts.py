"""Drawn hyperparameters against a dense grid, and what a model of many draws makes of them."""

import numpy as np
import pytest
from conftest import need
from numpy.testing import assert_allclose
from scipy import integrate, stats

import gpsift as gs
from gpsift.families import Gaussian
from gpsift.families.pool import Pool
from gpsift.gp.nuts import advice, log_posterior
from gpsift.gp.problem import Problem
from gpsift.kernels import SquaredExponential
from gpsift.threads import blas_threads_for

NAMES = ("a",)
# A prior that keeps the posterior in a box which a grid can cover.
PRIOR = gs.MAP(lengthscale=gs.InverseGamma(5.0, 5.0), signal=gs.HalfT(8.0, 1.0), noise=gs.HalfT(8.0, 0.5), starts=1)


@pytest.fixture
def small():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(14, 1))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=14)
    return X, (y - y.mean()) / y.std()


@pytest.fixture
def problem(small):
    return Problem.exact(SquaredExponential().for_features(1), *small, NAMES)


def test_log_posterior_gradient_matches_central_differences(problem):
    density = log_posterior(problem.fresh(), PRIOR)
    theta, step = np.array([0.2, -0.3, -2.0]), 1e-5
    expected = [(density(theta + e)[0] - density(theta - e)[0]) / (2 * step) for e in step * np.eye(3)]
    assert_allclose(density(theta)[1], expected, rtol=1e-6)


@pytest.mark.parametrize(("kind", "total"), [("lengthscale", 1.0), ("signal_var", 2.0), ("noise_var", 2.0)])
def test_prior_of_a_logarithm_has_its_jacobian(kind, total):
    """On the log scale the density integrates to 1; to 2 for a variance, whose logarithm is twice that of the sd."""
    kinds = np.array([kind])

    def density(t):
        return np.exp(PRIOR.log_prior(kinds, np.array([t]))[0] + PRIOR.log_jacobian(kinds)[0] * t)

    assert_allclose(integrate.quad(density, -60, 60, limit=500)[0], total, rtol=1e-6)


def grid_moments(problem):
    """Posterior mean and sd of each log parameter by summing over a grid."""
    density = log_posterior(problem.fresh(), PRIOR)
    axes = [np.linspace(-2.2, 2.2, 23), np.linspace(-4.0, 4.0, 23), np.linspace(-6.5, 1.0, 23)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    with blas_threads_for(14):
        log_weights = np.array([density(point)[0] for point in points])
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ points
    return mean, np.sqrt(weights @ (points - mean) ** 2)


def test_draws_match_a_dense_grid(problem):
    need("nutpie")
    mean, sd = grid_moments(problem)
    with blas_threads_for(14):
        sampler = gs.NUTS(draws=1000, tune=400, keep=2000, prior=PRIOR, progress=False, seed=3)
        draws = sampler.estimate(problem).draws
    assert draws.diagnostics["r_hat"] < 1.02
    assert draws.diagnostics["divergences"] == 0
    error = sd / np.sqrt(draws.diagnostics["ess"])
    assert np.all(np.abs(draws.log_params.mean(axis=0) - mean) < 4 * error + 0.02)
    assert_allclose(draws.log_params.std(axis=0), sd, rtol=0.15)


@pytest.fixture(scope="module")
def drawn():
    need("nutpie")
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    y = 5.0 + 3.0 * (np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=40))
    return gs.GP(hyper=gs.NUTS(draws=150, tune=150, keep=20, progress=False)).fit(X, y), X, y


@pytest.mark.filterwarnings("ignore:The sampler is in trouble")
def test_predictions_average_over_the_draws(drawn):
    gp, X, y = drawn
    prediction = gp.predict(X[:6])
    members = [member.predict(X[:6]) for member in gp.members]
    assert len(members) == 20
    assert_allclose(prediction.mean, np.mean([m.mean for m in members], axis=0))
    spread = np.mean([m.var for m in members], axis=0) + np.var([m.mean for m in members], axis=0)
    assert_allclose(prediction.var, spread)
    densities = np.mean([np.exp(m.log_density(y[:6])) for m in members], axis=0)
    assert_allclose(prediction.log_density(y[:6]), np.log(densities))
    low, high = prediction.interval(0.9).T
    assert_allclose(prediction.family.cdf(high) - prediction.family.cdf(low), 0.9, atol=1e-8)


@pytest.mark.filterwarnings("ignore:The sampler is in trouble")
@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR(), gs.ARD(), gs.KL(delta=1e-3)])
def test_rankings_carry_intervals_and_rank_probabilities(drawn, measure):
    gp, X, _ = drawn
    ranking = gs.rank(gp, X, measure)
    each = np.array([gs.rank(member, X, measure).scores for member in gp.members])
    assert_allclose(ranking.draws, each, rtol=1e-9)
    assert_allclose(ranking.scores, each.mean(axis=0), rtol=1e-9)
    low, high = ranking.interval(0.8).T
    assert np.all((low <= np.median(each, axis=0)) & (np.median(each, axis=0) <= high))
    assert_allclose(ranking.rank_probability.sum(axis=0), 1.0)
    assert_allclose(ranking.rank_probability.sum(axis=1), 1.0)
    assert ranking.rank_probability[0, 0] == np.mean(each.argmax(axis=1) == 0)
    assert {"lower", "upper"} <= set(ranking.to_frame().columns)


@pytest.mark.filterwarnings("ignore:The sampler is in trouble")
def test_draws_go_to_arviz_with_names(drawn):
    gp, _, _ = drawn
    posterior = gp.to_arviz().posterior
    assert posterior["hyperparameters"].dims == ("chain", "draw", "parameter")
    assert "lengthscale[x1]" in posterior["parameter"].values
    assert "r-hat" in repr(gp)
    assert gp.quality.explains


def test_the_same_seed_gives_the_same_draws(problem):
    need("nutpie")
    with blas_threads_for(14):
        first, second = (gs.NUTS(draws=30, tune=50, prior=PRIOR, progress=False).estimate(problem) for _ in range(2))
    assert np.array_equal(first.draws.log_params, second.draws.log_params)


def test_pool_matches_a_mixture_of_normals(rng):
    means, variances = np.array([[0.0, 1.0], [2.0, -1.0]]), np.array([[1.0, 0.5], [0.2, 2.0]])
    pool = Pool([Gaussian(m, v) for m, v in zip(means, variances, strict=True)])
    y = np.array([0.3, 0.7])
    density = np.mean(stats.norm(means, np.sqrt(variances)).pdf(y), axis=0)
    assert_allclose(pool.log_density(y), np.log(density))
    draws = pool.sample(4000, rng)
    assert_allclose(draws.mean(axis=0), pool.mean, atol=0.1)
    assert_allclose(draws.var(axis=0), pool.var, rtol=0.1)
    assert_allclose(pool.cdf(pool.quantile(0.3)), 0.3, atol=1e-9)
    assert pool.quantile([0.1, 0.9]).shape == (2, 2)


def test_advice_says_what_to_do():
    assert advice({"r_hat": 1.0, "ess": 500.0, "divergences": 0}) == []
    messages = " ".join(advice({"r_hat": 1.1, "ess": 20.0, "divergences": 7}))
    for word in ("chains disagree", "raise `draws`", "7 divergences", "target_accept"):
        assert word in messages


def test_one_fit_has_no_interval(regression):
    X, y = regression
    with pytest.raises(ValueError, match="draw the hyperparameters"):
        gs.rank(gs.GP(hyper=gs.Fixed(noise_var=0.1)).fit(X, y)).interval()


@pytest.mark.parametrize("choice", [{"draws": 0}, {"chains": 1.5}, {"keep": True}])
def test_nuts_rejects_bad_numbers(choice):
    with pytest.raises(ValueError, match="must be a whole number"):
        gs.NUTS(**choice)


def test_nuts_rejects_what_is_no_prior():
    with pytest.raises(TypeError, match="must be a MAP"):
        gs.NUTS(prior=gs.HalfT())
