"""Gamma and Student-t distributions against SciPy, quadrature and many digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, special, stats

from gpsift.likelihoods.distributions import Gamma, Gaussian, StudentT
from gpsift.likelihoods.distributions.continuous import beta_nodes


def gamma_kl(mean, shape, change):
    return Gamma(np.array([mean]), shape).kl_terms(np.array([change]))["prediction"][0]


def student_kl(df, scale, mean_change, scale_change):
    terms = StudentT(np.zeros(1), np.array([scale]), df).kl_terms(np.array([mean_change]), np.array([scale_change]))
    return terms["mean"][0], terms["variance"][0]


def quadrature(integrand):
    """Over the line, by the trapezoidal rule in the inverse hyperbolic sine, where even Cauchy's tails end soon."""
    t, step = np.linspace(-50, 50, 4001, retstep=True)
    return step * np.sum(integrand(np.sinh(t)) * np.cosh(t))


def test_gamma_matches_scipy():
    mean, shape = np.array([0.3, 1.0, 4.0]), np.array([0.5, 2.0, 30.0])
    found, expected = Gamma(mean, shape), stats.gamma(shape, scale=mean / shape)
    y = np.array([0.1, 1.5, 3.8])
    assert_allclose(found.mean, expected.mean())
    assert_allclose(found.var, expected.var())
    assert_allclose(found.log_density(y), expected.logpdf(y), rtol=1e-12)
    assert_allclose(found.cdf(y), expected.cdf(y), rtol=1e-12)
    assert_allclose(found.quantile(0.3), expected.ppf(0.3), rtol=1e-12)
    assert_allclose(found.quantile([0.01, 0.9])[:, 1], expected.ppf(0.9), rtol=1e-12)
    assert_array_equal(found.log_density(np.array([0.0, -1.0, -2.0])), -np.inf)
    assert_array_equal(found.cdf(np.array([0.0, -1.0, -2.0])), 0.0)


@pytest.mark.parametrize("change", [2.0, -0.9])
def test_gamma_kl_matches_quadrature(change):
    mean, shape = 1.3, 2.5
    p, q = stats.gamma(shape, scale=mean / shape), stats.gamma(shape, scale=(mean + change) / shape)
    expected, _ = integrate.quad(lambda y: p.pdf(y) * (p.logpdf(y) - q.logpdf(y)), 0, 30, epsabs=1e-12, points=[1, 3])
    assert_allclose(gamma_kl(mean, shape, change), expected, rtol=1e-9)


@pytest.mark.parametrize("change", [1e-9, -1e-9, 1e-4, 0.3])
def test_gamma_kl_of_a_small_change_matches_fifty_digits(change):
    mean, shape = 1.3, 2.5
    with mpmath.workdps(50):
        m, moved = mpmath.mpf(mean), mpmath.mpf(mean) + mpmath.mpf(change)
        expected = float(shape * (mpmath.log(moved / m) + m / moved - 1))
    assert_allclose(gamma_kl(mean, shape, change), expected, rtol=1e-13)


def test_gamma_metric_matches_the_expected_squared_score():
    mean, shape, h = 1.3, 2.5, 1e-5

    def squared_score(y):
        up, down = (Gamma(np.array([m]), shape).log_density(np.array([y]))[0] for m in (mean + h, mean - h))
        return ((up - down) / (2 * h)) ** 2 * stats.gamma(shape, scale=mean / shape).pdf(y)

    expected, _ = integrate.quad(squared_score, 0, 30, epsabs=1e-12, points=[1, 3])
    found = Gamma(np.array([mean]), shape).metric_terms(np.ones((1, 1)))["prediction"]
    assert_allclose(found, expected, rtol=1e-7)


def test_gamma_metric_is_the_limit_of_the_kl():
    mean, shape, step = np.array([0.4, 3.0]), np.array([1.5, 20.0]), 1e-6
    found = Gamma(mean, shape)
    limit = 2 * found.kl_terms(np.full(2, step))["prediction"] / step**2
    assert_allclose(limit, found.metric_terms(np.ones((2, 1)))["prediction"][:, 0], rtol=1e-5)


