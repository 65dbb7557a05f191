"""The curvature of a softmax by a factor of low rank against the one of the whole covariance matrix."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from gpsift.gp.inference import softmax as softmax_module
from gpsift.gp.inference.softmax import (
    FullCurvature,
    LowRankCurvature,
    SoftmaxInference,
    low_rank_factor,
    softmax_gradient,
    softmax_laplace,
)
from gpsift.kernels import Constant, SquaredExponential
from gpsift.likelihoods import Softmax

N = 80
SMOOTH = SquaredExponential(np.array([2.0, 3.0]), 3.0) + Constant(1.0)


def case(rng, n_classes, spread=1.0, kernel=SMOOTH):
    X = rng.normal(size=(N, 2))
    return X, kernel.between(X, X).K, softmax(spread * rng.normal(size=(N, n_classes)), axis=1)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("spread", [1.0, 30.0])  # probabilities down to 1e-60
def test_curvature_is_that_of_the_whole_matrix(rng, n_classes, spread):
    _, K, pi = case(rng, n_classes, spread)
    F = low_rank_factor(K, 2, 1e-12)
    assert F.shape[1] < N
    one, other = LowRankCurvature(F, pi), FullCurvature.at(F @ F.T, pi)
    b = rng.normal(size=pi.shape)
    assert_allclose(one.log_det, other.log_det, rtol=1e-10)
    assert_allclose(one.times_M(b), other.times_M(b), atol=1e-9)
    for found, expected in zip(one.M_sum_and_spread, other.M_sum_and_spread, strict=True):
        assert_allclose(found, expected, atol=1e-9)


def test_spread_gives_the_slope_of_the_determinant(rng):
    """T_cc - pi_c sum T_dd is the derivative of log |I + K W| by the latent value of class c at a point."""
    f, h = rng.normal(size=(N, 3)), 1e-4
    F = low_rank_factor(case(rng, 3)[1], 3, 1e-6)
    _, spread = LowRankCurvature(F, pi := softmax(f, axis=1)).M_sum_and_spread
    slope = spread - pi * spread.sum(axis=1, keepdims=True)
    for point, c in ((0, 0), (5, 1), (79, 2)):
        e = np.zeros_like(f)
        e[point, c] = h
        up, down = (LowRankCurvature(F, softmax(f + k * e, axis=1)).log_det for k in (1, -1))
        assert_allclose(slope[point, c], (up - down) / (2 * h), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("residual", [1e-2, 1e-4, 1e-6])
def test_evidence_errs_by_a_quarter_of_what_is_left_out_at_most(rng, residual):
    _, K, pi = case(rng, 3)
    Y = np.eye(3)[pi.argmax(axis=1)]
    whole, low = softmax_laplace(K, Y), softmax_laplace(K, Y, residual=residual)
    assert isinstance(low.curvature, LowRankCurvature)
    assert_allclose(low.mode, whole.mode, atol=10 * residual)
    assert (
        0.0 < low.log_evidence - whole.log_evidence < 0.25 * residual * N
    )  # what is left out is a smaller determinant
    assert_allclose(softmax_gradient(low), softmax_gradient(whole), atol=residual)


@pytest.mark.parametrize("few_columns", [0, 10_000])  # steps by products, and by factors
def test_both_kinds_of_steps_lead_to_one_mode(rng, monkeypatch, few_columns):
    _, K, pi = case(rng, 3)
    Y = np.eye(3)[pi.argmax(axis=1)]
    expected = softmax_laplace(K, Y)
    monkeypatch.setattr(softmax_module, "FEW_COLUMNS", few_columns)
    for start in (None, softmax_laplace(1.3 * K, Y).mode):
        found = softmax_laplace(K, Y, start=start, residual=1e-9)
        assert found.converged
        assert_allclose(found.mode, expected.mode, atol=1e-7)


def test_a_matrix_of_high_rank_keeps_the_other_form(rng):
    _, K, pi = case(rng, 3, kernel=SquaredExponential(np.array([0.1, 0.1]), 3.0) + Constant(1.0))
    assert low_rank_factor(K, 3, 1e-6) is None
    assert not isinstance(softmax_laplace(K, np.eye(3)[pi.argmax(axis=1)], residual=1e-6).curvature, LowRankCurvature)


def test_posterior_leaves_nothing_out(rng):
    """Rough searches may; what the model is made of may not."""
    X, K, pi = case(rng, 3)
    y = pi.argmax(axis=1).astype(float)
    rough = SoftmaxInference(X, y, Softmax(3)).low_precision()
    whole = softmax_laplace(K, np.eye(3)[pi.argmax(axis=1)]).log_evidence
    assert_allclose(rough.infer(SMOOTH, Softmax(3)).log_evidence, whole, rtol=1e-9)
    assert 1e-9 < rough.evidence(SMOOTH, Softmax(3)).value - whole < 1e-3


def test_gradient_is_that_of_differences(rng):
    kernel, likelihood = SquaredExponential(np.array([5.0, 8.0]), 3.0) + Constant(1.0), Softmax(3)
    X, K, pi = case(rng, 3, kernel=kernel)
    assert low_rank_factor(K, 3, 1e-9) is not None
    engine = SoftmaxInference(X, pi.argmax(axis=1).astype(float), likelihood)
    found, at, h = engine.evidence(kernel, likelihood).gradient, kernel.log_params, 1e-4
    for i, step in enumerate(h * np.eye(at.size)):
        up, down = (engine.infer(kernel.with_log_params(at + k * step), likelihood).log_evidence for k in (1, -1))
        assert_allclose(found[i], (up - down) / (2 * h), rtol=1e-5, atol=1e-7)
