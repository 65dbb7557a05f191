"""Predictive mixtures against dense sums over y and over the latent value, closed forms and many digits."""

from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, special, stats
from scipy.special import expit, logsumexp, ndtr

from gpsift._utils.threads import blas_threads_for
from gpsift.likelihoods import Binomial, Gamma, Gaussian, Logit, NegativeBinomial, Poisson, Probit, StudentT
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions import ProbitBernoulli
from gpsift.likelihoods.mixture import LatentMixture


@pytest.fixture(autouse=True)
def _one_thread():
    with blas_threads_for(1):
        yield


T = np.linspace(-9.5, 9.5, 1501)
LOG_W = stats.norm.logpdf(T) + np.log(T[1] - T[0])


def counts(stop):
    y = np.arange(float(stop))
    return y, np.ones_like(y)


def positive(low, high):
    u = np.linspace(np.log(low), np.log(high), 1001)
    return np.exp(u), np.exp(u) * (u[1] - u[0])


def real_line(width):
    u = np.linspace(-9.0, 9.0, 1501)
    return width * np.sinh(u), width * np.cosh(u) * (u[1] - u[0])


# The likelihood, latent mean and variance, size, and values of y with weights that cover the mixture.
CASES = {
    "poisson": (Poisson(), 0.5, 0.4, 1.5, counts(2500)),
    "poisson, large counts": (Poisson(), 3.5, 0.05, 2.0, counts(2500)),
    "poisson, nearly known": (Poisson(), 0.5, 1e-6, 1.0, counts(60)),
    "negative binomial": (NegativeBinomial(1.7), -0.3, 0.3, 2.0, counts(1500)),
    "binomial": (Binomial(), 0.4, 1.5, 12.0, counts(13)),
    "logit": (Logit(), -0.8, 2.0, 1.0, counts(2)),
    "gamma": (Gamma(2.4), 0.3, 0.5, 1.0, positive(1e-10, 1e6)),
    "student-t": (StudentT(4.5, 0.6), 0.4, 0.8, 1.0, real_line(1.0)),
    "student-t, nearly normal": (StudentT(1e4, 0.2), 0.4, 2.0, 1.0, real_line(0.01)),
    "student-t, little noise": (StudentT(4.0, 0.1), 0.4, 0.5, 1.0, real_line(0.5)),
}
each_case = pytest.mark.parametrize("name", CASES)


def mixture(name, mean_change=0.0, var_change=0.0):
    likelihood, m, v, size, _ = CASES[name]
    return likelihood.predictive(np.array([m + mean_change]), np.array([v + var_change]), np.array([size]))


@cache
def dense_log_density(name, mean_change=0.0, var_change=0.0):
    """log p(y) at all y of the case, by a fine sum over the latent value."""
    return log_density_at(name, CASES[name][-1][0], mean_change, var_change)


def log_density_at(name, y, mean_change=0.0, var_change=0.0):
    likelihood, m, v, size, _ = CASES[name]
    f = m + mean_change + np.sqrt(v + var_change) * T
    return logsumexp(likelihood.log_density(y[:, None], f, np.full((1, 1), size)) + LOG_W, axis=1)


def dense_kl(name, mean_change, var_change):
    _, w = CASES[name][-1]
    log_p, log_q = dense_log_density(name), dense_log_density(name, mean_change, var_change)
    p, q = np.exp(log_p), np.exp(log_q)
    return float(np.sum(w * (p * (log_p - log_q) - p + q)))  # p and q both add up to 1


@each_case
def test_the_oracle_adds_up_to_one(name):
    _, w = CASES[name][-1]
    assert_allclose(np.sum(w * np.exp(dense_log_density(name))), 1.0, rtol=1e-9)


