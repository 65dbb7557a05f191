"""Binomial, Poisson and negative binomial distributions against SciPy, sums over the counts and many digits."""

from collections.abc import Callable
from typing import NamedTuple

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from gpsift.likelihoods.distributions import Binomial, NegativeBinomial, Poisson

TRIALS, CONCENTRATION = 7.0, 1.7
COUNTS = np.arange(400.0)


class Case(NamedTuple):
    """A family by the parameter that varies, and what it is compared with."""

    family: Callable  # of an array of parameters
    peer: Callable  # SciPy's
    exact_kl: Callable  # from one parameter to another, in many digits
    parameter: float
    far: float  # a large change of it


def exact_negative_binomial_kl(m, k):
    r = mpmath.mpf(CONCENTRATION)
    return m * mpmath.log(m * (k + r) / (k * (m + r))) + r * mpmath.log((k + r) / (m + r))


CASES = {
    "binomial": Case(
        lambda p: Binomial(TRIALS, p),
        lambda p: stats.binom(TRIALS, p),
        lambda p, q: TRIALS * (p * mpmath.log(p / q) + (1 - p) * mpmath.log((1 - p) / (1 - q))),
        parameter=0.3,
        far=0.6,
    ),
    "poisson": Case(Poisson, stats.poisson, lambda m, k: m * mpmath.log(m / k) + k - m, parameter=2.4, far=5.0),
    "negative binomial": Case(
        lambda m: NegativeBinomial(m, CONCENTRATION),
        lambda m: stats.nbinom(CONCENTRATION, CONCENTRATION / (CONCENTRATION + m)),
        exact_negative_binomial_kl,
        parameter=2.4,
        far=5.0,
    ),
}
every_family = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def kl_of(family, change):
    return family.kl_terms(np.array([change]))["prediction"][0]


def metric_of(family, gradient):
    return family.metric_terms(np.array([[gradient]]))["prediction"][0, 0]


@every_family
def test_kl_matches_the_sum_over_counts(case):
    for change in (case.far, -0.9 * case.parameter):
        p, q = case.peer(case.parameter), case.peer(case.parameter + change)
        counts = COUNTS[p.pmf(COUNTS) > 0]
        expected = np.sum(p.pmf(counts) * (p.logpmf(counts) - q.logpmf(counts)))
        assert_allclose(kl_of(case.family(np.array([case.parameter])), change), expected, rtol=1e-10)


@every_family
@pytest.mark.parametrize("relative", [1e-9, -1e-9, 1e-4, -0.2])
def test_kl_of_a_small_change_matches_fifty_digits(case, relative):
    change = relative * case.parameter
    with mpmath.workdps(50):
        m = mpmath.mpf(case.parameter)
        expected = float(case.exact_kl(m, m + mpmath.mpf(change)))
    assert_allclose(kl_of(case.family(np.array([case.parameter])), change), expected, rtol=1e-13)


@every_family
def test_metric_matches_the_expected_squared_score(case):
    h = 1e-5 * case.parameter
    counts = COUNTS[case.peer(case.parameter).pmf(COUNTS) > 0]

    def log_density(value):
        return case.family(np.full(counts.shape, value)).log_density(counts)

    score = (log_density(case.parameter + h) - log_density(case.parameter - h)) / (2 * h)
    expected = np.sum(case.peer(case.parameter).pmf(counts) * score**2)
    assert_allclose(metric_of(case.family(np.array([case.parameter])), 1.0), expected, rtol=1e-7)


@every_family
def test_metric_is_the_limit_of_the_kl(case):
    gradient, step = -0.7, 1e-6
    found = case.family(np.array([case.parameter]))
    assert_allclose(2 * kl_of(found, step * gradient) / step**2, metric_of(found, gradient), rtol=1e-4)


