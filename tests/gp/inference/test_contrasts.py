"""The curvature of a softmax by contrasts against the one by a factor for each class, and against its definition."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from gpsift.gp.inference import softmax as multiclass_module
from gpsift.gp.inference.contrasts import ContrastCurvature
from gpsift.gp.inference.softmax import CoupledCurvature, coupled, multiclass_gradient, multiclass_laplace
from gpsift.kernels import Constant, SquaredExponential

N = 80  # more than the blocks in which triangles are visited


def case(rng, n_classes, spread):
    X = rng.normal(size=(N, 2))
    K = (SquaredExponential(np.array([1.0, 2.0]), 3.0) + Constant(1.0)).between(X, X).K
    return K, softmax(spread * rng.normal(size=(N, n_classes)), axis=1)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("spread", [1.0, 30.0])  # probabilities down to 1e-60
def test_both_forms_are_the_same(rng, n_classes, spread):
    K, pi = case(rng, n_classes, spread)
    one, other = ContrastCurvature(K, pi), coupled(K, pi)
    b = rng.normal(size=pi.shape)
    assert_allclose(one.log_det, other.log_det, rtol=1e-11)
    assert_allclose(one.times_M(b), other.times_M(b), atol=1e-10)
    for found, expected in zip(one.M_sum_and_spread, other.M_sum_and_spread, strict=True):
        assert_allclose(found, expected, atol=1e-10)


def test_spread_gives_the_slope_of_the_determinant(rng):
    """T_cc - pi_c sum T_dd is the derivative of log |I + K W| by the latent value of class c at a point."""
    f, h = rng.normal(size=(N, 3)), 1e-4
    K, _ = case(rng, 3, 1.0)
    _, spread = ContrastCurvature(K, pi := softmax(f, axis=1)).M_sum_and_spread
    slope = spread - pi * spread.sum(axis=1, keepdims=True)
    for point, c in ((0, 0), (5, 1), (79, 2)):
        e = np.zeros_like(f)
        e[point, c] = h
        up, down = (ContrastCurvature(K, softmax(f + k * e, axis=1)).log_det for k in (1, -1))
        assert_allclose(slope[point, c], (up - down) / (2 * h), rtol=1e-5, atol=1e-8)


def test_evidence_does_not_depend_on_the_form(rng, monkeypatch):
    K, pi = case(rng, 3, 1.0)
    Y = np.eye(3)[pi.argmax(axis=1)]
    one = multiclass_laplace(K, Y)
    monkeypatch.setattr(multiclass_module, "MOST_CLASSES", 1)
    other = multiclass_laplace(K, Y)
    assert isinstance(one.bend, ContrastCurvature)
    assert isinstance(other.bend, CoupledCurvature)
    assert_allclose(one.log_evidence, other.log_evidence, rtol=1e-11)
    assert_allclose(multiclass_gradient(one), multiclass_gradient(other), atol=1e-10)


def test_factors_arrive_where_products_do_not(rng, monkeypatch):
    K, pi = case(rng, 3, 1.0)
    Y = np.eye(3)[pi.argmax(axis=1)]
    expected = multiclass_laplace(K, Y)
    monkeypatch.setattr(multiclass_module, "conjugate_gradients", lambda *_: None)
    found = multiclass_laplace(K, Y, start=expected.mode)
    assert found.converged
    assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-11)


def test_start_changes_nothing(rng):
    K, pi = case(rng, 3, 1.0)
    Y = np.eye(3)[pi.argmax(axis=1)]
    cold, warm = multiclass_laplace(K, Y), multiclass_laplace(K, Y, start=multiclass_laplace(1.3 * K, Y).mode)
    assert_allclose(warm.log_evidence, cold.log_evidence, rtol=1e-11)
    assert_allclose(multiclass_gradient(warm), multiclass_gradient(cold), atol=1e-9)
