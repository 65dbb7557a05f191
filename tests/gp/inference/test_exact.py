"""The marginal likelihood and its gradient against a multivariate normal density and differences."""

import numpy as np
import pytest
from cases import KERNELS, N_FEATURES, each
from numpy.testing import assert_allclose
from scipy import stats

from gpsift.gp.inference import ExactInference
from gpsift.gp.inference.exact import exact_evidence
from gpsift.gp.inference.exact_rbf import RBFEvidence
from gpsift.kernels import Constant, Linear, Matern52, SquaredExponential
from gpsift.likelihoods import Gaussian
from gpsift.reference.posterior import exact_posterior

NOISES = [0.2, np.linspace(0.05, 0.4, 25)]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(25, N_FEATURES))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=25)


@each(KERNELS)
@pytest.mark.parametrize("noise_var", NOISES, ids=["one noise", "a noise each"])
def test_evidence_matches_a_multivariate_normal(kernel, noise_var, data):
    X, y = data
    A = kernel.between(X, X).K + noise_var * np.eye(25)
    expected = stats.multivariate_normal(np.zeros(25), A).logpdf(y)
    assert_allclose(exact_evidence(kernel, X, y, noise_var).value, expected, rtol=1e-9)


@each(KERNELS)
def test_gradient_matches_central_differences(kernel, data):
    X, y = data
    theta, step = np.append(kernel.log_params, np.log(0.2)), 1e-5

    def value(t):
        return exact_evidence(kernel.with_log_params(t[:-1]), X, y, float(np.exp(t[-1]))).value

    expected = [(value(theta + e) - value(theta - e)) / (2 * step) for e in step * np.eye(theta.size)]
    gradient = exact_evidence(kernel, X, y, 0.2).gradient
    assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7 * np.abs(gradient).max())


FAST = {
    "default": SquaredExponential(np.array([1.0, 0.5, 2.0]), 1.7) + Constant(0.4),
    "constant first": Constant(0.4) + SquaredExponential(np.array([1.0, 0.5, 2.0]), 1.7),
    "no constant": SquaredExponential(np.array([1.0, 0.5, 2.0]), 1.7),
    "shared": SquaredExponential(1.3, 0.6, shared=True) + Constant(2.0),
    "two constants": SquaredExponential(1.3, 0.6) + Constant(2.0) + Constant(0.1),
}


@pytest.mark.parametrize("noise_var", NOISES, ids=["one noise", "a noise each"])
@pytest.mark.parametrize("n", [2, 63, 64, 65, 150])
@each(FAST)
def test_fast_path_equals_the_general_form(kernel, n, noise_var, rng):
    X, y = rng.normal(size=(n, N_FEATURES)), rng.normal(size=n)
    noise_var = noise_var if np.ndim(noise_var) == 0 else np.resize(noise_var, n)
    assert RBFEvidence.serves(kernel, X)
    fast = RBFEvidence(X, y)
    fast(kernel.with_log_params(kernel.log_params + 1.0), noise_var)  # workspaces of another call leave no trace
    found, expected = fast(kernel, noise_var), exact_evidence(kernel, X, y, noise_var)
    assert_allclose(found.value, expected.value, rtol=1e-12)
    assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-10 * np.abs(expected.gradient).max())


@pytest.mark.parametrize(("noise_var", "is_single"), [(0.3, True), (0.01, True), (1e-4, False)])
@each(FAST)
def test_low_precision_slopes_are_in_single_precision_and_values_are_not(kernel, noise_var, is_single, rng):
    """With much noise: next to none would leave them too few digits, and they are in double precision there."""
    n = 200
    X, y = rng.normal(size=(n, N_FEATURES)), rng.normal(size=n)
    found, expected = (RBFEvidence(X, y, low_precision=low)(kernel, noise_var) for low in (True, False))
    assert found.value == expected.value
    scale = np.abs(expected.gradient).max()
    assert_allclose(found.gradient, expected.gradient, rtol=1e-3, atol=1e-4 * scale)
    assert is_single == bool(np.abs(found.gradient - expected.gradient).max() > 1e-12 * scale)