@every_family
def test_distribution_matches_scipy(case):
    parameters = case.parameter * np.array([0.1, 0.5, 1.0, 2.0, 3.0])
    y = np.array([0.0, 1.0, 2.0, 5.0, 7.0])
    found, expected = case.family(parameters), case.peer(parameters)
    assert_allclose(found.mean, expected.mean(), rtol=1e-12)
    assert_allclose(found.var, expected.var(), rtol=1e-12)
    assert_allclose(found.log_density(y), expected.logpmf(y), rtol=1e-11)
    for place in (y, y - 0.5, y + 0.5, y - 8.0):
        assert_allclose(found.cdf(place), expected.cdf(place), rtol=1e-11)
    probabilities = np.array([1e-6, 0.1, 0.5, 0.9, 1 - 1e-9])
    assert_array_equal(found.quantile(0.3), expected.ppf(0.3))
    assert_array_equal(found.quantile(probabilities), np.stack([expected.ppf(p) for p in probabilities], axis=1))
    assert_array_equal(found.log_density(np.array([-1.0, 0.5, 1.5, -3.0, 2.2])), -np.inf)


@every_family
def test_quantile_inverts_the_cdf(case):
    found = case.family(np.array([case.parameter]))
    for y in range(6):
        below = found.cdf(np.array([float(y)]))[0]
        assert found.quantile(below) == y
        assert found.quantile(below + 1e-9) == y + 1


@every_family
def test_samples_have_the_moments_they_should(case, rng):
    found = case.family(case.parameter * np.array([0.5, 2.0]))
    draws = found.sample(40_000, rng)
    assert draws.shape == (40_000, 2)
    assert_array_equal(draws, np.floor(draws))
    assert_allclose(draws.mean(axis=0), found.mean, rtol=0.03)
    assert_allclose(draws.var(axis=0), found.var, rtol=0.05)


@every_family
def test_quantile_rejects_what_is_no_probability(case):
    for probability in (0.0, 1.0, np.nan, [0.5, 2.0]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            case.family(np.array([case.parameter])).quantile(probability)


@every_family
def test_terms_have_the_shapes_of_the_contract(case):
    found = case.family(case.parameter * np.array([0.5, 1.0, 2.0]))
    assert found.metric_terms(np.ones((3, 4)))["prediction"].shape == (3, 4)
    assert found.kl_terms(np.full(3, 0.01))["prediction"].shape == (3,)
    assert_allclose(found.kl_terms(np.float64(0.01))["prediction"], found.kl_terms(np.full(3, 0.01))["prediction"])
    # One parameter a point, not one for all: the rows are those of each point alone.
    alone = [metric_of(case.family(np.array([value])), 1.0) for value in case.parameter * np.array([0.5, 1.0, 2.0])]
    assert_allclose(found.metric_terms(np.ones((3, 4)))["prediction"][:, 2], alone)


@given(st.floats(1e-9, 1 - 1e-9), st.floats(1e-9, 1 - 1e-9), st.integers(0, 50))
def test_binomial_kl_is_never_negative(p, q, trials):
    assert kl_of(Binomial(np.array([float(trials)]), np.array([p])), q - p) >= 0


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6), st.floats(1e-3, 1e6))
def test_kl_of_rates_is_never_negative(m, moved, concentration):
    poisson = kl_of(Poisson(np.array([m])), moved - m)
    negative_binomial = kl_of(NegativeBinomial(np.array([m]), concentration), moved - m)
    # Mixing both over the same gamma distribution can only bring them closer.
    assert 0 <= negative_binomial <= poisson * (1 + 1e-9)


@pytest.mark.parametrize("concentration", [1e-6, 1e6])
def test_negative_binomial_kl_keeps_its_digits_at_extreme_concentrations(concentration):
    m, d = 5e3, 1e-6
    with mpmath.workdps(50):
        a, r, b = mpmath.mpf(m), mpmath.mpf(concentration), mpmath.mpf(m) + mpmath.mpf(d)
        expected = float(a * mpmath.log(a / b) + (a + r) * mpmath.log((b + r) / (a + r)))
    assert_allclose(kl_of(NegativeBinomial(np.array([m]), concentration), d), expected, rtol=1e-12)


