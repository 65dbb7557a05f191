"""Slopes of the evidence as features enter, against differences and brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

import gpsift as gs
from gpsift.gp.hyperparameters.screening import (
    DEGREE_WEIGHTS,
    average_ranks,
    entering_scores,
    hermite_features,
    inverse_square_slopes,
    normal_scores,
    promising_pairs,
)
from gpsift.gp.inference import ExactInference
from gpsift.gp.inference.ep import EPInference
from gpsift.gp.inference.laplace import LaplaceInference
from gpsift.gp.inference.softmax import SoftmaxInference
from gpsift.likelihoods import Gamma, Gaussian, Poisson, Probit, Softmax, StudentT

rng = np.random.default_rng(3)
N, P = 25, 4
X = rng.normal(size=(N, P))
F = np.sin(X[:, 0]) + 0.5 * X[:, 1]
Y = F + 0.3 * rng.normal(size=N)
ONES = np.ones(N)
CASES = {
    "exact": (lambda X: ExactInference(X, Y), Gaussian(0.2)),
    "known noise": (lambda X: ExactInference(X, Y), Gaussian(rng.uniform(0.1, 0.3, N))),
    "EP": (lambda X: EPInference(X, (Y > 0).astype(float), ONES, tolerance=1e-9), Probit()),
    "Laplace, probit": (lambda X: LaplaceInference(X, (Y > 0).astype(float), ONES), Probit()),
    "Laplace, counts": (lambda X: LaplaceInference(X, np.floor(np.exp(F)), ONES), Poisson()),
    "Laplace, gamma": (lambda X: LaplaceInference(X, np.exp(Y), ONES), Gamma(2.0)),
    "Laplace, Student-t": (lambda X: LaplaceInference(X, Y, ONES), StudentT(5.0, 0.3)),
    "softmax": (lambda X: SoftmaxInference(X, np.digitize(Y, [-0.4, 0.4]).astype(float), Softmax(3)), Softmax(3)),
}


@pytest.mark.parametrize("name", CASES)
def test_slopes_match_differences_of_the_evidence(name):
    """Of the third and fourth feature, which are off: dL / d(1 / l^2) at 0 by one-sided differences of second order."""
    engine, likelihood = CASES[name]
    active = gs.SquaredExponential(np.array([0.9, 1.7]), 1.3)
    slope = engine(X[:, :2]).slope(active + gs.Constant(0.5), likelihood)
    found = inverse_square_slopes(slope.G, active.between(X[:, :2], X[:, :2]).K, X[:, 2:])

    def evidence(inverse_squares):
        with np.errstate(divide="ignore"):
            lengths = np.concatenate([[0.9, 1.7], 1.0 / np.sqrt(inverse_squares)])
        return engine(X).evidence(gs.SquaredExponential(lengths, 1.3) + gs.Constant(0.5), likelihood).value

    h = 3e-6
    rtol = 1e-5 if isinstance(likelihood, StudentT) else 1e-6  # its mode is found to fewer digits
    for j in range(2):
        here, near, far = (evidence(k * h * np.eye(2)[j]) for k in (0.0, 1.0, 2.0))
        assert_allclose(found[j], (4.0 * near - 3.0 * here - far) / (2.0 * h), rtol=rtol, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_the_slope_by_the_covariance_gives_the_gradient_of_the_evidence(name):
    engine, likelihood = CASES[name]
    kernel = (gs.SquaredExponential(np.array([0.9, 1.7, 2.0, 4.0]), 1.3) + gs.Constant(0.5)).for_features(P)
    expected = engine(X).evidence(kernel, likelihood).gradient[: kernel.log_params.size]
    found = kernel.between(X, X).log_gradient(engine(X).slope(kernel, likelihood).G)
    assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_evidence_without_its_gradient_is_the_same(name):
    engine, likelihood = CASES[name]
    kernel = (gs.SquaredExponential(np.array([0.9, 1.7, 2.0, 4.0]), 1.3) + gs.Constant(0.5)).for_features(P)
    expected = engine(X).evidence(kernel, likelihood).value
    assert engine(X).log_evidence(kernel, likelihood) == pytest.approx(expected, rel=1e-12)


def test_features_are_orthonormal_polynomials_of_normal_scores():
    features = hermite_features(rng.exponential(size=(4000, 1)))
    assert_allclose(features[:, :, 0] @ features[:, :, 0].T / 4000, np.eye(3), atol=0.05)
    assert_allclose(normal_scores(X), normal_scores(np.exp(X)))  # whatever the scale
    two_values = hermite_features(np.tile([[0.0], [1.0]], (10, 1)))
    assert np.all(np.isfinite(two_values))


def test_scores_match_a_brute_force_sum():
    G = rng.normal(size=(N, N))
    G, K0 = G + G.T, np.exp(-0.5 * (X[:, :1] - X[:, 0]) ** 2)
    features = hermite_features(X)
    W = G * K0
    np.fill_diagonal(W, 0.0)
    for j in range(P):
        slope = sum(c * phi[:, j] @ W @ phi[:, j] for c, phi in zip(DEGREE_WEIGHTS, features, strict=True))
        spread = np.sqrt(2.0 * np.sum(W**2) * sum(c**2 for c in DEGREE_WEIGHTS))
        assert_allclose(entering_scores(G, K0, features)[j], slope / spread)


def test_promising_pairs_are_those_of_the_largest_product():
    z = rng.normal(size=(200, 6))
    weights = z[:, 1] * z[:, 4] + 0.1 * rng.normal(size=200)
    assert promising_pairs(weights, z, (), 1) == [(1, 4)]
    assert (1, 4) not in promising_pairs(weights, z, (1, 4), 3)
    assert promising_pairs(np.column_stack([weights, weights]), z, (), 1) == [(1, 4)]


@pytest.mark.parametrize("values", [rng.normal(size=(9, 2)), rng.integers(0, 4, size=(50, 3)), np.ones((5, 1))])
def test_ranks_are_those_of_scipy(values):
    assert_array_equal(average_ranks(values), rankdata(values, axis=0))
