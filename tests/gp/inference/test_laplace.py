"""Laplace's method against scikit-learn, GPy, exact inference, dense quadrature and central differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from optional import need
from scipy import stats
from scipy.optimize import minimize

from gpsift._utils.threads import blas_threads_for
from gpsift.gp.inference import laplace as laplace_module
from gpsift.gp.inference.laplace import Curvature, LaplaceInference, laplace, laplace_gradient
from gpsift.kernels import Constant, SquaredExponential
from gpsift.likelihoods import Binomial, Gamma, Gaussian, Logit, NegativeBinomial, Poisson, Probit, StudentT

N = 30
KERNEL = SquaredExponential(np.array([0.9, 2.0]), 1.4) + Constant(0.5)
RNG = np.random.default_rng(12)
X = RNG.normal(size=(N, 2))
LATENT = np.sin(1.5 * X[:, 0]) + 0.4 * X[:, 1]
EXPOSURE = RNG.uniform(0.5, 3.0, N)
TRIALS = RNG.integers(1, 9, N).astype(float)
ONE = np.ones(N)
CLASSES = (RNG.uniform(size=N) < 1.0 / (1.0 + np.exp(-2.0 * LATENT))).astype(float)
COUNTS = RNG.poisson(EXPOSURE * np.exp(LATENT)).astype(float)
REALS = LATENT + 0.2 * RNG.standard_normal(N)
OUTLIERS = REALS + np.where(np.arange(N) % 7 == 3, 4.0, 0.0)

CASES = {
    "probit": (Probit(), CLASSES, ONE),
    "logit": (Logit(), CLASSES, ONE),
    "binomial": (Binomial(), RNG.binomial(TRIALS.astype(int), 0.4).astype(float), TRIALS),
    "poisson": (Poisson(), COUNTS, EXPOSURE),
    "negative binomial": (NegativeBinomial(1.7), COUNTS, EXPOSURE),
    "gamma": (Gamma(2.4), np.exp(LATENT) * RNG.gamma(2.4, 1 / 2.4, N), ONE),
    "student-t": (StudentT(5.0, 0.4), REALS, ONE),
    "student-t with outliers": (StudentT(3.0, 0.2), OUTLIERS, ONE),
    "gaussian": (Gaussian(0.3), REALS, ONE),
}


@pytest.fixture(autouse=True)
def _one_thread():
    with blas_threads_for(N):
        yield


each_case = pytest.mark.parametrize(("likelihood", "y", "size"), CASES.values(), ids=CASES)


def covariance():
    return KERNEL.between(X, X).K


def dense_M(K, W):
    """(K + W^-1)^-1 = W - W (K^-1 + W)^-1 W = W (I + K W)^-1, which stands W = 0 and W < 0."""
    return W[:, None] * np.linalg.inv(np.eye(len(K)) + K * W)


@each_case
def test_mode_is_where_the_gradient_vanishes(likelihood, y, size):
    K = covariance()
    result = laplace(K, y, size, likelihood)
    assert result.converged
    assert_allclose(result.weights, likelihood.derivatives(y, result.mode, size).first, atol=1e-6)
    assert_allclose(K @ result.weights, result.mode, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name][0].is_log_concave])
def test_mode_matches_a_general_optimiser(name):
    likelihood, y, size = CASES[name]
    K = covariance() + 1e-6 * np.eye(N)
    L = np.linalg.cholesky(K)

    def negative(t):
        f = L @ t
        slope = likelihood.derivatives(y, f, size).first
        return -likelihood.log_density(y, f, size).sum() + 0.5 * t @ t, t - L.T @ slope

    found = minimize(negative, np.zeros(N), jac=True, method="BFGS", options={"gtol": 1e-7})
    assert_allclose(laplace(K, y, size, likelihood).mode, L @ found.x, atol=1e-5)


@each_case
def test_evidence_matches_its_definition(likelihood, y, size):
    """log p(y | f) - f^T K^-1 f / 2 - log |I + K W| / 2 with plain linear algebra."""
    K = covariance()
    result = laplace(K, y, size, likelihood)
    f = result.mode
    W = -likelihood.derivatives(y, f, size).second
    sign, log_det = np.linalg.slogdet(np.eye(N) + K * W)
    assert sign > 0
    expected = likelihood.log_density(y, f, size).sum() - 0.5 * f @ result.weights - 0.5 * log_det
    assert_allclose(result.log_evidence, expected, rtol=1e-9)


@pytest.mark.parametrize("noise_var", [0.05, 0.3, 4.0])
def test_laplace_with_gaussian_noise_equals_exact_inference(noise_var):
    K = covariance()
    A = K + noise_var * np.eye(N)
    inferred = LaplaceInference(X, REALS, ONE).infer(KERNEL, Gaussian(noise_var))
    assert_allclose(inferred.log_evidence, stats.multivariate_normal(np.zeros(N), A).logpdf(REALS), rtol=1e-8)
    assert_allclose(inferred.posterior.weights, np.linalg.solve(A, REALS), rtol=1e-8, atol=1e-8)
    X_new = X[:6] + 0.3
    k = KERNEL.between(X_new, X).K
    expected = KERNEL.diag(X_new) - np.einsum("ij,ji->i", k, np.linalg.solve(A, k.T))
    assert_allclose(inferred.posterior.at(X_new).var, expected, rtol=1e-8, atol=1e-10)
    Q = np.linalg.inv(A)
    assert_allclose(inferred.cavity_mean, REALS - Q @ REALS / np.diagonal(Q), rtol=1e-7, atol=1e-7)
    assert_allclose(inferred.cavity_var, 1.0 / np.diagonal(Q) - noise_var, rtol=1e-7)


@each_case
def test_gradient_matches_central_differences(likelihood, y, size):
    """For the kernel's parameters and the likelihood's."""
    engine, step = LaplaceInference(X, y, size, warm=False), 1e-4
    theta = np.concatenate([KERNEL.log_params, likelihood.log_params])
    n_kernel = KERNEL.log_params.size

    def value(t):
        return engine.evidence(KERNEL.with_log_params(t[:n_kernel]), likelihood.with_log_params(t[n_kernel:])).value

    # Fourth order, so that the differences are good to 1e-8 and more.
    steps = step * np.eye(theta.size)
    expected = [
        (8 * (value(theta + e) - value(theta - e)) - (value(theta + 2 * e) - value(theta - 2 * e))) / (12 * step)
        for e in steps
    ]
    gradient = engine.evidence(KERNEL, likelihood).gradient
    assert gradient.shape == theta.shape
    assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_outliers_make_the_curvature_negative():
    """So that the case above tests what it is meant to."""
    likelihood, y, size = CASES["student-t with outliers"]
    curvature = laplace(covariance(), y, size, likelihood).curvature
    assert np.any(curvature.W < -0.1)
    assert not curvature.is_positive


@each_case
def test_posterior_matches_dense_formulas(likelihood, y, size):
    K = covariance()
    inferred = LaplaceInference(X, y, size).infer(KERNEL, likelihood)
    result = laplace(K, y, size, likelihood)
    M = dense_M(K, -likelihood.derivatives(y, result.mode, size).second)
    assert_allclose(sum(factor.matrix() for factor in inferred.posterior.factors), M, atol=1e-7 * np.abs(M).max())
    X_new = X[:8] + 0.4
    k = KERNEL.between(X_new, X).K
    assert_allclose(
        inferred.posterior.at(X_new).mean, k @ np.linalg.solve(K + 1e-13 * np.eye(N), result.mode), atol=1e-4
    )
    expected_var = KERNEL.diag(X_new) - np.einsum("ij,jk,ik->i", k, M, k)
    assert_allclose(inferred.posterior.at(X_new).var, expected_var, rtol=1e-6)
    expected_covariance = KERNEL.between(X_new, X_new).K - k @ M @ k.T
    assert_allclose(inferred.posterior.covariance(X_new), expected_covariance, atol=1e-7)


@pytest.mark.parametrize("signs", ["positive", "mixed", "with zeros"])
def test_curvature_matches_dense_formulas(signs):
    K = covariance()
    W = np.random.default_rng(2).uniform(0.1, 3.0, N)
    if signs == "mixed":
        W[::5] = -0.1
    if signs == "with zeros":
        W[::4] = 0.0
    curvature, b = Curvature(K, W), np.linspace(-1.0, 1.0, N)
    M = dense_M(K, W)
    assert_allclose(curvature.M, M, atol=1e-8)
    assert_allclose(curvature.times_M(b), M @ b, atol=1e-8)
    assert_allclose(curvature.var, np.diagonal(K - K @ M @ K), rtol=1e-6)
    assert_allclose(curvature.log_det, np.linalg.slogdet(np.eye(N) + K * W)[1], rtol=1e-8)


@each_case
def test_identities_at_the_training_points_equal_the_general_path(likelihood, y, size):
    posterior = LaplaceInference(X, y, size).infer(KERNEL, likelihood).posterior
    identity, general = posterior.at_support(), posterior.at(X)
    assert_allclose(identity.mean, general.mean, atol=1e-10)
    assert_allclose(identity.var, general.var, rtol=1e-6)
    assert_allclose(identity.mean_gradient, general.mean_gradient, atol=1e-9)
    assert_allclose(identity.var_gradient, general.var_gradient, atol=1e-7)
    for first, second in zip(identity.step(0, 0.3), general.step(0, 0.3), strict=True):
        assert_allclose(first, second, atol=1e-7)


def dense_log_evidence(K, y, size, likelihood):
    L = np.linalg.cholesky(K)
    t = np.linspace(-9.0, 9.0, 1201)
    t1, t2 = np.meshgrid(t, t, indexing="ij")
    f = L[0, 0] * t1, L[1, 0] * t1 + L[1, 1] * t2
    log_p = sum(likelihood.log_density(y[i], f[i], size[i]) for i in range(2))
    return np.log(np.sum(np.exp(log_p) * stats.norm.pdf(t1) * stats.norm.pdf(t2)) * (t[1] - t[0]) ** 2)


@pytest.mark.parametrize("name", CASES)
def test_two_observations_match_dense_quadrature(name):
    """Within what a normal approximation at the mode can give for latent values of variance 0.4."""
    nats = {"gaussian": 1e-9, "student-t": 0.15, "student-t with outliers": 0.5}.get(name, 0.03)
    likelihood, y, size = CASES[name]
    K = 0.4 * np.array([[1.0, 0.6], [0.6, 1.0]])
    found = laplace(K, y[:2], size[:2], likelihood).log_evidence
    assert_allclose(found, dense_log_evidence(K, y[:2], size[:2], likelihood), atol=nats)


@pytest.mark.parametrize("name", ["logit", "poisson", "negative binomial", "gamma", "binomial"])
def test_the_approximation_becomes_exact_as_the_latent_variance_shrinks(name):
    likelihood, y, size = CASES[name]
    errors = []
    for variance in (0.1, 0.01):
        K = variance * np.array([[1.0, 0.6], [0.6, 1.0]])
        found = laplace(K, y[:2], size[:2], likelihood).log_evidence
        errors.append(abs(found - dense_log_evidence(K, y[:2], size[:2], likelihood)))
    assert errors[1] < 0.1 * errors[0] + 1e-10


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", [1, 2])
def test_laplace_matches_scikit_learn(seed):
    """GaussianProcessClassifier with the same kernel: evidence, latent mean and variance."""
    need("sklearn")
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    rng = np.random.default_rng(seed)
    X, X_new = rng.normal(size=(60, 3)), rng.normal(size=(25, 3))
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=60) > 0).astype(float)
    lengthscale, signal_var, constant_var = np.array([0.8, 1.5, 3.0]), 4.0, 0.7
    peer_kernel = ConstantKernel(signal_var) * RBF(lengthscale) + ConstantKernel(constant_var)
    peer = GaussianProcessClassifier(peer_kernel, optimizer=None, max_iter_predict=1000).fit(X, y)
    base, k = peer.base_estimator_, peer_kernel(X_new, X)
    # Rasmussen & Williams (2006), Algorithm 3.2, from what it keeps; its own probabilities are approximate.
    root = np.linalg.solve(base.L_, base.W_sr_[:, None] * k.T)
    expected_var = np.diagonal(peer_kernel(X_new)) - np.sum(root**2, axis=0)

    kernel = SquaredExponential(lengthscale, signal_var) + Constant(constant_var)
    inferred = LaplaceInference(X, y, np.ones(60)).infer(kernel, Logit())
    latent = inferred.posterior.at(X_new)
    assert_allclose(inferred.log_evidence, peer.log_marginal_likelihood_value_, rtol=1e-8)
    assert_allclose(latent.mean, k @ (y - base.pi_), atol=1e-6)
    assert_allclose(latent.var, expected_var, atol=1e-6)


def gpy_laplace(X, y, kernel_values, likelihood):
    GPy = need("GPy")
    lengthscale, signal_var, constant_var = kernel_values
    p = X.shape[1]
    kernel = GPy.kern.RBF(p, ARD=True, lengthscale=lengthscale, variance=signal_var) + GPy.kern.Bias(p, constant_var)
    method = GPy.inference.latent_function_inference.Laplace()
    model = GPy.core.GP(X, y[:, None], kernel, likelihood(GPy), inference_method=method)
    return float(model.log_likelihood())


def hundred(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 2))
    return X, np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1], rng


@pytest.mark.filterwarnings("ignore")
def test_poisson_matches_gpy():
    X, latent, rng = hundred(5)
    y = rng.poisson(np.exp(latent)).astype(float)
    values = np.array([1.0, 2.0]), 1.3, 0.4
    expected = gpy_laplace(X, y, values, lambda GPy: GPy.likelihoods.Poisson())
    kernel = SquaredExponential(*values[:2]) + Constant(values[2])
    assert_allclose(LaplaceInference(X, y, np.ones(100)).infer(kernel, Poisson()).log_evidence, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("n_outliers", "rtol"), [(0, 1e-6), (5, 1e-3)])
def test_student_t_matches_gpy(n_outliers, rtol):
    """GPy's `sigma2` is the squared scale.

    Where outliers make a curvature negative, GPy clips it in one place of its Newton step and not in another, and stops
    short of the mode: there the two only agree roughly.
    """
    X, latent, rng = hundred(6)
    y = latent + 0.2 * rng.standard_normal(100)
    y[:n_outliers] += 5.0
    values = np.array([1.0, 2.0]), 1.3, 0.4
    expected = gpy_laplace(X, y, values, lambda GPy: GPy.likelihoods.StudentT(deg_free=4.0, sigma2=0.09))
    kernel = SquaredExponential(*values[:2]) + Constant(values[2])
    inferred = LaplaceInference(X, y, np.ones(100)).infer(kernel, StudentT(4.0, 0.3))
    assert_allclose(inferred.log_evidence, expected, rtol=rtol)


def test_warm_engine_gives_the_answers_of_a_cold_one():
    for likelihood, y, size in CASES.values():
        warm, cold = LaplaceInference(X, y, size), LaplaceInference(X, y, size, warm=False)
        for factor in (1.0, 3.0, 0.3, 1.0):
            kernel = KERNEL.with_log_params(KERNEL.log_params + np.log(factor))
            first, second = warm.evidence(kernel, likelihood), cold.evidence(kernel, likelihood)
            assert_allclose(first.value, second.value, rtol=1e-8)
            assert_allclose(first.gradient, second.gradient, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["poisson", "logit"])
def test_latent_values_of_another_model_change_nothing(name):
    likelihood, y, size = CASES[name]
    K = covariance()
    cold = laplace(K, y, size, likelihood)
    warm = laplace(K, y, size, likelihood, near=laplace(2.0 * K, y, size, likelihood).mode)
    assert_allclose(warm.log_evidence, cold.log_evidence, rtol=1e-10)
    G, _ = laplace_gradient(cold, y, size, likelihood)
    assert_allclose(laplace_gradient(warm, y, size, likelihood)[0], G, atol=1e-9)


def test_factors_arrive_where_products_do_not(monkeypatch):
    likelihood, y, size = CASES["poisson"]
    expected = laplace(covariance(), y, size, likelihood)
    monkeypatch.setattr(laplace_module, "conjugate_gradients", lambda *_: None)
    found = laplace(covariance(), y, size, likelihood, near=expected.mode)
    assert found.converged
    assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-10)


def test_rough_answers_are_near():
    likelihood, y, size = CASES["poisson"]
    engine = LaplaceInference(X, y, size)
    expected, found = (
        engine.evidence(KERNEL, likelihood),
        engine.stateless().low_precision().evidence(KERNEL, likelihood),
    )
    assert_allclose(found.value, expected.value, atol=1e-3)
    assert_allclose(found.gradient, expected.gradient, atol=1e-2)


def test_robust_regression_takes_the_highest_of_its_modes():
    """Of all modes that many starts reach, the engine's is among the highest."""
    likelihood, y, size = CASES["student-t with outliers"]
    K, rng = covariance(), np.random.default_rng(8)
    starts = [rng.normal(size=N) for _ in range(15)]
    heights = [laplace(K, y, size, likelihood, start=start).log_joint for start in starts]
    inferred = LaplaceInference(X, y, size).infer(KERNEL, likelihood)
    f = K @ inferred.posterior.weights
    height = likelihood.log_density(y, f, size).sum() - 0.5 * f @ inferred.posterior.weights
    assert height >= max(heights) - 1e-6


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("signal_var", [1e-8, 1e4])
@pytest.mark.parametrize("lengthscale", [0.01, 100.0])
def test_extreme_hyperparameters_have_a_finite_answer(name, signal_var, lengthscale):
    likelihood, y, size = CASES[name]
    kernel = SquaredExponential(np.full(2, lengthscale), signal_var)
    evidence = LaplaceInference(X, y, size).evidence(kernel, likelihood)
    assert np.isfinite(evidence.value)
    assert np.all(np.isfinite(evidence.gradient))


