"""The categorical distribution against sums over its classes, many digits and the Bernoulli distribution."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from gpsift.likelihoods.distributions import Bernoulli, Categorical

PROBABILITIES = np.array([[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]])


def kl_of(probabilities, change):
    return Categorical(np.array([probabilities])).kl_terms(np.array([change]))["prediction"][0]


def simplex(weights):
    return np.array(weights) / np.sum(weights)


def test_distribution_matches_scipy():
    found = Categorical(PROBABILITIES)
    peers = [stats.rv_discrete(values=(range(3), row)) for row in PROBABILITIES]
    for y in (0.0, 1.0, 2.0):
        assert_allclose(found.log_density(np.full(2, y)), [peer.logpmf(y) for peer in peers])
        for place in (y, y + 0.5, y - 1.0, y + 1.0):
            assert_allclose(found.cdf(np.full(2, place)), [peer.cdf(place) for peer in peers])
    for p in (0.01, 0.2001, 0.6, 0.75, 0.99):
        assert_array_equal(found.quantile(p), [peer.ppf(p) for peer in peers])
    assert_array_equal(found.quantile([0.01, 0.6])[:, 1], found.quantile(0.6))
    assert_array_equal(found.log_density(np.array([3.0, 0.5])), -np.inf)
    assert_array_equal(found.log_density(np.array([-1.0, -3.0])), -np.inf)
    one_draw = [stats.multinomial(1, row) for row in PROBABILITIES]
    assert_allclose(found.mean, [peer.mean() for peer in one_draw])
    assert_allclose(found.var, [np.diag(peer.cov()) for peer in one_draw])


def test_samples_have_the_frequencies_they_should(rng):
    found = Categorical(np.vstack([PROBABILITIES, [1.0, 0.0, 0.0]]))
    draws = found.sample(40_000, rng)
    assert draws.shape == (40_000, 3)
    frequencies = np.stack([np.mean(draws == c, axis=0) for c in range(3)], axis=1)
    assert_allclose(frequencies, found.probabilities, atol=0.01)
    assert_array_equal(draws[:, 2], 0.0)


def test_kl_matches_the_sum_over_classes():
    moved = np.array([[0.6, 0.1, 0.3], [0.1, 0.1, 0.8]])
    expected = [stats.entropy(p, q) for p, q in zip(PROBABILITIES, moved, strict=True)]
    found = Categorical(PROBABILITIES).kl_terms(moved - PROBABILITIES)["prediction"]
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("step", [1e-9, -1e-9, 1e-4, 0.1])
def test_kl_of_a_small_change_matches_fifty_digits(step):
    probabilities, change = [0.25, 0.5, 0.25], [0.5 * step, step, -1.5 * step]
    with mpmath.workdps(50):
        p, d = [mpmath.mpf(value) for value in probabilities], [mpmath.mpf(value) for value in change]
        d[2] = -d[0] - d[1]
        expected = float(sum(a * mpmath.log(a / (a + b)) for a, b in zip(p, d, strict=True)))
    assert_allclose(kl_of(probabilities, change), expected, rtol=1e-13)


def test_metric_matches_the_expected_squared_score():
    direction, h = np.array([0.4, -0.7, 0.3]), 1e-5
    for p in PROBABILITIES:
        up, down = (Categorical(np.tile(p + sign * h * direction, (3, 1))) for sign in (1, -1))
        score = (up.log_density(np.arange(3.0)) - down.log_density(np.arange(3.0))) / (2 * h)
        found = Categorical(p[None]).metric_terms(direction[None, :, None])["prediction"]
        assert_allclose(found, [[np.sum(p * score**2)]], rtol=1e-7)


def test_metric_is_the_limit_of_the_kl(rng):
    found, step = Categorical(PROBABILITIES), 1e-6
    gradients = rng.normal(size=(2, 3, 4))
    gradients -= gradients.mean(axis=1, keepdims=True)
    metric = found.metric_terms(gradients)["prediction"]
    assert metric.shape == (2, 4)
    for j in range(4):
        kl = found.kl_terms(step * gradients[:, :, j])["prediction"]
        assert_allclose(2 * kl / step**2, metric[:, j], rtol=1e-4)


def test_two_classes_are_bernoulli():
    p, change = np.array([0.2, 0.9]), np.array([0.3, -1e-7])
    found, bernoulli = Categorical(np.stack([1 - p, p], axis=1)), Bernoulli(p)
    changes = np.stack([-change, change], axis=1)
    assert_allclose(found.kl_terms(changes)["prediction"], bernoulli.kl_terms(change)["prediction"], rtol=1e-12)
    metric = found.metric_terms(changes[:, :, None])["prediction"]
    assert_allclose(metric, bernoulli.metric_terms(change[:, None])["prediction"], rtol=1e-12)


shares = st.lists(st.floats(1e-6, 1.0), min_size=4, max_size=4)


@given(shares, shares)
def test_kl_is_never_negative(p, q):
    p, q = simplex(p), simplex(q)
    assert kl_of(p, q - p) >= 0


@given(shares, shares, shares, st.permutations(range(4)))
def test_order_of_the_classes_does_not_matter(p, q, gradient, order):
    p, q, gradient = simplex(p), simplex(q), simplex(gradient) - 0.25
    assert_allclose(kl_of(p[order], (q - p)[order]), kl_of(p, q - p), rtol=1e-10, atol=1e-15)
    metric = Categorical(p[None]).metric_terms(gradient[None, :, None])["prediction"]
    permuted = Categorical(p[None, order]).metric_terms(gradient[None, order, None])["prediction"]
    assert_allclose(permuted, metric, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("tail", [1e-300, 1e-16, 0.0])
def test_saturated_probabilities_are_finite(tail):
    p = np.array([[1.0 - tail, tail, 0.0]])
    found = Categorical(p)
    # A logit that moves by 1 moves the first two probabilities by p_1 p_2.
    gradient = np.array([[-tail, tail, 0.0]])[:, :, None]
    assert_allclose(found.metric_terms(gradient)["prediction"], [[tail * (1 + tail)]], rtol=1e-12)
    assert np.isfinite(found.metric_terms(np.array([[-1e-3, 1e-3, 0.0]])[:, :, None])["prediction"])
    kl = found.kl_terms(np.array([[-0.1, 0.05, 0.05]]))["prediction"]
    assert_allclose(kl, -np.log1p(-0.1), rtol=1e-11)
    assert found.quantile(0.999) == 0.0
    assert_allclose(found.cdf(np.zeros(1)), 1.0, rtol=1e-15)
    assert found.log_density(np.array([2.0])) == -np.inf


def test_rounding_leaves_no_gap_above_the_last_class():
    tenths = np.full((1, 10), 0.1)
    assert np.cumsum(tenths)[-1] < 1.0
    assert Categorical(tenths).cdf(np.array([9.0])) == 1.0


def test_single_precision_zeros_are_finite():
    found = Categorical(np.array([[1.0, 0.0]], dtype=np.float32))
    assert found.metric_terms(np.zeros((1, 2, 1), dtype=np.float32))["prediction"] == 0.0
    change = np.array([[-0.25, 0.25]], dtype=np.float32)
    assert_allclose(found.kl_terms(change)["prediction"], -np.log(0.75), rtol=1e-12)


def test_kl_to_an_impossible_class_is_infinite():
    assert kl_of([0.25, 0.25, 0.5], [-0.25, 0.25, 0.0]) == np.inf


def test_quantile_rejects_what_is_no_probability():
    for probability in (0.0, 1.0, [0.5, 2.0]):
        with pytest.raises(ValueError, match="between 0 and 1"):
            Categorical(PROBABILITIES).quantile(probability)