def test_negative_binomial_of_large_concentration_is_poisson():
    m, y = np.array([0.3, 4.0, 50.0]), np.array([1.0, 2.0, 60.0])
    found, expected = NegativeBinomial(m, 1e12), Poisson(m)
    assert_allclose(found.log_density(y), expected.log_density(y), rtol=1e-8)
    assert_allclose(found.cdf(y), expected.cdf(y), rtol=1e-8)
    assert_allclose(found.kl_terms(m)["prediction"], expected.kl_terms(m)["prediction"], rtol=1e-8)


def test_binomial_of_many_rare_successes_is_poisson():
    m, y = np.array([0.3, 4.0, 50.0]), np.array([1.0, 2.0, 60.0])
    found, expected = Binomial(1e12, m / 1e12), Poisson(m)
    assert_allclose(found.log_density(y), expected.log_density(y), rtol=1e-8)
    assert_allclose(found.cdf(y), expected.cdf(y), rtol=1e-8)


def test_one_trial_is_bernoulli():
    p, d = np.array([0.2, 0.9]), np.array([0.3, -0.1])
    found = Binomial(1.0, p)
    assert_allclose(found.metric_terms(d[:, None])["prediction"][:, 0], d**2 / (p * (1 - p)))
    assert_allclose(found.cdf(np.zeros(2)), 1 - p, rtol=1e-14)


def test_no_trials_leave_nothing_to_learn():
    found = Binomial(np.zeros(2), np.array([0.2, 0.9]))
    assert_array_equal(found.log_density(np.array([0.0, 1.0])), [0.0, -np.inf])
    assert_array_equal(found.cdf(np.array([-1.0, 0.0])), [0.0, 1.0])
    assert_array_equal(found.quantile(0.9), 0.0)
    assert_array_equal(found.kl_terms(np.array([0.1, -0.1]))["prediction"], 0.0)


@pytest.mark.parametrize("tail", [1e-300, 1e-16, 0.0])
@pytest.mark.parametrize("at_one", [False, True])
def test_saturated_probabilities_are_finite(tail, at_one):
    tails, rest = np.array([tail]), np.array([1.0 - tail])
    found = Binomial(3.0, rest, tails) if at_one else Binomial(3.0, tails)
    inward = -1.0 if at_one else 1.0
    # A logit that moves by 1 moves the probability by p (1 - p): the metric is 3 p (1 - p).
    assert_allclose(metric_of(found, inward * tail), 3 * tail * (1 - tail), rtol=1e-12)
    assert np.isfinite(metric_of(found, 1e-3))
    assert metric_of(found, 0.0) == 0.0
    # KL from certainty to a probability of 1 - d of the same is -log(1 - d).
    assert_allclose(kl_of(found, inward * 0.1), -3 * np.log1p(-0.1), rtol=1e-11)
    assert kl_of(found, 0.0) == 0.0
    y = np.array([0.0 if at_one else 3.0])
    assert_allclose(found.log_density(3.0 - y), 0.0, atol=1e-15)
    if tail > 0:
        assert_allclose(found.log_density(y), 3 * np.log(tail))


def test_binomial_that_is_only_told_a_probability_of_one_is_finite():
    found = Binomial(3.0, np.array([1.0]))
    assert metric_of(found, 0.0) == 0.0
    assert np.isfinite(kl_of(found, -1e-9))


def test_kl_to_an_impossible_outcome_is_infinite():
    assert kl_of(Binomial(3.0, np.array([0.25])), -0.25) == np.inf
    assert kl_of(Poisson(np.array([2.0])), -2.0) == np.inf
    assert kl_of(NegativeBinomial(np.array([2.0]), 1.5), -2.0) == np.inf


@pytest.mark.parametrize("mean", [0.0, 1e-300])
def test_rates_of_zero_are_finite(mean):
    for found in (Poisson(np.array([mean])), NegativeBinomial(np.array([mean]), 2.0)):
        assert metric_of(found, 0.0) == 0.0
        assert np.isfinite(metric_of(found, 1.0))
        assert_allclose(found.log_density(np.zeros(1)), 0.0, atol=1e-299)
        assert found.quantile(0.99) == 0.0
    assert_allclose(kl_of(Poisson(np.array([mean])), 1e12), 1e12)
    assert_allclose(kl_of(NegativeBinomial(np.array([mean]), 2.0), 6.0), 2 * np.log(4.0))