@each_case
def test_log_density_matches_dense_quadrature(name):
    nodes = CASES[name][-1][0]
    p = np.exp(dense_log_density(name))
    y = nodes[p > 1e-12 * p.max()][:: max(1, nodes.size // 50)]
    found = [mixture(name).log_density(np.array([value]))[0] for value in y]
    assert_allclose(found, log_density_at(name, y), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("v", [4.0, 9.0, 25.0])
@pytest.mark.parametrize(
    ("likelihood", "y"),
    [
        (Logit(), 0.0),
        (Logit(), 1.0),
        (Poisson(), 0.0),
        (Poisson(), 1.0),
        (NegativeBinomial(0.7), 0.0),
        (Gamma(2.0), 1.3),
    ],
    ids=repr,
)
def test_log_density_under_a_wide_latent_value_matches_quadrature(likelihood, y, v):
    f = np.linspace(-60.0, 60.0, 200_001)
    with np.errstate(over="ignore"):
        values = likelihood.log_density(np.array(y), f, np.array(1.0)) + stats.norm.logpdf(f, 0.4, np.sqrt(v))
    expected = logsumexp(values) + np.log(f[1] - f[0])
    found = LatentMixture(likelihood, np.array([0.4]), np.array([v]), np.ones(1)).log_density(np.array([y]))
    assert_allclose(found, expected, atol=1e-7)


@each_case
def test_mean_and_variance_match_dense_sums(name):
    y, w = CASES[name][-1]
    p = w * np.exp(dense_log_density(name))
    mean = np.sum(p * y)
    found = mixture(name)
    assert_allclose(found.mean[0], mean, rtol=1e-7)
    assert_allclose(found.var[0], np.sum(p * (y - mean) ** 2), rtol=1e-5)


@pytest.mark.parametrize(("m", "v", "e"), [(0.5, 0.4, 1.5), (-3.0, 2.0, 0.1), (6.0, 1.0, 3.0), (1.0, 1e-9, 1.0)])
def test_moments_of_counts_match_those_of_a_lognormal_rate(m, v, e):
    mean = e * np.exp(m + 0.5 * v)
    spread = mean**2 * np.expm1(v)
    row = np.array([m]), np.array([v]), np.array([e])
    poisson, negative_binomial = LatentMixture(Poisson(), *row), LatentMixture(NegativeBinomial(2.2), *row)
    assert_allclose(poisson.mean, mean, rtol=1e-9)
    assert_allclose(poisson.var, mean + spread, rtol=1e-8)
    assert_allclose(negative_binomial.mean, mean, rtol=1e-9)
    assert_allclose(negative_binomial.var, mean + spread + mean**2 * np.exp(v) / 2.2, rtol=1e-8)


@each_case
def test_cdf_matches_dense_sums(name):
    likelihood, *_, (y, w) = CASES[name]
    terms = w * np.exp(dense_log_density(name))
    below = np.cumsum(terms) if likelihood.is_discrete else integrate.cumulative_simpson(terms, dx=1.0, initial=0.0)
    for level in (0.02, 0.3, 0.9, 0.999):
        k = int(np.searchsorted(below, level))
        assert_allclose(mixture(name).cdf(y[k : k + 1])[0], below[k], rtol=1e-6)


@each_case
def test_quantile_inverts_the_cdf(name):
    found, levels = mixture(name), np.array([0.02, 0.3, 0.5, 0.9, 0.999])
    quantiles = found.quantile(levels)
    assert quantiles.shape == (1, 5)
    assert_allclose(found.quantile(0.3), quantiles[:, 1])
    below = np.array([found.cdf(quantiles[:, k])[0] for k in range(5)])
    if CASES[name][0].is_discrete:
        before = np.array([found.cdf(quantiles[:, k] - 1.0)[0] for k in range(5)])
        assert np.all((below >= levels) & (before < levels))
        assert np.all(quantiles == np.round(quantiles))
    else:
        assert_allclose(below, levels, rtol=1e-9)


@pytest.mark.parametrize("probability", [0.0, 1.0, -0.1, 1.5])
def test_quantile_rejects_what_is_no_probability(probability):
    with pytest.raises(ValueError, match="between 0 and 1"):
        mixture("poisson").quantile(probability)


@each_case
def test_samples_follow_the_mixture(name):
    found = mixture(name)
    draws = found.sample(20_000, np.random.default_rng(5))
    assert draws.shape == (20_000, 1)
    median = found.quantile(0.5)
    assert_allclose(np.mean(draws <= median), found.cdf(median)[0], atol=0.018)
    assert_allclose((draws.mean() - found.mean[0]) / np.sqrt(found.var[0] / 20_000), 0.0, atol=5.0)


@each_case
def test_information_matches_its_definition(name):
    """Sum over y of dp dp / p with numerical derivatives of a dense p."""
    _, w = CASES[name][-1]
    v = CASES[name][2]
    h_m, h_v = 1e-4, 1e-4 * v
    p = np.exp(dense_log_density(name))
    by_mean = (np.exp(dense_log_density(name, h_m)) - np.exp(dense_log_density(name, -h_m))) / (2 * h_m)
    by_var = (np.exp(dense_log_density(name, 0, h_v)) - np.exp(dense_log_density(name, 0, -h_v))) / (2 * h_v)
    seen = p > 1e-200
    by_mean, by_var, w, p = by_mean[seen], by_var[seen], w[seen], p[seen]
    found = [entry[0] for entry in mixture(name).information]
    # At v = 1e-6 the differences along v keep six digits.
    rtol = 1e-4 if v < 1e-3 else 1e-6
    assert_allclose(found[0], np.sum(w * by_mean**2 / p), rtol=1e-6)
    assert_allclose(found[1], np.sum(w * by_mean * by_var / p), rtol=rtol, atol=1e-9)
    assert_allclose(found[2], np.sum(w * by_var**2 / p), rtol=rtol)


@pytest.mark.parametrize(("dm", "dv"), [(1.0, 0.0), (0.7, 0.3), (-0.5, 0.6), (0.0, 1.0)])
@each_case
def test_metric_matches_brute_force_steps(name, dm, dv):
    """r = sqrt(2 KL) / Delta of the mixture, Delta = 1e-4 along (dm, dv v)."""
    v = CASES[name][2]
    dv = dv * min(v, 1.0)
    delta = 1e-4
    squared = mixture(name).metric_terms(np.array([[dm]]), np.array([[dv]]))["prediction"][0, 0]
    expected = np.sqrt(2.0 * max(dense_kl(name, delta * dm, delta * dv), 0.0)) / delta
    if v < 1e-3 and dm == 0.0:
        pytest.skip("a KL of 1e-20 is below what the dense sum resolves")
    assert_allclose(np.sqrt(squared), expected, rtol=1e-3)


@pytest.mark.parametrize(("dm", "dv"), [(1.5, 0.3), (-1.0, -0.4), (0.3, 0.0), (0.0, 1.0)])
@each_case
def test_kl_of_a_large_step_matches_brute_force(name, dm, dv):
    dv = dv * CASES[name][2]
    found = mixture(name).kl_terms(np.array([dm]), np.array([dv]))["prediction"][0]
    assert_allclose(found, dense_kl(name, dm, dv), rtol=1e-5, atol=1e-13)


@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-8])
@each_case
def test_small_steps_approach_the_metric(name, delta):
    found, dv = mixture(name), 0.4 * CASES[name][2]
    squared = found.metric_terms(np.array([[0.8]]), np.array([[dv]]))["prediction"][0, 0]
    kl = found.kl_terms(np.array([0.8 * delta]), np.array([dv * delta]))["prediction"][0]
    assert_allclose(2.0 * kl / delta**2, squared, rtol=20 * delta + 1e-6)


@each_case
def test_no_step_is_no_divergence(name):
    assert mixture(name).kl_terms(np.zeros(1), np.zeros(1))["prediction"][0] == 0.0


@given(st.floats(-6, 6), st.floats(1e-6, 4.0), st.sampled_from(["poisson", "binomial", "logit", "gamma", "student-t"]))
def test_information_is_positive_semidefinite(m, v, name):
    likelihood, _, _, size, _ = CASES[name]
    I_mm, I_mv, I_vv = likelihood.predictive(np.array([m]), np.array([v]), np.array([size])).information
    assert np.all(I_mm >= 0)
    assert np.all(I_vv >= 0)
    assert np.all(I_mv**2 <= I_mm * I_vv * (1 + 1e-6) + 1e-12)


@given(st.floats(-3, 3), st.floats(-0.9, 3.0), st.sampled_from(list(CASES)))
def test_kl_is_finite_and_never_negative(mean_change, share, name):
    var_change = share * CASES[name][2]
    kl = mixture(name).kl_terms(np.array([mean_change]), np.array([var_change]))["prediction"][0]
    assert np.isfinite(kl)
    assert kl >= 0


def test_rows_are_independent_of_each_other():
    """Several points at once are the points one by one, different sizes and latent scales included."""
    m, v, size = np.array([-1.0, 2.0, 0.5]), np.array([0.1, 0.9, 2.0]), np.array([3.0, 12.0, 1.0])
    y, ones = np.array([1.0, 7.0, 0.0]), np.ones((1, 1))
    for likelihood in (Poisson(), Binomial(), NegativeBinomial(0.8), StudentT(3.0, 0.2)):
        together = likelihood.predictive(m, v, size)
        for i in range(3):
            alone = likelihood.predictive(m[i : i + 1], v[i : i + 1], size[i : i + 1])
            assert_allclose(together.mean[i], alone.mean[0], rtol=1e-10)
            assert_allclose(together.log_density(y)[i], alone.log_density(y[i : i + 1])[0], rtol=1e-10)
            all_metric = together.metric_terms(np.ones((3, 1)), np.ones((3, 1)))["prediction"][i, 0]
            assert_allclose(all_metric, alone.metric_terms(ones, ones)["prediction"][0, 0], rtol=1e-9)


@pytest.mark.parametrize("likelihood", [Poisson(), StudentT()], ids=repr)
def test_blocks_of_points_change_nothing(likelihood, monkeypatch):
    m, v = np.linspace(-1.0, 2.0, 7), np.linspace(0.1, 0.5, 7)
    steps = np.linspace(1e-4, 0.3, 7), np.linspace(1e-4, 0.1, 7)  # small ones and large ones in the same block
    whole = likelihood.predictive(m, v, np.ones(7))
    expected, expected_kl = whole.information, whole.kl_terms(*steps)["prediction"]
    monkeypatch.setattr("gpsift.likelihoods.mixture.BLOCK", 60_000)
    blocks = likelihood.predictive(m, v, np.ones(7))
    assert len(list(blocks._blocks())) > 1
    assert_allclose(blocks.information, expected, rtol=1e-9, atol=1e-12)
    assert_allclose(blocks.kl_terms(*steps)["prediction"], expected_kl, rtol=1e-9)


def test_a_known_latent_value_leaves_the_plain_distribution():
    """As v goes to 0 the information of m is that of the likelihood: exp(f) for Poisson, N p (1 - p) for binomial."""
    row = np.array([0.7]), np.array([1e-10]), np.array([5.0])
    assert_allclose(LatentMixture(Poisson(), *row).information[0], 5.0 * np.exp(0.7), rtol=1e-5)
    assert_allclose(LatentMixture(Binomial(), *row).information[0], 5.0 * expit(0.7) * expit(-0.7), rtol=1e-5)
    assert_allclose(
        LatentMixture(Poisson(), *row).log_density(np.array([9.0])), stats.poisson(5 * np.exp(0.7)).logpmf(9)
    )


@pytest.mark.parametrize(("m", "v"), [(12.0, 0.5), (12.0, 2.0), (9.0, 4.0)])
def test_large_rates_are_nearly_lognormal(m, v):
    """With counts of 1e5 the latent spread is all there is: I_mm = 1 / v and I_vv = 1 / (2 v^2)."""
    I_mm, I_mv, I_vv = LatentMixture(Poisson(), np.array([m]), np.array([v]), np.ones(1)).information
    rtol = 10.0 * np.exp(0.5 * v - m) / v  # E 1 / rate, the variance that a count adds to its logarithm
    assert_allclose(I_mm, 1.0 / v, rtol=rtol)
    assert_allclose(I_vv, 0.5 / v**2, rtol=rtol)
    assert np.abs(I_mv) < rtol * np.sqrt(I_mm * I_vv)


@pytest.mark.parametrize("v", [1e-4, 0.3, 4.0])
@pytest.mark.parametrize("k", [0.4, 2.4, 300.0])
def test_information_of_gamma_matches_its_location_family(k, v):
    """log y - m has a density that m does not change; that density by a fine convolution."""
    t = np.linspace(-9.5, 9.5, 1901)
    low, high = np.log(special.gammaincinv(k, 1e-17) / k), np.log(special.gammainccinv(k, 1e-17) / k)
    e = np.linspace(low - 9.5 * np.sqrt(v), high + 9.5 * np.sqrt(v), 2501)[:, None] - np.sqrt(v) * t
    pull = k * np.expm1(e)  # the derivative of the logarithm along m
    terms = np.exp(-pull + k * e - 0.5 * t**2)
    p, by_mean = terms.sum(axis=1), (terms * pull).sum(axis=1)
    by_var = 0.5 * (terms * (pull**2 - pull - k)).sum(axis=1)
    seen = p > 1e-250
    I_mm, I_mv, I_vv = Gamma(k).predictive(np.array([0.7]), np.array([v]), np.ones(1)).information
    expected = [
        np.sum(one[seen] * two[seen] / p[seen]) / p.sum()
        for one, two in ((by_mean, by_mean), (by_mean, by_var), (by_var, by_var))
    ]
    assert_allclose(I_mm[0], expected[0], rtol=1e-8)
    assert_allclose(I_mv[0], expected[1], atol=1e-8 * np.sqrt(expected[0] * expected[2]))
    assert_allclose(I_vv[0], expected[2], rtol=1e-8)


@pytest.mark.parametrize(
    "likelihood", [Poisson(), Binomial(), Logit(), Gamma(), StudentT(), NegativeBinomial()], ids=repr
)
def test_a_latent_variance_of_zero_is_the_likelihood_itself(likelihood):
    """A linear kernel knows its value at the origin exactly."""
    found = likelihood.predictive(np.array([0.3]), np.zeros(1), np.ones(1))
    expected = likelihood.log_density(np.array([1.0]), np.array([0.3]), np.ones(1))
    assert_allclose(found.log_density(np.array([1.0])), expected, rtol=1e-9)
    metric = found.metric_terms(np.ones((1, 1)), np.zeros((1, 1)))["prediction"]
    assert np.all(np.isfinite(metric) & (metric > 0))


def test_mixture_of_a_gaussian_is_the_gaussian_of_the_summed_variance():
    m, v = np.array([-0.4, 1.2]), np.array([0.3, 2.0])
    found, expected = LatentMixture(Gaussian(0.4), m, v, np.ones(2)), families.Gaussian(m, v + 0.4)
    y, dm, dv = np.array([0.1, -2.0]), np.array([0.6, -0.2]), np.array([0.3, -0.5])
    assert_allclose(found.log_density(y), expected.log_density(y), rtol=1e-9)
    assert_allclose(found.mean, expected.mean, rtol=1e-9)
    assert_allclose(found.var, expected.var, rtol=1e-9)
    assert_allclose(found.cdf(y), expected.cdf(y), rtol=1e-9)
    assert_allclose(found.quantile(0.8), expected.quantile(0.8), rtol=1e-8)
    assert_allclose(
        found.metric_terms(dm[:, None], dv[:, None])["prediction"],
        sum(expected.metric_terms(dm[:, None], dv[:, None]).values()),
        rtol=1e-8,
    )
    assert_allclose(found.kl_terms(dm, dv)["prediction"], sum(expected.kl_terms(dm, dv).values()), rtol=1e-6)


# --- the series of a step


@pytest.mark.parametrize(("dm", "dv"), [(1.0, 0.0), (0.7, 0.3), (-0.5, 0.6), (0.0, -1.0)])
@each_case
def test_the_series_hands_over_where_both_ways_agree(name, dm, dv, monkeypatch):
    """At the longest step that the series takes, subtracted log densities give the same."""
    family, v = mixture(name), CASES[name][2]
    unit = 1.0 / np.sqrt(family.information[0][0])
    direction = np.array([dm * min(unit, np.sqrt(v))]), np.array([dv * min(unit**2, v)])

    def kl(length, *limits):
        with monkeypatch.context() as patched:
            for name, limit in zip(("LAST_SHARE", "LARGEST_SQUARE"), limits, strict=False):
                patched.setattr(f"gpsift.likelihoods.mixture.{name}", limit)
            return family.kl_terms(length * direction[0], length * direction[1])["prediction"][0]

    taken = [length for length in np.geomspace(1e-4, 1.0, 60) if kl(length) == kl(length, np.inf, np.inf)]
    assert taken[0] == 1e-4  # the step that the paper takes
    assert_allclose(kl(taken[-1]), kl(taken[-1], 0.0, 0.0), rtol=1e-8)


# --- two classes

LATENT_MEAN = np.array([-2.0, -0.3, 0.0, 1.1, 3.0])
LATENT_VAR = np.array([0.5, 2.0, 1e-4, 9.0, 1.0])


def test_probit_bernoulli_matches_quadrature():
    found = ProbitBernoulli(LATENT_MEAN, LATENT_VAR)
    for i, (m, v) in enumerate(zip(LATENT_MEAN, LATENT_VAR, strict=True)):
        sd = np.sqrt(v)
        inside = (m - 12 * sd, m + 12 * sd)
        p, _ = integrate.quad(lambda f: ndtr(f) * stats.norm.pdf(f, m, sd), *inside, epsabs=1e-13, limit=200)  # noqa: B023
        assert_allclose(found.probability[i], p, rtol=1e-9)
    assert_allclose(found.probability + found.complement, 1.0)


def test_logit_probability_matches_quadrature():
    found = LatentMixture(Logit(), LATENT_MEAN, LATENT_VAR, np.ones(5))
    for i, (m, v) in enumerate(zip(LATENT_MEAN, LATENT_VAR, strict=True)):
        sd = np.sqrt(v)
        inside = (m - 12 * sd, m + 12 * sd)
        p, _ = integrate.quad(lambda f: expit(f) * stats.norm.pdf(f, m, sd), *inside, epsabs=1e-13, limit=200)  # noqa: B023
        assert_allclose(found.mean[i], p, atol=1e-8)
        assert_allclose(found.log_density(np.ones(5))[i], np.log(p), atol=1e-8)


def test_probit_bernoulli_equals_the_mixture_of_probit():
    closed, mixed = (
        ProbitBernoulli(LATENT_MEAN, LATENT_VAR),
        LatentMixture(Probit(), LATENT_MEAN, LATENT_VAR, np.ones(5)),
    )
    dm, dv = np.linspace(-0.5, 0.8, 5), np.linspace(0.4, -0.3, 5) * LATENT_VAR
    for y in (np.zeros(5), np.ones(5)):
        assert_allclose(closed.log_density(y), mixed.log_density(y), rtol=1e-6)
        assert_allclose(closed.cdf(y), mixed.cdf(y), rtol=1e-8)
    assert_allclose(closed.mean, mixed.mean, rtol=1e-8)
    assert_allclose(closed.var, mixed.var, rtol=1e-7)
    assert_allclose(
        closed.metric_terms(dm[:, None], dv[:, None])["prediction"],
        mixed.metric_terms(dm[:, None], dv[:, None])["prediction"],
        rtol=1e-7,
    )
    assert_allclose(closed.kl_terms(dm, dv)["prediction"], mixed.kl_terms(dm, dv)["prediction"], rtol=1e-6)


def bernoulli_kl_in_many_digits(z, moved):
    with mpmath.workdps(400):
        p, q = mpmath.ncdf(mpmath.mpf(z)), mpmath.ncdf(mpmath.mpf(moved))
        return float(p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q)))


