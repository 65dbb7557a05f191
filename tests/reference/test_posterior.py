"""The posterior triple: general path, training-point identities and every array library against dense formulas."""

import numpy as np
import pytest
from cases import KERNELS, N_FEATURES, each
from numpy.testing import assert_allclose

from gpsift._utils.arrays import to_numpy
from gpsift._utils.linalg import cholesky
from gpsift.kernels import Matern32, SquaredExponential
from gpsift.reference.posterior import Posterior, TriangularFactor, exact_posterior

NOISE = np.linspace(0.05, 0.3, 14)  # one for each point


@pytest.fixture
def data(rng):
    X = rng.normal(size=(14, N_FEATURES))
    return X, np.sin(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=14), rng.normal(size=(9, N_FEATURES))


def dense(kernel, X, y, X_new):
    """Mean and variance by the textbook formulas with an explicit inverse."""
    A_inverse = np.linalg.inv(kernel.between(X, X.copy()).K + np.diag(NOISE))
    k = kernel.between(X_new, X).K
    return k @ A_inverse @ y, kernel.diag(X_new) - np.einsum("ij,jk,ik->i", k, A_inverse, k)


@each(KERNELS)
def test_mean_and_var_match_dense_formulas(kernel, data):
    X, y, X_new = data
    posterior, jitter = exact_posterior(kernel, X, y, NOISE)
    assert jitter == 0
    for latent, points in ((posterior.at(X_new), X_new), (posterior.at_support(), X)):
        mean, var = dense(kernel, X, y, points)
        assert_allclose(latent.mean, mean, rtol=1e-8, atol=1e-9)
        assert_allclose(latent.var, var, rtol=1e-7, atol=1e-9)
    assert_allclose(np.diag(posterior.covariance(X_new)), posterior.at(X_new).var, rtol=1e-8, atol=1e-10)


@each(KERNELS)
def test_gradients_match_central_differences(kernel, data):
    X, y, X_new = data
    posterior, _ = exact_posterior(kernel, X, y, NOISE)
    latent, step = posterior.at(X_new), 1e-5
    for j, e in enumerate(step * np.eye(N_FEATURES)):
        up, down = posterior.at(X_new + e), posterior.at(X_new - e)
        assert_allclose(latent.mean_gradient[:, j], (up.mean - down.mean) / (2 * step), rtol=1e-5, atol=1e-7)
        assert_allclose(latent.var_gradient[:, j], (up.var - down.var) / (2 * step), rtol=1e-5, atol=1e-7)


@each(KERNELS)
def test_hessians_match_central_differences_of_gradients(kernel, data, monkeypatch):
    X, y, X_new = data
    monkeypatch.setattr("gpsift.reference.posterior.HESSIAN_BLOCK", 4 * 14 * N_FEATURES)  # several blocks of rows
    posterior, _ = exact_posterior(kernel, X, y, NOISE)
    latent, step = posterior.at(X_new), 1e-5
    for j, e in enumerate(step * np.eye(N_FEATURES)):
        up, down = posterior.at(X_new + e), posterior.at(X_new - e)
        assert_allclose(
            latent.mean_hessian[:, j], (up.mean_gradient - down.mean_gradient) / (2 * step), rtol=1e-4, atol=1e-5
        )
        assert_allclose(
            latent.var_hessian[:, j], (up.var_gradient - down.var_gradient) / (2 * step), rtol=1e-4, atol=1e-5
        )


@each(KERNELS)
@pytest.mark.parametrize("rows", [None, np.array([3, 0, 11])])
def test_identities_at_the_support_match_the_general_path(kernel, rows, data, rng):
    X, y, _ = data
    posterior, _ = exact_posterior(kernel, X, y, NOISE)
    general, identities = posterior.at(X.copy() if rows is None else X[rows]), posterior.at_support(rows)
    for quantity in ("mean", "var", "mean_gradient", "var_gradient", "mean_hessian", "var_hessian"):
        assert_allclose(
            getattr(identities, quantity), getattr(general, quantity), rtol=1e-7, atol=1e-8, err_msg=quantity
        )
    base, offset = rng.normal(size=general.mean.size), rng.normal(size=4)
    for j in range(N_FEATURES):
        for ours, theirs in zip(identities.step(j, 0.01), general.step(j, 0.01), strict=True):
            assert_allclose(ours, theirs, rtol=1e-6, atol=1e-11)
        assert_allclose(identities.section(j, base, offset), general.section(j, base, offset), rtol=1e-9, atol=1e-9)


