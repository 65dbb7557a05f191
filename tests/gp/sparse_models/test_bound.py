"""The sparse objective, its gradient and its posterior against exact inference, dense algebra, differences and GPy."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from cases import KERNELS, each
from numpy.testing import assert_allclose
from optional import need
from scipy.stats import multivariate_normal

from gpsift._utils.arrays import to_numpy
from gpsift._utils.rows import CHUNK_BYTES, LocalRows, Rows
from gpsift.gp.inference.exact import exact_evidence
from gpsift.gp.sparse.bound import Passes, bound_model, loo_moments
from gpsift.gp.sparse.bound import bound_evidence as evidence_of
from gpsift.gp.sparse.inducing import JITTER, inducing_rows
from gpsift.kernels import Constant, Linear, SquaredExponential
from gpsift.reference.posterior import exact_posterior

RNG = np.random.default_rng(41)
N, M, P = 60, 12, 3
X = RNG.normal(size=(N, P))
Y = np.sin(2.0 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * RNG.normal(size=N)
Z = X[:M] + 0.1
NOISE = 0.05
EACH_NOISE = RNG.uniform(0.02, 0.3, N)
KERNEL = SquaredExponential(np.array([0.9, 1.5, 3.0]), 1.4) + Constant(0.5)
SMALL_CHUNK = 8 * M * 7  # seven rows

each_noise = pytest.mark.parametrize("noise_var", [NOISE, EACH_NOISE], ids=["one noise", "known noise"])


def posed(kernel, points, X, y, noise_var, chunk_bytes=CHUNK_BYTES):
    """A model and the rows; `noise_var` is one number, or one for each row."""
    shared = noise_var if isinstance(noise_var, float) else None
    rows = Rows(X, y, None if shared else noise_var)
    return bound_model(kernel, points, shared), LocalRows(rows, points.shape[0], chunk_bytes)


def sparse_evidence(*args, **options):
    return evidence_of(*posed(*args, **options))


def passes(kernel=KERNEL, points=Z, noise_var=NOISE, rows=slice(None), **options):
    each = noise_var if isinstance(noise_var, float) else noise_var[rows]
    return Passes(*posed(kernel, points, X[rows], Y[rows], each, **options))


def cavities(found):
    """Latent mean and variance at each row given all others."""
    return found.source.map_concat(partial(loo_moments, found.model, found.q))


def dense_parts(kernel, points):
    """Q and r from dense inverses, with the jitter that the sparse form adds."""
    K_zz = kernel.between(points, points.copy()).K + JITTER * kernel.diag(points).mean() * np.eye(len(points))
    K_zx = kernel.between(points, X).K
    Q = K_zx.T @ np.linalg.solve(K_zz, K_zx)
    r = kernel.diag(X) - np.diag(Q)
    return Q, r


@each_noise
def test_objective_matches_dense_definition(noise_var):
    Q, r = dense_parts(KERNEL, Z)
    noise = np.broadcast_to(noise_var, N)
    expected = multivariate_normal(np.zeros(N), Q + np.diag(noise)).logpdf(Y) - 0.5 * np.sum(r / noise)
    assert_allclose(sparse_evidence(KERNEL, Z, X, Y, noise_var).value, expected, rtol=1e-9)


@each(KERNELS)
def test_gradient_matches_central_differences(kernel):
    theta = np.append(kernel.log_params, np.log(NOISE))

    def value(t):
        return sparse_evidence(kernel.with_log_params(t[:-1]), Z, X, Y, float(np.exp(t[-1]))).value

    step = 1e-5
    expected = np.array([(value(theta + e) - value(theta - e)) / (2 * step) for e in step * np.eye(theta.size)])
    found = sparse_evidence(kernel, Z, X, Y, NOISE).gradient
    assert_allclose(found, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


def test_gradient_with_known_noise_matches_central_differences():
    def value(t):
        return sparse_evidence(KERNEL.with_log_params(t), Z, X, Y, EACH_NOISE).value

    theta, step = KERNEL.log_params, 1e-5
    expected = np.array([(value(theta + e) - value(theta - e)) / (2 * step) for e in step * np.eye(theta.size)])
    found = sparse_evidence(KERNEL, Z, X, Y, EACH_NOISE).gradient[:-1]
    assert_allclose(found, expected, rtol=1e-5, atol=1e-7 * np.abs(expected).max())


@pytest.mark.parametrize("signal_var", [1.0, 10.0])
@pytest.mark.parametrize("noise_var", [0.01, 0.3])
def test_inducing_points_at_all_rows_are_exact_inference(noise_var, signal_var):
    kernel = SquaredExponential(np.array([0.9, 1.5, 3.0]), signal_var) + Linear(0.3) + Constant(0.5)
    exact = exact_evidence(kernel, X, Y, noise_var)
    found = sparse_evidence(kernel, X, X, Y, noise_var)
    assert_allclose(found.value, exact.value, rtol=1e-6)
    assert_allclose(found.gradient, exact.gradient, rtol=1e-5, atol=1e-5)

    posterior, _ = exact_posterior(kernel, X, Y, np.full(N, noise_var))
    sparse = passes(kernel, X, noise_var).posterior()
    for new in (X, X[:20] + 0.3):
        one, other = sparse.at(new), posterior.at(new)
        for name in ("mean", "var", "mean_gradient", "var_gradient"):
            expected = getattr(other, name)
            assert_allclose(getattr(one, name), expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_posterior_matches_dense_conditioning():
    """At new points: the prior of the function given the inducing values, averaged over their posterior."""
    K_zz = KERNEL.between(Z, Z.copy()).K + JITTER * KERNEL.diag(Z).mean() * np.eye(M)
    K_zx = KERNEL.between(Z, X).K
    new = RNG.normal(size=(15, P))
    to_new = np.linalg.solve(K_zz, KERNEL.between(Z, new).K)
    by_rows = np.linalg.solve(K_zz, (K_zx / NOISE) @ np.linalg.solve(K_zz, K_zx).T)
    covariance = np.linalg.inv(np.linalg.inv(K_zz) + by_rows)
    mean = covariance @ np.linalg.solve(K_zz, K_zx @ (Y / NOISE))
    latent = passes().posterior().at(new)
    assert_allclose(latent.mean, to_new.T @ mean, rtol=1e-7, atol=1e-8)
    prior = KERNEL.diag(new) - np.sum(KERNEL.between(Z, new).K * to_new, axis=0)
    assert_allclose(latent.var, prior + np.sum(to_new * (covariance @ to_new), axis=0), rtol=1e-6)


def test_objective_and_predictions_match_gpy():
    GPy = need("GPy")
    inference = GPy.inference.latent_function_inference.VarDTC()
    inference.const_jitter = 1e-10
    kernel = GPy.kern.RBF(P, variance=1.4, lengthscale=[0.9, 1.5, 3.0], ARD=True) + GPy.kern.Bias(P, 0.5)
    model = GPy.core.SparseGP(
        X, Y[:, None], Z, kernel, GPy.likelihoods.Gaussian(variance=NOISE), inference_method=inference
    )
    found = passes()
    assert_allclose(found.value, model.log_likelihood(), rtol=1e-6)
    new = RNG.normal(size=(20, P))
    mean, var = model.predict_noiseless(new)
    latent = found.posterior().at(new)
    assert_allclose(latent.mean, mean[:, 0], rtol=1e-6, atol=1e-6)
    assert_allclose(latent.var, var[:, 0], rtol=1e-6, atol=1e-6)


@each_noise
def test_chunks_of_rows_change_nothing(noise_var):
    whole = sparse_evidence(KERNEL, Z, X, Y, noise_var)
    parts = sparse_evidence(KERNEL, Z, X, Y, noise_var, chunk_bytes=SMALL_CHUNK)
    assert_allclose(parts.value, whole.value, rtol=1e-10)
    assert_allclose(parts.gradient, whole.gradient, rtol=1e-10, atol=1e-10)
    one, other = passes(noise_var=noise_var), passes(noise_var=noise_var, chunk_bytes=1)
    for a, b in zip(cavities(one), cavities(other), strict=True):
        assert_allclose(a, b, rtol=1e-10, atol=1e-12)
    assert_allclose(one.posterior().weights, other.posterior().weights, rtol=1e-8, atol=1e-10)


def test_bound_grows_with_nested_points_and_stays_below_the_evidence():
    order = inducing_rows(KERNEL, X, N)
    bounds = [sparse_evidence(KERNEL, X[order[:m]], X, Y, NOISE).value for m in (3, 6, 12, 24, 48, N)]
    assert np.all(np.diff(bounds) > 0)
    assert bounds[-1] < exact_evidence(KERNEL, X, Y, NOISE).value + 1e-9


@each_noise
def test_cavities_match_inference_without_the_row(noise_var):
    mean, var = cavities(passes(noise_var=noise_var))
    for i in (0, 17, 42):
        others = np.arange(N) != i
        without = passes(noise_var=noise_var, rows=others).posterior()
        latent = without.at(X[i : i + 1])
        assert_allclose(mean[i], latent.mean[0], rtol=1e-7, atol=1e-8)
        assert_allclose(var[i], latent.var[0], rtol=1e-7)


def test_large_signals_and_little_noise_keep_their_digits():
    """Signal variance 1e4, noise 1e-4, smooth: the dense algebra has a condition number of 1e10 here."""
    kernel = SquaredExponential(np.full(P, 2.5), 1e4)
    points = X[inducing_rows(kernel, X, 30)]
    theta = np.append(kernel.log_params, np.log(1e-4))

    def value(t):
        return sparse_evidence(kernel.with_log_params(t[:-1]), points, X, Y, float(np.exp(t[-1]))).value

    step = 1e-4
    expected = np.array([(value(theta + e) - value(theta - e)) / (2 * step) for e in step * np.eye(theta.size)])
    found = sparse_evidence(kernel, points, X, Y, 1e-4)
    assert_allclose(found.gradient, expected, rtol=1e-4, atol=1e-6 * np.abs(expected).max())
    mean, var = cavities(passes(kernel, points, 1e-4))
    assert np.all(np.isfinite(mean))
    assert np.all(var >= 0)


def test_evidence_runs_on_every_array_library(to_library):
    here = sparse_evidence(KERNEL, Z, X, Y, NOISE, chunk_bytes=SMALL_CHUNK)
    arrays = [to_library(a) for a in (Z, X, Y)]
    there = sparse_evidence(KERNEL, *arrays, NOISE, chunk_bytes=SMALL_CHUNK)
    assert_allclose(there.value, here.value, rtol=1e-12)
    assert_allclose(there.gradient, here.gradient, rtol=1e-9, atol=1e-10)
    latent = Passes(*posed(KERNEL, *arrays, NOISE)).posterior().at(arrays[1])
    assert type(latent.mean) is type(arrays[1])
    assert_allclose(to_numpy(latent.mean), passes().posterior().at(X).mean, rtol=1e-8, atol=1e-10)


def test_memory_does_not_grow_with_the_rows():
    n, m, chunk_bytes = 50_000, 100, 2**21
    rows = np.random.default_rng(0).normal(size=(n, P))
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    sparse_evidence(KERNEL, rows[:m], rows, rows[:, 0], NOISE, chunk_bytes=chunk_bytes)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - before < 14 * chunk_bytes  # 28 MiB; one matrix of all rows has 38