@pytest.mark.parametrize("z", [-30.0, -7.0, -0.4, 0.0, 2.0, 7.0, 30.0])
@pytest.mark.parametrize("move", [1e-9, -1e-4, 1e-2, -0.3, 1.0])
def test_probit_kl_matches_many_digits_from_the_middle_to_the_tails(z, move):
    found = ProbitBernoulli(np.array([z]), np.zeros(1)).kl_terms(np.array([move]), np.zeros(1))["prediction"]
    assert_allclose(found[0], bernoulli_kl_in_many_digits(z, mpmath.mpf(z) + mpmath.mpf(move)), rtol=1e-4, atol=0)


@pytest.mark.parametrize("z", [-37.0, -7.034, -1.0, 0.5, 7.034, 37.0])
def test_probit_metric_matches_many_digits_at_saturated_probabilities(z):
    """z = 7.034 is a probability of 1e-12."""
    with mpmath.workdps(400):
        s = mpmath.mpf(z)
        expected = float(mpmath.npdf(s) ** 2 / (mpmath.ncdf(s) * mpmath.ncdf(-s)))
    found = ProbitBernoulli(np.array([z]), np.zeros(1)).metric_terms(np.ones((1, 1)), np.zeros((1, 1)))["prediction"]
    assert_allclose(found[0, 0], expected, rtol=1e-9)