def test_large_counts_are_found_from_zero():
    """Newton's method starts at a rate of 1 when the counts are in the thousands."""
    y = np.round(5000.0 * np.exp(0.3 * LATENT))
    kernel = SquaredExponential(np.array([1.0, 2.0]), 1.0) + Constant(100.0)
    result = laplace(kernel.between(X, X).K, y, ONE, Poisson())
    assert result.converged
    assert_allclose(np.exp(result.mode), y, rtol=0.1)


def test_status_says_when_newton_did_not_arrive(monkeypatch):
    likelihood, y, size = CASES["poisson"]
    monkeypatch.setattr(laplace_module, "MAX_ITERATIONS", 1)
    result = laplace(covariance(), y, size, likelihood)
    assert not result.converged
    assert result.n_iterations == 1
    engine = LaplaceInference(X, y, size)
    assert not engine.infer(KERNEL, likelihood).converged
    # A state that did not settle is no place to start from.
    assert engine.warm_start.last is None


def test_a_last_mode_that_is_far_off_is_forgotten():
    """Weights of a smooth function are rates of e^48 for a rougher one, from where Newton's method finds no way."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(300, 4))
    exposure = rng.uniform(0.5, 4.0, 300)
    rate = np.exp(1.5 * np.sin(1.5 * inputs[:, 0]) + 0.8 * inputs[:, 1] + 0.4 * inputs[:, 2])
    engine = LaplaceInference(inputs, rng.poisson(exposure * rate).astype(float), exposure)
    smooth = SquaredExponential(np.full(4, 2.0), 1.0) + Constant(1.0)
    rough = SquaredExponential(np.array([0.8, 2.1, 2.2, 2.3]), 2.2) + Constant(1.0)
    engine.evidence(smooth, Poisson())
    found, expected = engine.evidence(rough, Poisson()), engine.stateless().evidence(rough, Poisson())
    assert_allclose(found.value, expected.value, rtol=1e-8)
    assert_allclose(found.gradient, expected.gradient, rtol=1e-5)


def test_a_start_from_which_rates_overflow_is_left():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    K = (SquaredExponential(1.0) + Constant()).for_features(2).between(X, X).K
    y = rng.poisson(2.0, size=30).astype(float)
    expected = laplace(K, y, np.ones(30), Poisson())
    found = laplace(K, y, np.ones(30), Poisson(), start=np.full(30, 1e3))
    assert found.converged
    assert_allclose(found.mode, expected.mode, rtol=1e-9, atol=1e-12)


def test_weights_of_a_smoother_model_that_lead_nowhere_are_left(monkeypatch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 2))
    kernel = (SquaredExponential(1.0) + Constant()).for_features(2)
    engine = LaplaceInference(X, rng.poisson(2.0, size=30).astype(float), np.ones(30))
    expected = engine.evidence(kernel, Poisson())
    seen = []

    def failing(*args, near=None, **options):
        seen.append(near)
        if near is not None:
            raise laplace_module.NotPositiveDefinite("no factor")
        return laplace(*args, **options)

    monkeypatch.setattr("gpsift.gp.inference.laplace.laplace", failing)
    assert engine.evidence(kernel, Poisson()).value == pytest.approx(expected.value, rel=1e-9)
    assert [near is None for near in seen] == [False, True]
