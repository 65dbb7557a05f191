from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from sklearn.datasets import make_friedman1
from toys import toy as known_toy

from gpsift.paper.datasets import friedman, paper_toy
from gpsift.paper.datasets.toys import FREQUENCIES, correlated_inputs, friedman_function, sine_amplitudes, sine_terms

DENSITY = {"uniform": (stats.uniform(-1, 2), 1.0), "normal": (stats.norm(0, 0.4), 4.8)}  # and where to stop
LAWS = ["uniform", "normal"]


@pytest.mark.parametrize("law", LAWS)
def test_every_term_has_mean_0_and_variance_1_by_quadrature(law):
    density, edge = DENSITY[law]
    for frequency, amplitude in zip(FREQUENCIES, sine_amplitudes(law), strict=True):

        def moment(power, frequency=frequency, amplitude=amplitude):
            return quad(lambda x: density.pdf(x) * (amplitude * np.sin(frequency * x)) ** power, -edge, edge)[0]

        assert moment(1) == pytest.approx(0.0, abs=1e-12)
        assert moment(2) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_terms_have_variance_1_and_inputs_their_law_by_monte_carlo(law, correlation):
    toy = paper_toy(law, n=40_000, correlation=correlation, seed=1)
    # The variance of a variance: kurtosis of a sine is at most 3.
    np.testing.assert_allclose(sine_terms(toy.X, law).var(axis=0), 1.0, atol=5 * np.sqrt(2 / 40_000))
    for column in toy.X.T:
        assert stats.kstest(column, DENSITY[law][0].cdf).statistic < 1.95 / np.sqrt(40_000)  # level 0.001
    observed = np.corrcoef(toy.X, rowvar=False)[np.triu_indices(8, 1)]
    np.testing.assert_allclose(observed, correlation, atol=5 / np.sqrt(40_000))


@pytest.mark.parametrize("correlation", [0.0, 0.1, 0.5, 0.9])
def test_correlation_of_the_copula_matches_quadrature(correlation):
    """Given z0 the inputs are independent and alike, so that E[x1 x2] = E[E[x | z0]^2]."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    weights = weights / weights.sum()
    own, shared = np.meshgrid(nodes, nodes)
    x = correlated_inputs("uniform", own.reshape(-1, 1), shared.ravel(), correlation).reshape(own.shape)
    variance = weights @ x**2 @ weights
    assert variance == pytest.approx(1 / 3, rel=1e-6)
    assert weights @ (x @ weights) ** 2 / variance == pytest.approx(correlation, abs=1e-6)


def test_normal_toy_is_that_of_the_tests():
    X, y = known_toy("normal", 50, seed=4)
    toy = paper_toy("normal", n=50, seed=4)
    np.testing.assert_array_equal(toy.X, X)
    np.testing.assert_allclose(toy.y, y, rtol=1e-13, atol=1e-13)


def test_uniform_toy_obeys_equation_7():
    toy = paper_toy("uniform", n=30, seed=2)
    f = np.zeros(30)
    for j, frequency in enumerate(np.linspace(np.pi / 10, np.pi, 8)):
        f += np.sin(frequency * toy.X[:, j]) / np.sqrt(0.5 - np.sin(2 * frequency) / (4 * frequency))
    np.testing.assert_allclose(toy.f, f, rtol=1e-13, atol=1e-13)
    assert toy.noise_sd == 0.3


@pytest.mark.parametrize("make", [paper_toy, friedman])
def test_noise_has_the_standard_deviation_asked_for(make):
    for noise_sd in (0.3, 2.0):
        toy = make(n=20_000, noise_sd=noise_sd)
        assert (toy.y - toy.f).std() == pytest.approx(noise_sd, rel=0.03)
    quiet = make(noise_sd=0.0)
    np.testing.assert_array_equal(quiet.y, quiet.f)


def test_fifty_features_have_eight_relevant_ones_spread_as_in_the_supplement():
    toy = paper_toy("normal", p=50)
    assert toy.X.shape == (300, 50)
    assert toy.relevant_names == ("x1", "x8", "x15", "x22", "x29", "x36", "x43", "x50")
    np.testing.assert_allclose(toy.f, sine_terms(toy.X[:, toy.relevant], "normal").sum(axis=1))
    assert (~toy.relevant).sum() == 42


@given(p=st.integers(8, 300))
def test_there_are_eight_relevant_features_whatever_p(p):
    toy = paper_toy(n=2, p=p)
    assert toy.relevant.sum() == 8
    assert toy.relevant[0]
    assert toy.relevant[-1]
    assert len(toy.names) == p


def test_friedman_function_is_that_of_scikit_learn():
    X, y = make_friedman1(200, 7, noise=0.0, random_state=0)
    np.testing.assert_allclose(friedman_function(X), y, rtol=1e-13)


def test_friedman_has_five_relevant_features_and_uniform_inputs():
    toy = friedman(n=20_000, p=6, correlation=0.4)
    assert toy.relevant_names == ("x1", "x2", "x3", "x4", "x5")
    np.testing.assert_array_equal(toy.f, friedman_function(toy.X))
    for column in toy.X.T:
        assert stats.kstest(column, stats.uniform.cdf).statistic < 1.95 / np.sqrt(20_000)
    np.testing.assert_allclose(np.corrcoef(toy.X, rowvar=False)[np.triu_indices(6, 1)], 0.4, atol=5 / np.sqrt(20_000))


@pytest.mark.parametrize("make", [paper_toy, friedman])
def test_seed_decides(make):
    np.testing.assert_array_equal(make(seed=3).y, make(seed=3).y)
    np.testing.assert_array_equal(make(seed=0).X, make().X)
    assert not np.array_equal(make(seed=3).X, make(seed=4).X)
    assert not np.array_equal(make(seed=[3, 1]).X, make(seed=[3, 2]).X)
    assert not np.array_equal(make(seed=None).X, make(seed=None).X)


def test_noise_does_not_depend_on_law_or_correlation():
    noises = [
        toy.y - toy.f
        for toy in (paper_toy(), paper_toy("normal"), paper_toy(correlation=0.5), friedman(p=8, noise_sd=0.3))
    ]
    for noise in noises[1:]:
        np.testing.assert_allclose(noise, noises[0], atol=1e-12)


def test_toy_describes_itself():
    assert repr(paper_toy(p=50)) == "Toy of 300 rows and 50 features, 8 of them relevant"


@pytest.mark.parametrize(
    ("make", "choice", "message"),
    [
        (paper_toy, {"p": 7}, "`p` must be at least 8"),
        (friedman, {"p": 4}, "`p` must be at least 5"),
        (paper_toy, {"n": 0}, "`n` must be at least 1"),
        (paper_toy, {"noise_sd": -0.1}, "`noise_sd`"),
        (friedman, {"noise_sd": np.nan}, "`noise_sd`"),
        (paper_toy, {"correlation": 1.0}, "`correlation` must be"),
        (friedman, {"correlation": -0.1}, "`correlation` must be"),
        (paper_toy, {"law": "cauchy"}, "`law` must be"),
    ],
)
def test_toys_refuse_impossible_choices(make, choice, message):
    with pytest.raises(ValueError, match=message):
        make(**choice)