@pytest.mark.parametrize("z", [-40.0, -12.0, -7.034, 7.034, 12.0, 40.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-4, 1.0, 6.0])
def test_saturated_probabilities_give_finite_scores(z, delta):
    for family in (
        ProbitBernoulli(np.full(2, z), np.array([0.0, 1.0])),
        LatentMixture(Logit(), np.full(2, z), np.array([1e-6, 1.0]), np.ones(2)),
        LatentMixture(Binomial(), np.full(2, z), np.array([1e-6, 1.0]), np.full(2, 9.0)),
    ):
        squared = family.metric_terms(np.ones((2, 3)), np.full((2, 3), -0.5))["prediction"]
        assert np.all(np.isfinite(squared))
        assert np.all(squared >= 0)
        for sign in (-1.0, 1.0):
            kl = family.kl_terms(np.full(2, sign * delta), np.zeros(2))["prediction"]
            assert np.all(np.isfinite(kl))
            assert np.all(kl >= 0)
        assert np.all(np.isfinite(family.log_density(np.array([0.0, 1.0]))))


@pytest.mark.parametrize("p", [1e-100, 1e-12, 0.3, 1.0 - 1e-12])
def test_bernoulli_kl_is_finite_and_matches_the_metric(p):
    family = families.Bernoulli(np.array([p]))
    change = 1e-6 * min(p, 1.0 - p)
    squared = family.metric_terms(np.array([[change]]))["prediction"][0, 0]
    assert_allclose(2.0 * family.kl_terms(np.array([change]))["prediction"][0], squared, rtol=1e-5)


@pytest.mark.parametrize("z", [-40.0, -2.0, 0.5, 40.0])
def test_two_classes_quantiles_and_samples(z):
    family = ProbitBernoulli(np.array([z]), np.zeros(1))
    p = ndtr(z)
    assert_allclose(family.quantile(np.array([0.1, 0.9])), [[float(1 - p < 0.1), float(1 - p < 0.9)]])
    draws = family.sample(4000, np.random.default_rng(2))
    assert set(np.unique(draws)) <= {0.0, 1.0}
    assert_allclose(draws.mean(), p, atol=0.03)
