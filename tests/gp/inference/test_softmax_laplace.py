"""Laplace's method for several classes against dense algebra, the logit, quadrature, many digits and differences."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from gpsift._utils.threads import blas_threads_for
from gpsift.gp.inference import softmax as softmax_module
from gpsift.gp.inference.laplace import LaplaceInference, laplace
from gpsift.gp.inference.softmax import (
    FullCurvature,
    SoftmaxInference,
    cavities,
    softmax_gradient,
    softmax_laplace,
    times_W,
)
from gpsift.kernels import Constant, Linear, Matern52, SquaredExponential
from gpsift.likelihoods import Logit, Softmax

N, C = 24, 3
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, 2))
SCORES = np.column_stack([2 * np.sin(2 * X[:, 0]), 2 * X[:, 1], -X[:, 0] - X[:, 1]])
LABELS = np.argmax(SCORES + RNG.gumbel(size=(N, C)), axis=1).astype(float)
Y = Softmax(C).indicators(LABELS)
KERNEL = SquaredExponential(np.array([0.9, 2.0]), 1.4) + Constant(0.5)
KERNELS = {
    "squared exponential and constant": KERNEL,
    "matern 5/2": Matern52(np.array([0.9, 2.0]), 3.0),
    "shared length-scale and slopes": SquaredExponential(1.2, 2.0, shared=True) + Linear(0.7) + Constant(2.0),
    "signal variance of 300": SquaredExponential(np.array([3.0, 5.0]), 300.0) + Constant(5.0),
}
each_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@pytest.fixture(autouse=True)
def _one_thread():
    with blas_threads_for(N):
        yield


def covariance(kernel=KERNEL):
    return kernel.between(X, X).K


def dense_K_and_W(K, pi):
    """Block matrices, ordered by class and then by point."""
    n, n_classes = pi.shape
    W = np.zeros((n_classes, n, n_classes, n))
    for c in range(n_classes):
        for d in range(n_classes):
            W[c, range(n), d, range(n)] = pi[:, c] * ((c == d) - pi[:, d])
    return np.kron(np.eye(n_classes), K), W.reshape(n * n_classes, n * n_classes)


def dense_M(K, pi):
    """W (I + K W)^-1 as blocks, (C, n, C, n)."""
    KK, W = dense_K_and_W(K, pi)
    return (W @ np.linalg.inv(np.eye(len(KK)) + KK @ W)).reshape(*(2 * pi.shape[::-1]))


@each_kernel
def test_curvature_matches_dense_blocks(kernel, rng):
    K, pi = covariance(kernel), softmax(2 * rng.normal(size=(N, C)), axis=1)
    curvature = FullCurvature(K, np.linalg.cholesky(np.eye(N) + K), pi)
    KK, W = dense_K_and_W(K, pi)
    M = dense_M(K, pi)
    b = rng.normal(size=(N, C))
    scale = np.abs(M).max()
    assert_allclose(curvature.log_det, np.linalg.slogdet(np.eye(N * C) + KK @ W)[1], rtol=1e-10)
    assert_allclose(times_W(pi, b), (W @ b.T.ravel()).reshape(C, N).T, atol=1e-13)
    assert_allclose(curvature.times_M(b), (M.reshape(N * C, N * C) @ b.T.ravel()).reshape(C, N).T, atol=1e-10 * scale)
    assert_allclose(curvature.M_sum_and_spread[0], np.einsum("cicj->ij", M), atol=1e-10 * scale)
    S = (KK - KK @ M.reshape(N * C, N * C) @ KK).reshape(C, N, C, N)
    assert_allclose(curvature.cov, np.einsum("cidi->icd", S), atol=1e-11 * K.max() ** 2 + 1e-10)


@each_kernel
def test_evidence_matches_its_definition(kernel):
    """log p(y | f) - f^T K^-1 f / 2 - log |I + K W| / 2 with plain linear algebra."""
    K = covariance(kernel)
    result = softmax_laplace(K, Y)
    f = result.mode
    KK, W = dense_K_and_W(K, softmax(f, axis=1))
    sign, log_det = np.linalg.slogdet(np.eye(N * C) + KK @ W)
    assert sign > 0
    expected = np.sum(Y * log_softmax(f, axis=1)) - 0.5 * np.sum(f * result.weights) - 0.5 * log_det
    assert_allclose(result.log_evidence, expected, rtol=1e-9)
    assert_allclose(K @ result.weights, f, atol=1e-8)


@each_kernel
def test_mode_is_where_the_gradient_vanishes(kernel):
    result = softmax_laplace(covariance(kernel), Y)
    assert result.converged
    assert_allclose(result.weights, Y - softmax(result.mode, axis=1), atol=1e-7)
    assert_allclose(result.weights.sum(axis=1), 0.0, atol=1e-12)


def test_mode_matches_a_general_optimiser():
    K = covariance() + 1e-6 * np.eye(N)
    L = np.linalg.cholesky(K)

    def negative(t):
        t = t.reshape(N, C)
        f = L @ t
        slope = t - L.T @ (Y - softmax(f, axis=1))
        return -np.sum(Y * log_softmax(f, axis=1)) + 0.5 * np.sum(t**2), slope.ravel()

    found = minimize(negative, np.zeros(N * C), jac=True, method="BFGS", options={"gtol": 1e-7})
    assert_allclose(softmax_laplace(K, Y).mode, L @ found.x.reshape(N, C), atol=1e-5)


@each_kernel
def test_two_classes_are_the_logit_with_twice_the_kernel(kernel):
    """The difference of two latent functions with covariance K has covariance 2 K."""
    K, y = covariance(kernel), (LABELS == 1).astype(float)
    found = softmax_laplace(K, Softmax(2).indicators(y))
    peer = laplace(2.0 * K, y, np.ones(N), Logit())
    assert_allclose(found.log_evidence, peer.log_evidence, rtol=1e-9)
    assert_allclose(found.mode[:, 1] - found.mode[:, 0], peer.mode, atol=1e-8)
    doubled = kernel.with_log_params(kernel.log_params + np.log(2.0) * is_variance(kernel))
    expected = LaplaceInference(X, y, np.ones(N)).evidence(doubled, Logit())
    evidence = SoftmaxInference(X, y, Softmax(2)).evidence(kernel, Softmax(2))
    assert_allclose(evidence.gradient, expected.gradient, rtol=1e-6, atol=1e-7)


def is_variance(kernel):
    return np.array([kind.endswith("_var") for kind, _ in kernel.param_labels(("a", "b"))], dtype=float)


def test_two_classes_have_the_cavities_of_the_logit():
    y = (LABELS == 1).astype(float)
    found = SoftmaxInference(X, y, Softmax(2)).infer(KERNEL, Softmax(2))
    doubled = KERNEL.with_log_params(KERNEL.log_params + np.log(2.0) * is_variance(KERNEL))
    peer = LaplaceInference(X, y, np.ones(N)).infer(doubled, Logit())
    V = found.cavity_var
    assert_allclose(found.cavity_mean[:, 1] - found.cavity_mean[:, 0], peer.cavity_mean, atol=1e-8)
    assert_allclose(V[:, 0, 0] + V[:, 1, 1] - 2 * V[:, 0, 1], peer.cavity_var, rtol=1e-8)


@each_kernel
def test_gradient_matches_central_differences(kernel):
    engine, step = SoftmaxInference(X, LABELS, Softmax(C), warm=False), 1e-4
    theta = kernel.log_params

    def value(t):
        return engine.evidence(kernel.with_log_params(t), Softmax(C)).value

    # Fourth order, so that the differences are good to 1e-8 and more.
    expected = [
        (8 * (value(theta + e) - value(theta - e)) - (value(theta + 2 * e) - value(theta - 2 * e))) / (12 * step)
        for e in step * np.eye(theta.size)
    ]
    gradient = engine.evidence(kernel, Softmax(C)).gradient
    assert gradient.shape == theta.shape
    assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_gradient_with_respect_to_any_change_of_the_covariance(rng):
    K = covariance()
    change = rng.normal(size=(N, 4))
    change, h = change @ change.T, 1e-4
    up, down = (softmax_laplace(K + k * h * change, Y).log_evidence for k in (1, -1))
    G = softmax_gradient(softmax_laplace(K, Y))
    assert_allclose(np.sum(G * change), (up - down) / (2 * h), rtol=1e-5)
    assert_allclose(G, G.T, atol=1e-12)


def quadrature_log_evidence(K, Y, n_nodes=24):
    """Two observations of three classes: a product rule over the four differences that matter."""
    t, w = np.polynomial.hermite_e.hermegauss(n_nodes)
    w = w / w.sum()
    contrasts = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    z = np.stack(np.meshgrid(t, t, t, t, indexing="ij")).reshape(2, 2, -1)
    weights = np.prod(np.stack(np.meshgrid(w, w, w, w, indexing="ij")).reshape(4, -1), axis=0)
    f = np.einsum("ij,jkh,kc->ich", np.linalg.cholesky(K), z, contrasts)
    log_p = np.sum(Y[:, :, None] * log_softmax(f, axis=1), axis=(0, 1))
    return np.log(weights @ np.exp(log_p))


@pytest.mark.parametrize("labels", [[0, 0], [0, 2]])
def test_evidence_of_two_observations_is_near_quadrature(labels):
    """And the nearer, the smaller the latent variance."""
    indicators, errors = np.eye(3)[labels], []
    for variance in (0.4, 0.1, 0.01):
        K = variance * np.array([[1.0, 0.6], [0.6, 1.0]])
        found = softmax_laplace(K, indicators).log_evidence
        errors.append(abs(found - quadrature_log_evidence(K, indicators)))
    assert errors[0] < 0.03
    assert errors[1] < 0.2 * errors[0]
    assert errors[2] < 0.1 * errors[1] + 1e-10


@pytest.mark.parametrize("signal_var", [1.0, 1e6, 1e10])
def test_large_variances_keep_their_digits(signal_var):
    """log |I + K W| and M b against fifty digits; the sum of the E_c by itself has none left at 1e10."""
    n, rng = 6, np.random.default_rng(1)
    K = (SquaredExponential(np.array([2.0, 3.0]), signal_var) + Constant(signal_var)).between(X[:n], X[:n]).K
    pi, b = softmax(3 * rng.normal(size=(n, C)), axis=1), rng.normal(size=(n, C))
    curvature = FullCurvature(K, np.linalg.cholesky(np.eye(n) + K), pi)
    with mpmath.workdps(50):
        KK, W = (mpmath.matrix(block.tolist()) for block in dense_K_and_W(K, pi))
        A = mpmath.eye(n * C) + KK * W
        log_det = float(mpmath.log(mpmath.det(A)))
        M_b = W * mpmath.lu_solve(A, mpmath.matrix(b.T.ravel().tolist()))
    assert_allclose(curvature.log_det, log_det, rtol=1e-6)
    expected = np.array([float(v) for v in M_b]).reshape(C, n).T
    assert_allclose(curvature.times_M(b), expected, atol=1e-5 * np.abs(expected).max())


def test_posterior_matches_dense_formulas():
    posterior = SoftmaxInference(X, LABELS, Softmax(C)).infer(KERNEL, Softmax(C)).posterior
    X_new = X[:7] + 0.4
    k, K = KERNEL.between(X_new, X).K, covariance()
    M = dense_M(K, softmax(K @ posterior.weights, axis=1))
    explained = np.einsum("im,cmdl,jl->icjd", k, M, k)
    prior = np.einsum("ij,cd->icjd", KERNEL.between(X_new, X_new).K, np.eye(C))
    latent = posterior.at(X_new)
    assert_allclose(latent.mean, k @ posterior.weights)
    assert_allclose(posterior.covariance(X_new), prior - explained, atol=1e-10)
    assert_allclose(latent.cov, np.einsum("icid->icd", prior - explained), atol=1e-10)
    # What all classes share is as uncertain as before.
    assert_allclose(latent.cov.sum(axis=2), np.tile(KERNEL.diag(X_new)[:, None], C), rtol=1e-9)


@each_kernel
def test_derivatives_of_the_posterior_match_differences(kernel):
    posterior = SoftmaxInference(X, LABELS, Softmax(C)).infer(kernel, Softmax(C)).posterior
    X_new, h = X[:6] + 0.3, 1e-4
    latent = posterior.at(X_new)
    assert latent.mean_gradient.shape == (6, C, 2)
    assert latent.cov_gradient.shape == (6, C, C, 2)
    for j in range(2):
        e = h * np.eye(2)[j]
        up, down = posterior.at(X_new + e), posterior.at(X_new - e)
        scale = np.abs(latent.cov_gradient[..., j]).max()
        assert_allclose(latent.mean_gradient[..., j], (up.mean - down.mean) / (2 * h), rtol=1e-6, atol=1e-6)
        assert_allclose(latent.cov_gradient[..., j], (up.cov - down.cov) / (2 * h), atol=1e-5 * scale + 1e-6)


@each_kernel
def test_steps_and_sections_match_moved_points(kernel):
    posterior = SoftmaxInference(X, LABELS, Softmax(C)).infer(kernel, Softmax(C)).posterior
    X_new = X[:6] + 0.3
    latent = posterior.at(X_new)
    for j, delta in ((0, 0.5), (1, -0.2)):
        moved = posterior.at(X_new + delta * np.eye(2)[j])
        mean_change, cov_change = latent.step(j, delta)
        assert_allclose(mean_change, moved.mean - latent.mean, atol=1e-9)
        assert_allclose(cov_change, moved.cov - latent.cov, atol=1e-8)
    # A step of 1e-9 has the digits of the gradient.
    mean_change, cov_change = latent.step(0, 1e-9)
    assert_allclose(mean_change / 1e-9, latent.mean_gradient[..., 0], rtol=1e-6, atol=1e-6)
    scale = np.abs(latent.cov_gradient[..., 0]).max()
    assert_allclose(cov_change / 1e-9, latent.cov_gradient[..., 0], atol=1e-6 * scale)
    base, offset = np.linspace(-1, 1, 6), np.array([-0.3, 0.0, 0.7])
    section = latent.section(1, base, offset)
    assert section.shape == (6, 3, C)
    for q in range(3):
        moved = X_new.copy()
        moved[:, 1] = base + offset[q]
        assert_allclose(section[:, q], posterior.at(moved).mean, atol=1e-9)


def test_posterior_at_its_own_points_is_that_of_the_points():
    posterior = SoftmaxInference(X, LABELS, Softmax(C)).infer(KERNEL, Softmax(C)).posterior
    everywhere, some = posterior.at(X), np.array([5, 0, 11])
    for latent, rows in ((posterior.at_support(), np.arange(N)), (posterior.at_support(some), some)):
        assert_allclose(latent.mean, everywhere.mean[rows], atol=1e-10)
        assert_allclose(latent.cov, everywhere.cov[rows], atol=1e-10)
        assert_allclose(latent.cov_gradient, everywhere.cov_gradient[rows], atol=1e-9)


def test_cavities_match_the_posterior_without_one_site():
    K = covariance() + 1e-8 * np.eye(N)
    result = softmax_laplace(K, Y)
    mean, cov = cavities(result, Y)
    pi = softmax(result.mode, axis=1)
    KK, W = dense_K_and_W(K, pi)
    natural = (W @ result.mode.T.ravel()).reshape(C, N) + (Y - pi).T
    prior_precision = np.linalg.inv(KK)
    for i in range(0, N, 5):
        keep = np.ones((C, N))
        keep[:, i] = 0.0
        site = W.reshape(C, N, C, N) * keep[:, :, None, None] * keep
        S = np.linalg.inv(prior_precision + site.reshape(N * C, N * C))
        m = (S @ (natural * keep).ravel()).reshape(C, N)
        assert_allclose(mean[i], m[:, i], atol=1e-5)
        assert_allclose(cov[i], S.reshape(C, N, C, N)[:, i, :, i], rtol=1e-5, atol=1e-6)


def test_permuted_classes_permute_everything():
    order = [2, 0, 1]
    found = SoftmaxInference(X, LABELS, Softmax(C))
    turned = SoftmaxInference(X, np.argsort(order)[LABELS.astype(int)].astype(float), Softmax(C))
    first, second = found.evidence(KERNEL, Softmax(C)), turned.evidence(KERNEL, Softmax(C))
    assert_allclose(second.value, first.value, rtol=1e-12)
    assert_allclose(second.gradient, first.gradient, rtol=1e-9)
    a, b = found.infer(KERNEL, Softmax(C)), turned.infer(KERNEL, Softmax(C))
    assert_allclose(b.posterior.weights, a.posterior.weights[:, order], atol=1e-9)
    assert_allclose(b.cavity_mean, a.cavity_mean[:, order], atol=1e-8)
    assert_allclose(b.cavity_var, a.cavity_var[:, order][:, :, order], atol=1e-8)


def test_warm_engine_gives_the_answers_of_a_cold_one():
    warm, cold = SoftmaxInference(X, LABELS, Softmax(C)), SoftmaxInference(X, LABELS, Softmax(C), warm=False)
    for factor in (1.0, 3.0, 0.3, 1.0):
        kernel = KERNEL.with_log_params(KERNEL.log_params + np.log(factor))
        first, second = warm.evidence(kernel, Softmax(C)), cold.evidence(kernel, Softmax(C))
        assert_allclose(first.value, second.value, rtol=1e-9)
        assert_allclose(first.gradient, second.gradient, rtol=1e-6, atol=1e-7)
    assert warm.warm_start.last is not None
    fresh = warm.stateless()
    for engine in (cold, fresh):
        before = engine.evidence(KERNEL, Softmax(C)).value
        engine.evidence(Matern52(np.array([0.2, 0.3]), 9.0), Softmax(C))
        assert engine.warm_start.last is None
        assert engine.evidence(KERNEL, Softmax(C)).value == before


def test_a_class_that_never_occurs_gets_little():
    likelihood = Softmax(4)
    inferred = SoftmaxInference(X, LABELS, likelihood).infer(KERNEL, likelihood)
    assert inferred.converged
    probabilities = likelihood.predictive(
        inferred.posterior.at_support().mean, inferred.posterior.at_support().cov, np.ones(N)
    ).probabilities
    assert np.all(probabilities[:, 3] < 0.2)


@pytest.mark.parametrize("signal_var", [1e-8, 1e4, 1e8])
@pytest.mark.parametrize("lengthscale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("constant_var", [1e-30, 1e6])
@pytest.mark.parametrize("separable", [True, False])
def test_extreme_hyperparameters_have_a_finite_answer(signal_var, lengthscale, constant_var, separable):
    kernel = SquaredExponential(np.full(2, lengthscale), signal_var) + Constant(constant_var)
    labels = np.argmax(SCORES, axis=1).astype(float) if separable else LABELS
    engine = SoftmaxInference(X, labels, Softmax(C))
    evidence, inferred = engine.evidence(kernel, Softmax(C)), engine.infer(kernel, Softmax(C))
    assert inferred.converged
    assert -200.0 < evidence.value < 0.0
    assert np.all(np.isfinite(evidence.gradient))
    assert np.all(np.isfinite(inferred.cavity_mean))
    assert np.all(np.linalg.eigvalsh(inferred.cavity_var) > 0)


def test_status_says_when_newton_did_not_arrive(monkeypatch):
    monkeypatch.setattr(softmax_module, "MAX_ITERATIONS", 1)
    result = softmax_laplace(covariance(), Y)
    assert not result.converged
    assert result.n_iterations == 1
    engine = SoftmaxInference(X, LABELS, Softmax(C))
    assert not engine.infer(KERNEL, Softmax(C)).converged
    # A state that did not settle is no place to start from.
    assert engine.warm_start.last is None


def test_steps_that_lead_down_are_halved():
    """From far away Newton's full step overshoots."""
    K = covariance(SquaredExponential(np.array([1.0, 1.0]), 100.0))
    start = 5.0 * np.random.default_rng(0).normal(size=(N, C))
    found, expected = softmax_laplace(K, Y, start=start), softmax_laplace(K, Y)
    assert found.converged
    assert_allclose(found.mode - found.mode.mean(axis=1, keepdims=True), expected.mode, atol=1e-6)
    assert_array_equal(found.mode.shape, (N, C))


def test_factors_arrive_where_products_do_not(monkeypatch):
    K = covariance()
    expected = softmax_laplace(K, Y)
    monkeypatch.setattr(softmax_module, "conjugate_gradients", lambda *_: None)
    found = softmax_laplace(K, Y, start=expected.mode)
    assert found.converged
    assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-11)
