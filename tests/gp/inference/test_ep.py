"""Expectation propagation against GPy, exact inference, dense quadrature and central differences."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need
from scipy import stats
from scipy.special import ndtr

from gpsift._utils.threads import blas_threads_for
from gpsift.gp.inference import ep
from gpsift.gp.inference.ep import EPInference, Sites, expectation_propagation
from gpsift.kernels import Constant, Matern52, SquaredExponential
from gpsift.likelihoods import Binomial, Gaussian, Logit, Poisson, Probit


@pytest.fixture(autouse=True)
def _one_thread():
    with blas_threads_for(60):
        yield


def two_classes(n, p, seed, sharpness):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    latent = sharpness * (np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1])
    return X, (rng.uniform(size=n) < ndtr(latent)).astype(float)


# Data, length-scales, signal variance and the variance of the constant.
GENERATED = {
    "smooth": (*two_classes(60, 3, 1, 1.0), np.array([1.0, 2.0, 4.0]), 2.0, 0.5),
    "sharp": (*two_classes(60, 2, 2, 6.0), np.array([0.7, 1.5]), 30.0, 1.0),
}


def evidence_and_probabilities(X, y, lengthscale, signal_var, constant_var, X_new):
    kernel = SquaredExponential(lengthscale, signal_var) + Constant(constant_var)
    inferred = EPInference(X, y, np.ones(y.size)).infer(kernel, Probit())
    assert inferred.converged
    latent = inferred.posterior.at(X_new)
    return inferred.log_evidence, Probit().predictive(latent.mean, latent.var, np.ones(len(X_new))).probability


def gpy_evidence_and_probabilities(X, y, lengthscale, signal_var, constant_var, X_new):
    GPy = need("GPy")
    p = X.shape[1]
    kernel = GPy.kern.RBF(p, ARD=True, lengthscale=lengthscale, variance=signal_var) + GPy.kern.Bias(p, constant_var)
    method = GPy.inference.latent_function_inference.expectation_propagation.EP(epsilon=1e-12, max_iters=1000)
    model = GPy.core.GP(X, y[:, None], kernel, GPy.likelihoods.Bernoulli(), inference_method=method)
    return float(model.log_likelihood()), model.predict(X_new)[0][:, 0]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", GENERATED)
def test_ep_matches_gpy(name):
    X, y, *hyper = GENERATED[name]
    X_new = np.random.default_rng(9).normal(size=(40, X.shape[1]))
    log_evidence, probabilities = evidence_and_probabilities(X, y, *hyper, X_new)
    expected_evidence, expected = gpy_evidence_and_probabilities(X, y, *hyper, X_new)
    assert_allclose(log_evidence, expected_evidence, rtol=1e-8)
    assert_allclose(probabilities, expected, atol=1e-6, rtol=0)


@pytest.mark.filterwarnings("ignore")
def test_ep_matches_gpy_on_pima():
    folder = os.environ.get("GPSIFT_DATA")
    if not folder or not (Path(folder) / "pima.csv").exists():
        pytest.skip("GPSIFT_DATA does not point to a folder with pima.csv")
    table = np.genfromtxt(Path(folder) / "pima.csv", delimiter=",", skip_header=1)
    chosen = np.random.default_rng(0).permutation(len(table))[:340]
    X, y = table[chosen, :-1], table[chosen, -1]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    hyper = np.array([2.0, 1.5, 8.0, 9.0, 7.0, 2.0, 3.0, 4.0]), 3.0, 0.5
    log_evidence, probabilities = evidence_and_probabilities(X[:300], y[:300], *hyper, X[300:])
    expected_evidence, expected = gpy_evidence_and_probabilities(X[:300], y[:300], *hyper, X[300:])
    assert_allclose(log_evidence, expected_evidence, rtol=1e-8)
    assert_allclose(probabilities, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("noise_var", [0.05, 0.3, 4.0])
def test_ep_with_gaussian_noise_equals_exact_inference(regression, noise_var):
    X, y = regression
    kernel = SquaredExponential(np.array([1.0, 2.0, 3.0]), 1.5) + Constant(0.4)
    K = kernel.between(X, X).K
    A = K + noise_var * np.eye(y.size)
    result = expectation_propagation(K, y, np.ones(y.size), Gaussian(noise_var))
    assert result.converged
    assert_allclose(result.log_evidence, stats.multivariate_normal(np.zeros(y.size), A).logpdf(y), rtol=1e-8)
    assert_allclose(result.weights, np.linalg.solve(A, y), rtol=1e-8, atol=1e-8)
    assert_allclose(result.sites.tau, 1.0 / noise_var, rtol=1e-8)
    # The cavities are leave-one-out predictions (Rasmussen & Williams 2006, equation 5.12).
    Q = np.linalg.inv(A)
    assert_allclose(result.cavity_mean, y - Q @ y / np.diagonal(Q), rtol=1e-8, atol=1e-8)
    assert_allclose(result.cavity_var, 1.0 / np.diagonal(Q) - noise_var, rtol=1e-8)

    inferred = EPInference(X, y, np.ones(y.size)).infer(kernel, Gaussian(noise_var))
    X_new = X[:7] + 0.3
    k = kernel.between(X_new, X).K
    expected = kernel.diag(X_new) - np.einsum("ij,ji->i", k, np.linalg.solve(A, k.T))
    assert_allclose(inferred.posterior.at(X_new).mean, k @ np.linalg.solve(A, y), rtol=1e-8, atol=1e-8)
    assert_allclose(inferred.posterior.at(X_new).var, expected, rtol=1e-8, atol=1e-9)


def dense_posterior(K, y, likelihood, size):
    """Evidence, means and variances of two latent values on a fine grid."""
    L = np.linalg.cholesky(K)
    t = np.linspace(-9.0, 9.0, 1201)
    t1, t2 = np.meshgrid(t, t, indexing="ij")
    f1, f2 = L[0, 0] * t1, L[1, 0] * t1 + L[1, 1] * t2
    log_p = likelihood.log_density(y[0], f1, size[0]) + likelihood.log_density(y[1], f2, size[1])
    p = np.exp(log_p) * stats.norm.pdf(t1) * stats.norm.pdf(t2) * (t[1] - t[0]) ** 2
    total = p.sum()
    mean = np.array([np.sum(p * f) for f in (f1, f2)]) / total
    return (
        np.log(total),
        mean,
        np.array([np.sum(p * (f - m) ** 2) for f, m in zip((f1, f2), mean, strict=True)]) / total,
    )


@pytest.mark.parametrize("y", [[1.0, 1.0], [0.0, 1.0]])
@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_two_probit_observations_match_dense_quadrature(y, correlation):
    """EP is exact to a few parts in a thousand here; with independent latent values it is exact."""
    y, K = np.array(y), 2.0 * np.array([[1.0, correlation], [correlation, 1.0]])
    result = expectation_propagation(K, y, np.ones(2), Probit())
    log_evidence, mean, var = dense_posterior(K, y, Probit(), np.ones(2))
    exact = correlation == 0.0
    assert_allclose(result.log_evidence, log_evidence, atol=1e-9 if exact else 5e-3)
    assert_allclose(K @ result.weights, mean, atol=1e-8 if exact else 2e-2)
    M = np.linalg.inv(K + np.diag(1.0 / result.sites.tau))
    assert_allclose(np.diagonal(K - K @ M @ K), var, rtol=1e-8 if exact else 3e-2)


@pytest.mark.parametrize(
    ("likelihood", "y", "size"),
    [
        (Logit(), [0.0, 1.0], [1.0, 1.0]),
        (Binomial(), [2.0, 5.0], [3.0, 9.0]),
        (Poisson(), [0.0, 4.0], [1.5, 0.7]),
    ],
    ids=["logit", "binomial", "poisson"],
)
@pytest.mark.parametrize("correlation", [0.0, 0.6])
def test_other_likelihoods_match_dense_quadrature(likelihood, y, size, correlation):
    y, size, K = np.array(y), np.array(size), 1.5 * np.array([[1.0, correlation], [correlation, 1.0]])
    result = expectation_propagation(K, y, size, likelihood)
    log_evidence, mean, _ = dense_posterior(K, y, likelihood, size)
    assert result.converged
    assert_allclose(result.log_evidence, log_evidence, atol=1e-7 if correlation == 0.0 else 5e-3)
    assert_allclose(K @ result.weights, mean, atol=1e-6 if correlation == 0.0 else 2e-2)


def test_the_cavity_of_one_point_is_the_posterior_given_the_other():
    """With two points each cavity is the posterior of one observation, whose moments a tilted normal has exactly."""
    K, y = np.array([[2.0, 1.2], [1.2, 2.0]]), np.array([1.0, 0.0])
    result = expectation_propagation(K, y, np.ones(2), Probit())
    for i, k in ((0, 1), (1, 0)):
        alone = Probit().tilted_moments(y[[k]], np.zeros(1), K[[k], [k]], np.ones(1))
        slope = K[i, k] / K[k, k]
        expected_var = K[i, i] - slope * K[i, k] + slope**2 * alone.var[0]
        assert_allclose(result.cavity_mean[i], slope * alone.mean[0], atol=3e-2)
        assert_allclose(result.cavity_var[i], expected_var, rtol=3e-2)


@pytest.mark.parametrize(
    ("likelihood", "target"),
    [(Probit(), "classes"), (Logit(), "classes"), (Poisson(), "counts"), (Binomial(), "trials")],
    ids=["probit", "logit", "poisson", "binomial"],
)
@pytest.mark.parametrize(
    "kernel",
    [SquaredExponential(np.array([0.8, 2.0, 3.0]), 2.5) + Constant(0.6), Matern52(np.array([0.8, 2.0, 3.0]), 1.5)],
    ids=["squared exponential", "matern"],
)
def test_gradient_matches_central_differences(likelihood, target, kernel):
    X, classes = two_classes(25, 3, 4, 2.0)
    rng = np.random.default_rng(6)
    y = {"classes": classes, "counts": rng.poisson(2.0, 25), "trials": rng.binomial(6, 0.4, 25)}[target].astype(float)
    size = np.full(25, 6.0) if target == "trials" else np.ones(25)
    engine = EPInference(X, y, size, warm=False, tolerance=1e-9)
    theta, step = kernel.log_params, 1e-4

    def value(t):
        K = kernel.with_log_params(t).between(X, X).K
        return expectation_propagation(K, y, size, likelihood, tolerance=1e-12).log_evidence

    expected = [(value(theta + e) - value(theta - e)) / (2 * step) for e in step * np.eye(theta.size)]
    found = engine.evidence(kernel, likelihood)
    assert found.gradient.shape == theta.shape
    assert_allclose(found.gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_fixed_point_does_not_depend_on_the_start():
    X, y, lengthscale, signal_var, _ = GENERATED["smooth"]
    K = SquaredExponential(lengthscale, signal_var).between(X, X).K + 0.5
    cold = expectation_propagation(K, y, np.ones(60), Probit(), tolerance=1e-11)
    rng = np.random.default_rng(3)
    elsewhere = Sites(rng.uniform(0.05, 0.6, 60), rng.normal(size=60))
    warm = expectation_propagation(K, y, np.ones(60), Probit(), start=elsewhere, tolerance=1e-11)
    assert_allclose(warm.sites.tau, cold.sites.tau, rtol=1e-7)
    assert_allclose(warm.sites.nu, cold.sites.nu, rtol=1e-7, atol=1e-8)
    assert_allclose(warm.log_evidence, cold.log_evidence, rtol=1e-10)


def test_a_warm_start_at_the_fixed_point_takes_one_sweep():
    X, y, lengthscale, signal_var, _ = GENERATED["smooth"]
    K = SquaredExponential(lengthscale, signal_var).between(X, X).K + 0.5
    cold = expectation_propagation(K, y, np.ones(60), Probit())
    again = expectation_propagation(K, y, np.ones(60), Probit(), start=cold.sites)
    assert again.n_sweeps == 1
    assert cold.n_sweeps > 3
    assert_allclose(again.log_evidence, cold.log_evidence, rtol=1e-12)


def test_warm_engine_gives_the_answers_of_a_cold_one():
    X, y, lengthscale, signal_var, _ = GENERATED["smooth"]
    warm, cold = (EPInference(X, y, np.ones(60), warm=keeps, tolerance=1e-9) for keeps in (True, False))
    for factor in (1.0, 3.0, 0.2, 50.0, 1.0):
        kernel = SquaredExponential(factor * lengthscale, factor * signal_var)
        first, second = warm.evidence(kernel, Probit()), cold.evidence(kernel, Probit())
        assert_allclose(first.value, second.value, rtol=1e-9)
        assert_allclose(first.gradient, second.gradient, rtol=1e-5, atol=1e-6)


def test_the_moments_match_at_the_fixed_point():
    """What EP promises: the marginals of the posterior are those of the tilted distributions."""
    X, y, lengthscale, signal_var, _ = GENERATED["sharp"]
    K = SquaredExponential(lengthscale, signal_var).between(X, X).K
    result = expectation_propagation(K, y, np.ones(60), Probit())
    M = np.linalg.inv(K + np.diag(1.0 / result.sites.tau))
    tilted = Probit().tilted_moments(y, result.cavity_mean, result.cavity_var, np.ones(60))
    assert_allclose(tilted.mean, K @ result.weights, atol=1e-6)
    assert_allclose(tilted.var, np.diagonal(K - K @ M @ K), rtol=1e-5)


def test_swapping_the_classes_mirrors_the_answer():
    X, y, lengthscale, signal_var, _ = GENERATED["smooth"]
    K = SquaredExponential(lengthscale, signal_var).between(X, X).K
    one, other = (expectation_propagation(K, labels, np.ones(60), Probit()) for labels in (y, 1.0 - y))
    assert_allclose(other.log_evidence, one.log_evidence, rtol=1e-10)
    assert_allclose(other.weights, -one.weights, atol=1e-8)
    assert_allclose(other.cavity_var, one.cavity_var, rtol=1e-8)


@pytest.mark.parametrize("signal_var", [1e-8, 1e4, 1e8])
@pytest.mark.parametrize("lengthscale", [0.01, 1.0, 100.0])
def test_extreme_hyperparameters_have_a_finite_answer(signal_var, lengthscale):
    """The search for hyperparameters visits such places; they need a finite answer, and a status."""
    X, y, *_ = GENERATED["smooth"]
    K = SquaredExponential(np.full(3, lengthscale), signal_var).between(X, X).K
    result = expectation_propagation(K, y, np.ones(60), Probit())
    assert np.isfinite(result.log_evidence)
    assert np.all(result.cavity_var > 0)
    # At a signal variance of 1e8 the marginal variances themselves have only eight digits, so 1e-9 is out of reach.
    assert result.converged or signal_var > 1e4


def test_status_says_when_the_sweeps_did_not_settle(monkeypatch):
    X, y, lengthscale, signal_var, _ = GENERATED["sharp"]
    kernel = SquaredExponential(lengthscale, signal_var)
    monkeypatch.setattr(ep, "MAX_SWEEPS", 3)
    result = expectation_propagation(kernel.between(X, X).K, y, np.ones(60), Probit())
    assert not result.converged
    assert result.n_sweeps == 3
    engine = EPInference(X, y, np.ones(60))
    inferred = engine.infer(kernel, Probit())
    assert not inferred.converged
    assert inferred.n_iterations == 3
    # A state that did not settle is no place to start from.
    assert engine.warm_start.last is None


def strong_signal(signal_var):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(float)
    return (SquaredExponential(np.array([1.0, 2.0]), signal_var) + Constant(1.0)).between(X, X).K, y


@pytest.mark.parametrize(
    ("signal_var", "name", "without"),
    [
        (1e4, "extrapolate", lambda trail, _, share: trail[-1].sites.interpolate(trail[-1].moved, share)),
        (1.0, "EPResult.match_after_means", lambda _, moved: moved),
    ],
    ids=["extrapolated", "followed by the means"],
)
def test_steps_come_to_the_same_place_sooner(monkeypatch, signal_var, name, without):
    K, y = strong_signal(signal_var)
    found = expectation_propagation(K, y, np.ones(60), Probit())
    monkeypatch.setattr(f"gpsift.gp.inference.ep.{name}", without)
    expected = expectation_propagation(K, y, np.ones(60), Probit())
    assert found.n_sweeps < expected.n_sweeps
    assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-11)
    assert_allclose(found.weights, expected.weights, atol=1e-7)


@pytest.mark.parametrize(("rough", "value_error", "slope_error"), [(False, 1e-8, 1e-3), (True, 2e-3, 0.2)])
def test_searches_have_the_digits_that_they_need(rough, value_error, slope_error):
    """From the sites of other hyperparameters, against an answer to all digits."""
    X, y = two_classes(100, 3, 5, 2.0)
    kernel, elsewhere = (
        SquaredExponential(np.array(lengths), 3.0) + Constant(0.5) for lengths in ([1.0, 2.0, 4.0], [1.5, 1.0, 9.0])
    )
    engine = EPInference(X, y, np.ones(100))
    engine = engine.low_precision() if rough else engine
    engine.infer(elsewhere, Probit())
    found, value = engine.evidence(kernel, Probit()), engine.log_evidence(elsewhere, Probit())
    exact = EPInference(X, y, np.ones(100), tolerance=1e-11)
    expected = exact.evidence(kernel, Probit())
    assert_allclose(found.value, expected.value, atol=value_error, rtol=0)
    assert_allclose(found.gradient, expected.gradient, atol=slope_error, rtol=0)
    assert_allclose(value, exact.log_evidence(elsewhere, Probit()), atol=value_error, rtol=0)


@pytest.fixture(scope="module")
def repeated_rows():
    """Many rows of the same inputs with both labels, and sites that were found for a smoother function."""
    rng = np.random.default_rng(0)
    X = rng.integers(12, size=150)[:, None] / 4.0
    y = (rng.uniform(size=150) < ndtr(2.0 * np.sin(5.0 * X[:, 0]))).astype(float)
    smooth = EPInference(X, y, np.ones(150))
    smooth.infer(SquaredExponential(np.array([1.0]), 10.0), Probit())
    return X, y, smooth.warm_start.last


@pytest.mark.parametrize("signal_var", [1e3, 1e5])
@pytest.mark.parametrize("is_warm", [True, False])
def test_a_steep_function_of_repeated_rows_is_found_in_few_sweeps(repeated_rows, signal_var, is_warm):
    X, y, sites = repeated_rows
    K = SquaredExponential(np.array([0.2]), signal_var).between(X, X).K
    start = sites if is_warm else None
    result = expectation_propagation(K, y, np.ones(y.size), Probit(), start=start, tolerance=1e-6)
    assert result.converged
    assert result.n_sweeps < 40
