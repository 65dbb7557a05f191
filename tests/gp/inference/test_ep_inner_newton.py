"""The means of expectation propagation at given variances of its cavities are the mode of terms of their own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import ndtr

from gpsift.gp.inference.ep import CavityTerms, expectation_propagation, newton_cavities
from gpsift.kernels import SquaredExponential
from gpsift.likelihoods import Logit, Poisson, Probit

LIKELIHOODS = [Probit(), Logit(), Poisson()]


@pytest.fixture
def cavities():
    rng = np.random.default_rng(0)
    return {
        "y": rng.integers(2, size=40).astype(float),
        "f": rng.normal(size=40),
        "size": np.ones(40),
        "mean": rng.normal(size=40),
        "var": rng.uniform(0.1, 20.0, size=40),
    }


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda each: type(each).__name__)
def test_tilted_distributions_have_the_means_that_were_asked_for(cavities, likelihood):
    terms = CavityTerms(likelihood, cavities["mean"], cavities["var"])
    mean, tilted = terms.cavities(cavities["y"], cavities["f"], cavities["size"])
    again = likelihood.tilted_moments(cavities["y"], mean, cavities["var"], cavities["size"])
    assert_allclose(again.mean, cavities["f"], rtol=0, atol=1e-8)
    assert_allclose(tilted.var, again.var)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda each: type(each).__name__)
def test_derivatives_match_central_differences(cavities, likelihood):
    y, f, size = cavities["y"], cavities["f"], cavities["size"]
    terms = CavityTerms(likelihood, cavities["mean"], cavities["var"])
    h = 1e-4
    first, second, _ = terms.derivatives(y, f, size)
    up, here, down = (terms.log_density(y, f + step, size) for step in (h, 0.0, -h))
    assert_allclose(first, (up - down) / (2 * h), rtol=1e-5, atol=1e-7)
    assert_allclose(second, (up - 2 * here + down) / h**2, rtol=1e-3, atol=1e-5)


def test_where_expectation_propagation_rests_the_means_rest():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 2))
    y = (rng.uniform(size=50) < ndtr(2 * X[:, 0])).astype(float)
    K = SquaredExponential(np.array([1.0, 2.0]), 5.0).between(X, X).K
    result = expectation_propagation(K, y, np.ones(50), Probit())
    terms = CavityTerms(Probit(), np.zeros(50), result.cavity_var)
    found = newton_cavities(K, y, np.ones(50), terms, weights=np.zeros(50), tolerance=1e-12)
    assert found is not None
    assert_allclose(found[0], result.cavity_mean, rtol=0, atol=1e-6)
