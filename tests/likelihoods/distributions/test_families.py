"""The normal distribution's KL, metric and densities against quadrature, SciPy and many digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

from gpsift._utils.arrays import to_numpy
from gpsift.likelihoods.distributions import (
    Gaussian,
    gaussian_kl,
    gaussian_kl_of_change,
    gaussian_metric,
    log1p_excess,
)

means = st.floats(-5, 5)
variances = st.floats(0.05, 20)


@pytest.mark.parametrize(("mean_q", "var_q"), [(0.3, 1.5), (-2.0, 0.4), (1.0, 1.0)])
def test_gaussian_kl_matches_quadrature(mean_q, var_q):
    p, q = stats.norm(1.0, 1.0), stats.norm(mean_q, np.sqrt(var_q))
    expected, _ = integrate.quad(lambda y: p.pdf(y) * (p.logpdf(y) - q.logpdf(y)), -12, 12, epsabs=1e-12)
    assert_allclose(gaussian_kl(np.array(1.0), np.array(1.0), np.array(mean_q), np.array(var_q)), expected, atol=1e-10)


@given(means, variances, means, variances, st.floats(-10, 10), st.floats(0.01, 100))
def test_gaussian_kl_is_invariant_to_affine_maps(mean_p, var_p, mean_q, var_q, shift, scale):
    plain = gaussian_kl(*map(np.array, (mean_p, var_p, mean_q, var_q)))
    mapped = gaussian_kl(
        *map(np.array, (shift + scale * mean_p, scale**2 * var_p, shift + scale * mean_q, scale**2 * var_q))
    )
    assert_allclose(mapped, plain, rtol=1e-7, atol=1e-9)
    assert plain >= 0


@pytest.mark.parametrize("delta", [1e-12, 1e-9, 1e-7, 1e-3, 0.2])
@pytest.mark.parametrize("sign", [-1, 1])
def test_kl_of_a_small_change_matches_fifty_digits(delta, sign):
    var, mean_change, var_change = 0.7, 0.3 * delta, sign * 1.9 * delta
    with mpmath.workdps(50):
        v, dm, dv = map(mpmath.mpf, (var, mean_change, var_change))
        expected = float((mpmath.log((v + dv) / v) + (v + dm**2) / (v + dv) - 1) / 2)
    mean_term, var_term = gaussian_kl_of_change(np.array(var), np.array(mean_change), np.array(var_change))
    assert_allclose(mean_term + var_term, expected, rtol=1e-13)


@given(st.floats(-0.999, 1e6))
def test_log1p_excess_is_never_negative(u):
    assert log1p_excess(np.array(u)) >= 0


def test_log1p_excess_matches_fifty_digits_on_both_sides_of_its_switch():
    for u in (-0.9, -0.31, -0.29, -1e-5, -1e-16, 0.0, 1e-14, 1e-6, 0.1, 0.299, 0.301, 5.0):
        with mpmath.workdps(50):
            expected = float(mpmath.mpf(u) - mpmath.log(1 + mpmath.mpf(u)))
        assert_allclose(log1p_excess(np.array(u)), expected, rtol=1e-14)


def test_metric_is_the_limit_of_the_kl():
    var, mean_gradient, var_gradient = np.array(0.8), np.array(1.3), np.array(-0.6)
    step = 1e-5
    kl = sum(gaussian_kl_of_change(var, step * mean_gradient, step * var_gradient))
    assert_allclose(2 * kl / step**2, sum(gaussian_metric(var, mean_gradient, var_gradient)), rtol=1e-4)


def test_metric_matches_the_expected_outer_product_of_scores():
    """Fisher information of (mean, var) by quadrature of d log p d log p^T."""
    mean, var, direction = 0.4, 0.7, np.array([1.3, -0.6])

    def squared_score(y):
        scores = np.array([(y - mean) / var, ((y - mean) ** 2 / var - 1) / (2 * var)])
        return (scores @ direction) ** 2 * stats.norm(mean, np.sqrt(var)).pdf(y)

    expected, _ = integrate.quad(squared_score, -10, 10, epsabs=1e-12)
    found = sum(gaussian_metric(np.array(var), np.array(direction[0]), np.array(direction[1])))
    assert_allclose(found, expected, rtol=1e-8)


def test_gaussian_matches_scipy(rng):
    mean, var, y = rng.normal(size=5), rng.uniform(0.5, 2, size=5), rng.normal(size=5)
    distribution, expected = Gaussian(mean, var), stats.norm(mean, np.sqrt(var))
    assert_allclose(distribution.log_density(y), expected.logpdf(y))
    assert_allclose(distribution.cdf(y), expected.cdf(y))
    assert_allclose(distribution.quantile(0.3), expected.ppf(0.3))
    assert_allclose(distribution.quantile([0.1, 0.9])[:, 1], expected.ppf(0.9))


def test_samples_have_the_moments_they_should(rng):
    draws = Gaussian(np.array([1.0, -2.0]), np.array([0.5, 3.0])).sample(40_000, rng)
    assert draws.shape == (40_000, 2)
    assert_allclose(draws.mean(axis=0), [1.0, -2.0], atol=0.05)
    assert_allclose(draws.var(axis=0), [0.5, 3.0], rtol=0.05)


def test_formulas_run_where_the_array_lives(to_library):
    var, dm, dv = np.array([[0.5], [2.0]]), np.array([[0.1], [0.2]]), np.array([[0.05], [-0.5]])
    for formula in (gaussian_metric, gaussian_kl_of_change):
        expected = formula(var, dm, dv)
        found = formula(to_library(var), to_library(dm), to_library(dv))
        for ours, theirs in zip(expected, found, strict=True):
            assert_allclose(to_numpy(theirs), ours, rtol=1e-12)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, [0.5, 2.0]])
def test_quantile_rejects_what_is_no_probability(probability):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Gaussian(np.zeros(2), np.ones(2)).quantile(probability)
