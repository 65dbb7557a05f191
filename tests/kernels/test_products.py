"""Kernels as sums of products against their own values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.kernels.products import matern_mixture

KERNELS = [
    (gs.SquaredExponential(signal_var=2.0), 1e-12),
    (gs.SquaredExponential(lengthscale=1.3, shared=True), 1e-12),
    (gs.Constant(0.7), 1e-12),
    (gs.Matern32(signal_var=2.0), 8e-8),
    (gs.Matern52(signal_var=2.0), 8e-8),
    (gs.RationalQuadratic(shape=1.0), 4e-8),
    (gs.RationalQuadratic(shape=4.0), 4e-8),
    (gs.RationalQuadratic(shape=500.0), 4e-8),
    (gs.SquaredExponential() + gs.Matern52() + gs.Constant(), 4e-8),
    (gs.SquaredExponential() + gs.Linear(np.array([0.5, 0.0001, 2.0])), 1e-13),
]


@pytest.mark.parametrize(("kernel", "tolerance"), KERNELS, ids=lambda value: getattr(value, "title", ""))
def test_sums_of_products_are_the_kernel(kernel, tolerance):
    rng = np.random.default_rng(0)
    X, Z = 2 * rng.normal(size=(60, 3)), 2 * rng.normal(size=(50, 3))
    Z[:10] = X[:10] + 1e-3 * rng.normal(size=(10, 3))
    kernel = kernel.for_features(3)
    terms = kernel.product_terms(3)
    products = sum(term.variance * (1.0 + term.excess(range(3), X, Z)) for term in terms)
    total = products + (X * kernel.slope_vars(3)) @ Z.T
    assert_allclose(total, kernel.between(X, Z).K, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("mixture", "most"), [(matern_mixture(2.5), 12), (matern_mixture(1.5), 17)])
def test_few_terms_are_enough(mixture, most):
    """Weights are positive and add up to 1, so that the sum is a kernel itself."""
    times, weights = mixture
    assert len(times) <= most
    assert np.all(weights > 0)
    assert_allclose(weights.sum(), 1.0, rtol=1e-12)


def test_factors_multiply():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(5, 3)), rng.normal(size=(4, 3))
    (term,) = gs.SquaredExponential(lengthscale=np.array([1.0, np.inf, 0.5])).product_terms(3)
    factors = [1.0 + term.excess([j], X[:, [j]], Z[:, [j]]) for j in range(3)]
    assert_allclose(1.0 + term.excess([0, 1, 2], X, Z), np.prod(factors, axis=0), rtol=1e-12)
    assert not term.varies_with([1])
    assert term.varies_with([1, 2])


def test_wide_mixtures_have_no_such_form():
    assert gs.RationalQuadratic(shape=0.05).for_features(2).product_terms(2) is None