def test_gamma_samples_have_the_moments_they_should(rng):
    found = Gamma(np.array([0.5, 3.0]), np.array([1.5, 4.0]))
    draws = found.sample(40_000, rng)
    assert draws.shape == (40_000, 2)
    assert_allclose(draws.mean(axis=0), found.mean, rtol=0.03)
    assert_allclose(draws.var(axis=0), found.var, rtol=0.05)


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(0.01, 1e4), st.floats(1e-3, 1e3))
@example(1.959e-6, 516210.5, 694.0, 48.46)  # whose u is -1 + 4e-12
def test_gamma_kl_is_never_negative_and_free_of_units(mean, moved, shape, unit):
    kl = gamma_kl(mean, shape, moved - mean)
    assert kl >= 0
    # The change is rounded to the digits of the mean, of which a mean that all but vanishes keeps few.
    digits = 16 * np.finfo(float).eps * max(1.0, mean / moved)
    assert_allclose(gamma_kl(unit * mean, shape, unit * (moved - mean)), kl, rtol=1e-6 + digits, atol=1e-12)


def test_student_t_matches_scipy():
    mean, scale, df = np.array([0.3, -1.0, 4.0, 0.0]), np.array([0.5, 2.0, 1.0, 1.0]), np.array([0.7, 1.5, 4.0, 60.0])
    found, expected = StudentT(mean, scale, df), stats.t(df, mean, scale)
    y = np.array([0.1, 30.0, 3.8, -2.0])
    assert_allclose(found.mean[2:], expected.mean()[2:])
    assert_allclose(found.var[1:], expected.var()[1:])
    assert found.var[0] == np.inf
    assert_allclose(found.log_density(y), expected.logpdf(y), rtol=1e-12)
    assert_allclose(found.cdf(y), expected.cdf(y), rtol=1e-12)
    assert_allclose(found.quantile(0.3), expected.ppf(0.3), rtol=1e-10)
    assert_allclose(found.quantile([0.01, 0.9])[:, 1], expected.ppf(0.9), rtol=1e-10)


def test_beta_nodes_integrate_powers():
    """E x^k of Beta(1/2, nu/2) is a ratio of gamma functions."""
    df = np.array([0.5, 1.0, 2.0, 3.0, 1e5])
    x, weights = beta_nodes(df)
    for power in (0, 1, 2, 7):
        # Not stats.beta(...).moment, which is off by a factor of 2 at nu = 1e5.
        expected = special.poch(0.5, power) / special.poch(0.5 + df / 2, power)
        assert_allclose(np.sum(weights * x**power, axis=1), expected, rtol=1e-9)


@pytest.mark.parametrize("df", [0.8, 1.0, 4.0, 25.0])
@pytest.mark.parametrize(("mean_change", "scale_change"), [(1.5, 0.8), (-3.0, -0.5), (0.0, 2.0), (2.0, 0.0)])
def test_student_t_kl_matches_quadrature(df, mean_change, scale_change):
    scale = 1.3
    p, q = stats.t(df, 0.0, scale), stats.t(df, mean_change, scale + scale_change)
    expected = quadrature(lambda y: p.pdf(y) * (p.logpdf(y) - q.logpdf(y)))
    assert_allclose(sum(student_kl(df, scale, mean_change, scale_change)), expected, rtol=1e-6)
    alone = stats.t(df, 0.0, scale + scale_change)
    expected = quadrature(lambda y: p.pdf(y) * (p.logpdf(y) - alone.logpdf(y)))
    assert_allclose(student_kl(df, scale, mean_change, scale_change)[1], expected, rtol=1e-6, atol=1e-12)


def student_kl_in_many_digits(df, scale, mean_change, scale_change):
    """Over the angle whose tangent is z / sqrt(nu), so that the tails end."""
    with mpmath.workdps(50):
        nu, s, a, b = map(mpmath.mpf, (df, scale, mean_change, scale_change))
        constant = mpmath.gamma((nu + 1) / 2) / (mpmath.gamma(nu / 2) * mpmath.sqrt(mpmath.pi))

        def integrand(angle):
            cos, sin = mpmath.cos(angle), mpmath.sin(angle)
            ratio = cos**2 + ((sin * s - cos * a / mpmath.sqrt(nu)) / (s + b)) ** 2
            return cos ** (nu - 1) * (mpmath.log((s + b) / s) + (nu + 1) / 2 * mpmath.log(ratio))

        ends = [-mpmath.pi / 2, -0.5, 0.5, mpmath.pi / 2]
        return float(constant * mpmath.quad(integrand, ends))


