"""Normalised one-vs-rest probabilities against quadrature and differences."""

import mpmath
import numpy as np
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import expit

from gpsift.reference.wrappers.outputs import OneVsRestLogit, diagonal_matrices

RNG = np.random.default_rng(5)
MEAN, VAR = 2 * RNG.normal(size=(4, 3)), RNG.gamma(2.0, 1.0, size=(4, 3))
VAR[1], VAR[2, 0] = 60.0, 1e-12  # wide, and all but certain
FAMILY = OneVsRestLogit(MEAN, diagonal_matrices(VAR.T))


def probabilities(mean, var):
    def share(m, v):
        sd = np.sqrt(v)
        return quad(lambda t: expit(m + sd * t) * np.exp(-0.5 * t * t) / np.sqrt(2 * np.pi), -9, 9, epsabs=1e-14)[0]

    shares = np.array(
        [[share(m, v) for m, v in zip(row_m, row_v, strict=True)] for row_m, row_v in zip(mean, var, strict=True)]
    )
    return shares / shares.sum(axis=1, keepdims=True)


def test_probabilities_match_quadrature():
    assert_allclose(FAMILY.probabilities, probabilities(MEAN, VAR), rtol=1e-9)
    assert_allclose(FAMILY.log_density(np.array([0, 1, 2, 0])), np.log(FAMILY.probabilities[range(4), [0, 1, 2, 0]]))


def test_the_metric_matches_differences_of_probabilities():
    h = 1e-4
    for c in range(3):
        for k in range(2):
            move = np.zeros((4, 3))
            move[:, c] = h * (VAR[:, c] if k else 1.0)
            up, down = (probabilities(MEAN + s * (1 - k) * move, VAR + s * k * move) for s in (1, -1))
            slope = (up - down) / (2 * h)
            gradients = [np.zeros((4, 3, 1)), np.zeros((4, 3, 3, 1))]
            if k:
                gradients[1][:, c, c, 0] = VAR[:, c]
            else:
                gradients[0][:, c, 0] = 1.0
            found = FAMILY.metric_terms(*gradients)["prediction"][:, 0]
            assert_allclose(found, np.sum(slope**2 / FAMILY.probabilities, axis=1), rtol=2e-5, atol=1e-15)


def test_kl_matches_the_definition():
    dm, dv = 0.3 * RNG.normal(size=(4, 3)), 0.2 * VAR
    moved = probabilities(MEAN + dm, VAR + dv)
    p = probabilities(MEAN, VAR)
    found = FAMILY.kl_terms(dm, diagonal_matrices(dv.T))["prediction"]
    assert_allclose(found, np.sum(p * np.log(p / moved), axis=1), rtol=1e-7)


def test_kl_of_a_tiny_step_keeps_its_digits():
    dm, dv = RNG.normal(size=(4, 3)), RNG.normal(size=(4, 3)) * VAR
    metric = FAMILY.metric_terms(dm[:, :, None], diagonal_matrices(dv.T[:, :, None]))["prediction"][:, 0]
    step = 1e-7
    kl = FAMILY.kl_terms(step * dm, diagonal_matrices(step * dv.T))["prediction"]
    assert_allclose(2 * kl / step**2, metric, rtol=1e-5)


def test_one_share_in_thirty_digits():
    with mpmath.workdps(30):
        m, v = mpmath.mpf("1.3"), mpmath.mpf("2.5")
        density = lambda f: mpmath.npdf(f, m, mpmath.sqrt(v)) / (1 + mpmath.exp(-f))  # noqa: E731
        exact = mpmath.quad(density, mpmath.linspace(m - 14, m + 14, 15))
    family = OneVsRestLogit(np.array([[1.3, 0.0]]), diagonal_matrices(np.array([[2.5], [1.0]])))
    assert_allclose(family.shares[0, 0], float(exact), rtol=1e-13)
