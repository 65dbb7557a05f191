"""The multivariate normal distribution against SciPy, a dense formula, many digits and the univariate one."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from gpsift.likelihoods.distributions import Gaussian, MultivariateNormal


def random_normal(rng, n=4, D=3):
    factor = rng.normal(size=(n, D, D))
    return MultivariateNormal(rng.normal(size=(n, D)), factor @ np.swapaxes(factor, 1, 2) + 0.3 * np.eye(D))


def symmetric(a):
    return a + np.swapaxes(a, 1, 2)


def total(terms):
    assert list(terms) == ["mean", "variance"]
    return terms["mean"] + terms["variance"]


def test_distribution_matches_scipy(rng):
    found = random_normal(rng)
    y = rng.normal(size=found.mean.shape)
    expected = [stats.multivariate_normal(m, S).logpdf(row) for m, S, row in zip(found.mean, found.cov, y, strict=True)]
    assert_allclose(found.log_density(y), expected, rtol=1e-10)
    sd = np.sqrt(np.stack([np.diag(S) for S in found.cov]))
    assert_allclose(found.var, sd**2)
    marginal = stats.norm(found.mean, sd)
    assert_allclose(found.cdf(y), marginal.cdf(y))
    assert_allclose(found.quantile(0.3), marginal.ppf(0.3))
    assert found.quantile([0.1, 0.9]).shape == (4, 3, 2)
    assert_allclose(found.quantile([0.1, 0.9])[:, :, 1], marginal.ppf(0.9))


def test_samples_have_the_moments_they_should(rng):
    found = random_normal(rng, n=2)
    draws = found.sample(40_000, rng)
    assert draws.shape == (40_000, 2, 3)
    for i in range(2):
        spread = np.max(found.cov[i])
        assert_allclose(draws[:, i].mean(axis=0), found.mean[i], atol=0.03 * np.sqrt(spread))
        assert_allclose(np.cov(draws[:, i].T), found.cov[i], atol=0.04 * spread)
    # Independent between points.
    assert_allclose(np.corrcoef(draws[:, 0, 0], draws[:, 1, 0])[0, 1], 0.0, atol=0.02)


def test_kl_matches_a_mean_of_log_ratios_by_quadrature():
    """A product of Gauss-Hermite rules is exact here, the log ratio being a quadratic."""
    mean, cov = np.array([0.2, -1.0]), np.array([[1.0, 0.4], [0.4, 0.7]])
    moved_mean, moved_cov = np.array([1.2, -0.5]), np.array([[0.6, -0.3], [-0.3, 2.0]])
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    z = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    y = mean + z @ np.linalg.cholesky(cov).T
    p, q = stats.multivariate_normal(mean, cov), stats.multivariate_normal(moved_mean, moved_cov)
    expected = np.outer(weights, weights).ravel() @ (p.logpdf(y) - q.logpdf(y)) / (2 * np.pi)
    found = MultivariateNormal(mean[None], cov[None]).kl_terms((moved_mean - mean)[None], (moved_cov - cov)[None])
    assert_allclose(total(found), [expected], rtol=1e-11)


def kl_in_many_digits(cov, mean_change, cov_change):
    with mpmath.workdps(60):
        S, dm, dS = mpmath.matrix(cov.tolist()), mpmath.matrix(mean_change.tolist()), mpmath.matrix(cov_change.tolist())
        inverse = mpmath.inverse(S + dS)
        trace = sum((inverse * S)[i, i] for i in range(len(cov)))
        quadratic = (dm.T * inverse * dm)[0]
        return float((trace - len(cov) + mpmath.log(mpmath.det(S + dS) / mpmath.det(S)) + quadratic) / 2)


@pytest.mark.parametrize("step", [1e-9, -1e-9, 1e-4, 0.01])
def test_kl_of_a_small_change_matches_many_digits(step, rng):
    found = random_normal(rng)
    mean_change, cov_change = step * rng.normal(size=(4, 3)), step * symmetric(rng.normal(size=(4, 3, 3)))
    expected = [kl_in_many_digits(*rows) for rows in zip(found.cov, mean_change, cov_change, strict=True)]
    assert_allclose(total(found.kl_terms(mean_change, cov_change)), expected, rtol=1e-10)
    still = np.zeros_like(mean_change)
    expected = [kl_in_many_digits(*rows) for rows in zip(found.cov, still, cov_change, strict=True)]
    assert_allclose(found.kl_terms(mean_change, cov_change)["variance"], expected, rtol=1e-10)


def test_metric_matches_the_dense_formula_and_the_scores(rng):
    found = random_normal(rng, n=1, D=2)
    dm, dS = rng.normal(size=2), symmetric(rng.normal(size=(1, 2, 2)))[0]
    terms = found.metric_terms(dm[None, :, None], dS[None, :, :, None])
    inverse = np.linalg.inv(found.cov[0])
    assert_allclose(terms["mean"], [[dm @ inverse @ dm]], rtol=1e-10)
    assert_allclose(terms["variance"], [[0.5 * np.trace(inverse @ dS @ inverse @ dS)]], rtol=1e-10)
    # The score along (dm, dS) is a quadratic in y: eight nodes a direction integrate its square exactly.
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    z = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    y = found.mean + z @ np.linalg.cholesky(found.cov[0]).T
    h = 1e-5
    up, down = (
        stats.multivariate_normal(found.mean[0] + sign * h * dm, found.cov[0] + sign * h * dS) for sign in (1, -1)
    )
    score = (up.logpdf(y) - down.logpdf(y)) / (2 * h)
    assert_allclose(total(terms)[0, 0], np.outer(weights, weights).ravel() @ score**2 / (2 * np.pi), rtol=1e-6)


def test_metric_is_the_limit_of_the_kl(rng):
    found, step = random_normal(rng), 1e-7
    mean_gradient = rng.normal(size=(4, 3, 5))
    cov_gradient = rng.normal(size=(4, 3, 3, 5))
    cov_gradient = cov_gradient + np.swapaxes(cov_gradient, 1, 2)
    metric = found.metric_terms(mean_gradient, cov_gradient)
    for j in range(5):
        kl = found.kl_terms(step * mean_gradient[:, :, j], step * cov_gradient[:, :, :, j])
        for name in ("mean", "variance"):
            assert metric[name].shape == (4, 5)
            assert_allclose(2 * kl[name] / step**2, metric[name][:, j], rtol=1e-4)


def test_one_output_is_the_univariate_normal(rng):
    mean, var, dm, dv = rng.normal(size=3), rng.uniform(0.5, 2, size=3), rng.normal(size=3), rng.uniform(size=3)
    found, expected = MultivariateNormal(mean[:, None], var[:, None, None]), Gaussian(mean, var)
    assert_allclose(found.log_density(dm[:, None]), expected.log_density(dm))
    for name, term in expected.kl_terms(dm, dv).items():
        assert_allclose(found.kl_terms(dm[:, None], dv[:, None, None])[name], term, rtol=1e-12)
    for name, term in expected.metric_terms(dm[:, None], dv[:, None]).items():
        found_term = found.metric_terms(dm[:, None, None], dv[:, None, None, None])[name]
        assert_allclose(found_term, term, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.floats(1e-8, 1.0))
def test_kl_is_never_negative_and_invariant_to_linear_maps(seed, size):
    rng = np.random.default_rng(seed)
    found = random_normal(rng, n=2)
    target = random_normal(rng, n=2)
    mean_change, cov_change = size * (target.mean - found.mean), size * (target.cov - found.cov)
    terms = found.kl_terms(mean_change, cov_change)
    assert np.all(terms["mean"] >= 0)
    assert np.all(terms["variance"] >= 0)
    A = np.eye(3) + np.triu(rng.normal(size=(3, 3)), 1)
    mapped = MultivariateNormal(found.mean @ A.T, A @ found.cov @ A.T)
    mapped_terms = mapped.kl_terms(mean_change @ A.T, A @ cov_change @ A.T)
    for name, term in terms.items():
        assert_allclose(mapped_terms[name], term, rtol=1e-6)


def test_quantile_rejects_what_is_no_probability():
    for probability in (0.0, 1.0, [0.5, 2.0]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            MultivariateNormal(np.zeros((1, 2)), np.eye(2)[None]).quantile(probability)


def test_covariance_that_is_none_is_refused():
    with pytest.raises(np.linalg.LinAlgError):
        MultivariateNormal(np.zeros((1, 2)), np.array([[[1.0, 2.0], [2.0, 1.0]]])).log_density(np.zeros((1, 2)))