@pytest.mark.parametrize("df", [1.0, 4.0, 30.0])
@pytest.mark.parametrize(
    ("mean_change", "scale_change"),
    [(1e-9, 0.0), (0.0, 1e-9), (1e-9, -2e-9), (0.2, 0.12), (0.2, 0.14), (0.2, -0.12), (0.2, -0.14)],
)
def test_student_t_kl_of_a_small_change_matches_fifty_digits(df, mean_change, scale_change):
    """The last four lie on both sides of the switch at a tenth of the scale."""
    expected = student_kl_in_many_digits(df, 1.3, mean_change, scale_change)
    assert_allclose(sum(student_kl(df, 1.3, mean_change, scale_change)), expected, rtol=1e-11)


@pytest.mark.parametrize("df", [0.8, 4.0, 25.0])
def test_student_t_metric_matches_the_expected_outer_product_of_scores(df):
    mean, scale, h = 0.4, 1.3, 1e-5

    def log_density(y, m, s):
        return StudentT(np.array([m]), np.array([s]), df).log_density(y)

    def scores(y):
        by_mean = (log_density(y, mean + h, scale) - log_density(y, mean - h, scale)) / (2 * h)
        by_scale = (log_density(y, mean, scale + h) - log_density(y, mean, scale - h)) / (2 * h)
        return by_mean, by_scale

    def information(a, b):
        return quadrature(lambda y: scores(y)[a] * scores(y)[b] * stats.t(df, mean, scale).pdf(y))

    terms = StudentT(np.array([mean]), np.array([scale]), df).metric_terms(np.ones((1, 1)), np.ones((1, 1)))
    assert_allclose(terms["mean"][0, 0], information(0, 0), rtol=1e-6)
    assert_allclose(terms["variance"][0, 0], information(1, 1), rtol=1e-6)
    assert_allclose(information(0, 1), 0.0, atol=1e-6)


def test_student_t_metric_is_the_limit_of_the_kl():
    found = StudentT(np.zeros(3), np.array([0.5, 1.0, 2.0]), np.array([0.7, 4.0, 200.0]))
    step = 1e-6
    kl = found.kl_terms(np.full(3, 0.8 * step), np.full(3, -0.3 * step))
    metric = found.metric_terms(np.full((3, 2), 0.8), np.full((3, 2), -0.3))
    for name in ("mean", "variance"):
        assert metric[name].shape == (3, 2)
        assert_allclose(2 * kl[name] / step**2, metric[name][:, 1], rtol=1e-5)


def test_student_t_with_many_degrees_of_freedom_is_normal():
    mean, scale, y = np.array([0.0, 1.0]), np.array([1.0, 2.0]), np.array([0.3, -2.0])
    found, normal = StudentT(mean, scale, 1e8), Gaussian(mean, scale**2)
    assert_allclose(found.log_density(y), normal.log_density(y), rtol=1e-7)
    mean_change, scale_change = np.array([0.7, 1e-6]), np.array([-0.3, 1e-6])
    expected = normal.kl_terms(mean_change, scale_change * (2 * scale + scale_change))
    for name, kl in found.kl_terms(mean_change, scale_change).items():
        assert_allclose(kl, expected[name], rtol=1e-6)


@given(st.floats(0.3, 1e4), st.floats(-10, 10), st.floats(-0.9, 10))
def test_student_t_kl_is_never_negative_and_free_of_units(df, mean_change, scale_change):
    terms = np.array(student_kl(df, 1.0, mean_change, scale_change))
    assert np.all(terms >= 0)
    # An exact zero is owed only to no change at all; a change so small that its square underflows gives it too.
    if abs(mean_change) > 1e-6 and abs(scale_change) > 1e-6:
        assert np.all(terms > 0)
    assert_allclose(student_kl(df, 4.0, 4.0 * mean_change, 4.0 * scale_change), terms, rtol=1e-12)


def test_student_t_samples_have_the_moments_they_should(rng):
    found = StudentT(np.array([0.5, -3.0]), np.array([1.5, 0.2]), np.array([9.0, 15.0]))
    draws = found.sample(40_000, rng)
    assert draws.shape == (40_000, 2)
    assert_allclose(draws.mean(axis=0), found.mean, atol=0.03)
    assert_allclose(draws.var(axis=0), found.var, rtol=0.05)


@pytest.mark.parametrize("found", [Gamma(np.ones(2), 2.0), StudentT(np.zeros(2), np.ones(2), 4.0)])
def test_quantile_rejects_what_is_no_probability(found):
    for probability in (0.0, 1.0, [0.5, 2.0]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            found.quantile(probability)
