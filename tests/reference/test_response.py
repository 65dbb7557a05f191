"""A latent posterior in the user's units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.affine import Affine
from gpsift.reference.posterior import exact_posterior
from gpsift.reference.response import GPResponse

P = 3
CENTER, SCALE = np.array([1.0, -2.0, 0.5]), np.array([0.5, 3.0, 10.0])
Y_CENTER, Y_SCALE = 7.0, 2.5
rng = np.random.default_rng(0)
Z, y = rng.normal(size=(20, P)), rng.normal(size=20)
KERNEL = (gs.SquaredExponential(np.array([1.0, 2.0, 0.7])) + gs.Constant()).for_features(P)
POSTERIOR, _ = exact_posterior(KERNEL, Z, y, np.full(20, 0.1))


def response(latent):
    return GPResponse(latent, lambda mean, var: Gaussian(mean, var + 0.3), Affine(CENTER, SCALE, Y_CENTER, Y_SCALE))


def at(X):
    """At inputs in the user's units."""
    return response(POSTERIOR.at((X - CENTER) / SCALE))


X = CENTER + SCALE * rng.normal(size=(6, P))


def test_predictions_are_in_the_users_units():
    own = POSTERIOR.at((X - CENTER) / SCALE)
    latent, observed = (at(X).distribution(latent=latent) for latent in (True, False))
    assert_allclose(latent.mean, Y_CENTER + Y_SCALE * own.mean)
    assert_allclose(latent.var, Y_SCALE**2 * own.var)
    assert_allclose(observed.var - latent.var, 0.3)


def test_derivatives_match_differences_in_the_users_units():
    by_mean, by_var = at(X).gradients()
    second_mean, second_var = at(X).hessians()
    for j in range(P):
        h = 1e-4 * SCALE[j] * np.eye(P)[j]
        up, down = at(X + h), at(X - h)
        step = 2.0 * h[j]
        assert_allclose(by_mean[:, j], (up.latent_mean - down.latent_mean) / step, rtol=1e-5, atol=1e-6)
        assert_allclose(by_var[:, j], (up.latent_var - down.latent_var) / step, rtol=1e-5, atol=1e-6)
        for second, k in ((second_mean, 0), (second_var, 1)):
            assert_allclose(second[:, :, j], (up.gradients()[k] - down.gradients()[k]) / step, rtol=1e-5, atol=1e-6)


def test_steps_and_sections_match_predictions():
    for j in range(P):
        delta = 0.3 * SCALE[j]
        moved = at(X + delta * np.eye(P)[j])
        by_mean, by_var = at(X).step(j, delta)
        assert_allclose(by_mean, moved.latent_mean - at(X).latent_mean, atol=1e-12)
        assert_allclose(by_var, moved.latent_var - at(X).latent_var, atol=1e-11)
        section = at(X).section(j, X[:, j], np.array([0.0, delta]))
        assert_allclose(section[:, 1] - section[:, 0], by_mean, atol=1e-12)


@pytest.mark.parametrize("rows", [None, np.array([3, 0, 17]), np.array([5, 5, -1])], ids=["all", "some", "repeated"])
def test_covariances_at_the_support_equal_the_general_form(rows):
    points = Z if rows is None else Z[rows]
    found = response(POSTERIOR.at_support(rows)).latent_cov
    assert_allclose(found, response(POSTERIOR.at(points)).latent_cov, rtol=1e-9, atol=1e-10)
    assert_allclose(np.diag(found), response(POSTERIOR.at(points)).latent_var, rtol=1e-9)


def test_covariances_at_the_support_keep_their_digits():
    # Noise of 1e-12 under a signal of 1e5: k - k M k has no digit left, D - D M D has nine.
    kernel = gs.SquaredExponential(np.ones(P), 1e5).for_features(P)
    posterior, _ = exact_posterior(kernel, Z, y, np.full(20, 1e-12))
    found = GPResponse(posterior.at_support(), Gaussian, Affine(np.zeros(P), np.ones(P))).latent_cov
    assert_allclose(np.diag(found), 1e-12, rtol=1e-6)