@each({**FAST, "matern": Matern52(np.array([1.0, 0.5, 2.0]), 1.7)})
@pytest.mark.parametrize("noise_var", NOISES, ids=["one noise", "a noise each"])
def test_evidence_by_log_params_equals_that_of_a_kernel(kernel, noise_var, data):
    """However often it was asked before: what is left in the workspaces does not grow."""
    X, y = data
    kernel, likelihood, engine = kernel.for_features(N_FEATURES), Gaussian(noise_var), ExactInference(X, y)
    by_log_params = engine.evidence_by_log_params(kernel, likelihood)
    log_params = np.concatenate([kernel.log_params, likelihood.log_params]) + 0.3
    for _ in range(20):
        found = by_log_params(log_params)
    n_kernel = kernel.log_params.size
    expected = engine.stateless().evidence(
        kernel.with_log_params(log_params[:n_kernel]), likelihood.with_log_params(log_params[n_kernel:])
    )
    assert_allclose(found.value, expected.value, rtol=1e-12)
    assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-10 * np.abs(expected.gradient).max())


@pytest.mark.parametrize("noise_var", NOISES, ids=["one noise", "a noise each"])
@each(FAST)
def test_fast_posterior_equals_the_general_form(kernel, noise_var, rng):
    n = 150
    X, y = 20.0 + rng.normal(size=(n, N_FEATURES)), rng.normal(size=n)
    noise_var = np.resize(noise_var, n)
    kernel = kernel.for_features(N_FEATURES)
    fast = RBFEvidence(X, y)
    fast(kernel.with_log_params(kernel.log_params + 1.0), 0.3)  # workspaces of another call leave no trace
    (found, log_evidence), expected = fast.posterior(kernel, noise_var), exact_posterior(kernel, X, y, noise_var)[0]
    fast(kernel.with_log_params(kernel.log_params - 1.0), 0.7)
    assert_allclose(found.weights, expected.weights, rtol=1e-9, atol=1e-10)
    assert_allclose(found.M, expected.M, atol=1e-9)
    assert_allclose(log_evidence, exact_evidence(kernel, X, y, noise_var).value, rtol=1e-12)
    X_new = 20.0 + rng.normal(size=(4, N_FEATURES))
    assert_allclose(found.at(X_new).var, expected.at(X_new).var, rtol=1e-9)


def test_a_posterior_alone_has_the_evidence_of_the_whole_result(rng):
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    kernel, method = SquaredExponential(np.array([1.0, np.inf, 2.0]), 1.7), ExactInference(X, y)
    alone, whole = method.infer_posterior(kernel, Gaussian(0.2)), method.infer(kernel, Gaussian(0.2))
    assert_allclose(alone.log_evidence, whole.log_evidence, rtol=1e-12)
    assert_allclose(alone.posterior.weights, whole.posterior.weights, rtol=1e-9)
    assert alone.cavity_mean.size == 0


def test_fast_path_falls_back_to_jitter(rng):
    X = np.repeat(rng.normal(size=(20, 2)), 3, axis=0)
    y = rng.normal(size=60)
    kernel = SquaredExponential(np.ones(2), 1e6)
    assert RBFEvidence(X, y)(kernel, 1e-14) is None
    for evidence in (
        ExactInference(X, y).evidence(kernel, Gaussian(1e-14)),
        ExactInference(X, y).evidence_by_log_params(kernel, Gaussian(1e-14))(
            np.append(kernel.log_params, np.log(1e-14))
        ),
    ):
        assert evidence.jitter > 0
        assert np.isfinite(evidence.value)
    assert RBFEvidence(X, y).posterior(kernel, np.full(60, 1e-14)) is None
    likelihood = Gaussian(np.full(60, 1e-14))
    assert ExactInference(X, y).infer_posterior(kernel, likelihood).jitter > 0


@pytest.mark.parametrize("kernel", [Matern52(), SquaredExponential() + Linear(), Constant()])
def test_fast_path_declines_other_kernels(kernel):
    assert not RBFEvidence.serves(kernel, np.zeros((2, 2)))


@pytest.mark.parametrize("name", ["squared exponential", "matern 3/2", "rational quadratic", "sum"])
def test_every_array_library_gives_the_same_evidence(name, data, to_library):
    X, y = data
    kernel = KERNELS[name].for_features(N_FEATURES)
    for noise_var in NOISES:
        expected = exact_evidence(kernel, X, y, noise_var)
        noise = noise_var if np.ndim(noise_var) == 0 else to_library(noise_var)
        found = exact_evidence(kernel, to_library(X), to_library(y), noise)
        assert_allclose(found.value, expected.value, rtol=1e-10)
        assert_allclose(found.gradient, expected.gradient, rtol=1e-8, atol=1e-9)