def test_jitter_counts_as_noise_in_the_identities(rng):
    X = np.repeat(rng.normal(size=(10, 2)), 2, axis=0)
    posterior, jitter = exact_posterior(SquaredExponential(np.ones(2), 100.0), X, X[:, 0], np.full(20, 1e-15))
    assert jitter > 1e-10
    assert_allclose(posterior.at_support().var, posterior.at(X.copy()).var, rtol=1e-2)


@each(KERNELS)
def test_large_steps_match_the_difference_of_two_predictions(kernel, data):
    X, y, X_new = data
    posterior, _ = exact_posterior(kernel, X, y, NOISE)
    latent = posterior.at(X_new)
    for j, e in enumerate(np.eye(N_FEATURES)):
        mean_change, var_change = latent.step(j, 0.4)
        moved = posterior.at(X_new + 0.4 * e)
        assert_allclose(mean_change, moved.mean - latent.mean, rtol=1e-7, atol=1e-9)
        assert_allclose(var_change, moved.var - latent.var, rtol=1e-6, atol=1e-8)


def test_small_steps_keep_their_digits(data):
    """A step of 1e-9 gives the gradient to six digits, where a difference of predictions would have none."""
    X, y, _ = data
    posterior, _ = exact_posterior(SquaredExponential(np.ones(3), 1e4), X, y, NOISE)
    latent = posterior.at_support()
    mean_change, var_change = latent.step(0, 1e-9)
    assert_allclose(mean_change / 1e-9, latent.mean_gradient[:, 0], rtol=1e-5)
    assert_allclose(
        var_change / 1e-9, latent.var_gradient[:, 0], rtol=1e-4, atol=1e-4 * np.abs(latent.var_gradient).max()
    )


def test_signed_and_scaled_factors_add_up(data):
    """M = L1^-T L1^-1 - S L2^-T L2^-1 S, as sparse approximations and Laplace's method have it."""
    X, y, X_new = data
    kernel = Matern32(np.ones(3))
    K = kernel.between(X, X).K
    scale = np.linspace(0.1, 0.5, 14)
    L1, L2 = cholesky(K + 0.1 * np.eye(14)), cholesky(K + 2.0 * np.eye(14))
    M = np.linalg.inv(L1 @ L1.T) - np.diag(scale) @ np.linalg.inv(L2 @ L2.T) @ np.diag(scale)
    posterior = Posterior(kernel, X, y, (TriangularFactor(L1), TriangularFactor(L2, scale, -1.0)))
    k = kernel.between(X_new, X).K
    latent = posterior.at(X_new)
    assert_allclose(latent.var, kernel.diag(X_new) - np.einsum("ij,jk,ik->i", k, M, k), rtol=1e-9)
    assert_allclose(latent._solved, k @ M, rtol=1e-8, atol=1e-9)
    step = 1e-5
    up, down = posterior.at(X_new + step * np.eye(3)[1]), posterior.at(X_new - step * np.eye(3)[1])
    assert_allclose(latent.var_gradient[:, 1], (up.var - down.var) / (2 * step), rtol=1e-5, atol=1e-8)
    assert_allclose(latent.var_hessian[:, 1], (up.var_gradient - down.var_gradient) / (2 * step), rtol=1e-4, atol=1e-5)
    assert_allclose(posterior.at_support().var, posterior.at(X).var)  # no identities without sites


@pytest.mark.parametrize("name", ["squared exponential", "matern 3/2", "sum"])
def test_every_array_library_gives_the_same_posterior(name, data, rng, to_library):
    X, y, X_new = data
    kernel = KERNELS[name].for_features(N_FEATURES)
    ours, _ = exact_posterior(kernel, X, y, NOISE)
    theirs, _ = exact_posterior(kernel, to_library(X), to_library(y), to_library(NOISE))
    rows = np.array([2, 5])
    base, offset = rng.normal(size=9), rng.normal(size=3)
    for mine, other in (
        (ours.at(X_new), theirs.at(to_library(X_new))),
        (ours.at_support(), theirs.at_support()),
        (ours.at_support(rows), theirs.at_support(to_library(rows))),
    ):
        for quantity in ("mean", "var", "mean_gradient", "var_gradient", "mean_hessian", "var_hessian"):
            assert_allclose(to_numpy(getattr(other, quantity)), getattr(mine, quantity), rtol=1e-7, atol=1e-8)
        for a, b in zip(mine.step(1, 0.01), other.step(1, 0.01), strict=True):
            assert_allclose(to_numpy(b), a, rtol=1e-6, atol=1e-10)
    section = theirs.at(to_library(X_new)).section(0, to_library(base), to_library(offset))
    assert_allclose(to_numpy(section), ours.at(X_new).section(0, base, offset), rtol=1e-8, atol=1e-9)
