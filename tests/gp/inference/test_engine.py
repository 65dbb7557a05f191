"""Every engine has consistent answers, leave-one-out from cavities, and posteriors that predict."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, ndtr

from gpsift._utils.threads import blas_threads_for
from gpsift.gp.inference.ep import EPInference
from gpsift.gp.inference.exact import ExactInference
from gpsift.gp.inference.laplace import LaplaceInference
from gpsift.kernels import Constant, Linear, Matern52, SquaredExponential
from gpsift.likelihoods import (
    Binomial,
    Gamma,
    Gaussian,
    Logit,
    NegativeBinomial,
    Poisson,
    Probit,
    StudentT,
)
from gpsift.reference.posterior import LEAST_PRECISION

N = 24
RNG = np.random.default_rng(31)
X = RNG.normal(size=(N, 2))
LATENT = np.sin(1.5 * X[:, 0]) + 0.4 * X[:, 1]
ONE, EXPOSURE = np.ones(N), RNG.uniform(0.5, 3.0, N)
CLASSES = (RNG.uniform(size=N) < ndtr(1.5 * LATENT)).astype(float)
COUNTS = RNG.poisson(EXPOSURE * np.exp(LATENT)).astype(float)
SUCCESSES = RNG.binomial(5, expit(LATENT)).astype(float)
REALS = LATENT + 0.2 * RNG.standard_normal(N)
OUTLIERS = REALS + np.where(np.arange(N) % 7 == 3, 4.0, 0.0)
KERNEL = SquaredExponential(np.array([0.9, 2.0]), 1.4) + Constant(0.5)

ENGINES = {
    "exact": (lambda: ExactInference(X, REALS), Gaussian(0.1), REALS, ONE),
    "ep, probit": (lambda: EPInference(X, CLASSES, ONE), Probit(), CLASSES, ONE),
    "ep, logit": (lambda: EPInference(X, CLASSES, ONE), Logit(), CLASSES, ONE),
    "ep, poisson": (lambda: EPInference(X, COUNTS, EXPOSURE), Poisson(), COUNTS, EXPOSURE),
    "laplace, probit": (lambda: LaplaceInference(X, CLASSES, ONE), Probit(), CLASSES, ONE),
    "laplace, logit": (lambda: LaplaceInference(X, CLASSES, ONE), Logit(), CLASSES, ONE),
    "laplace, binomial": (lambda: LaplaceInference(X, SUCCESSES, 5 * ONE), Binomial(), SUCCESSES, 5 * ONE),
    "laplace, poisson": (lambda: LaplaceInference(X, COUNTS, EXPOSURE), Poisson(), COUNTS, EXPOSURE),
    "laplace, negative binomial": (
        lambda: LaplaceInference(X, COUNTS, EXPOSURE),
        NegativeBinomial(2.0),
        COUNTS,
        EXPOSURE,
    ),
    "laplace, gamma": (lambda: LaplaceInference(X, np.exp(REALS), ONE), Gamma(2.0), np.exp(REALS), ONE),
    "laplace, student-t": (lambda: LaplaceInference(X, OUTLIERS, ONE), StudentT(3.0, 0.2), OUTLIERS, ONE),
}
each_engine = pytest.mark.parametrize("name", ENGINES)


@pytest.fixture(autouse=True)
def _one_thread():
    with blas_threads_for(N):
        yield


@each_engine
def test_evidence_and_posterior_report_the_same_number(name):
    make, likelihood, *_ = ENGINES[name]
    engine = make()
    assert_allclose(engine.infer(KERNEL, likelihood).log_evidence, make().evidence(KERNEL, likelihood).value, rtol=1e-9)
    assert engine.infer(KERNEL, likelihood).converged


@each_engine
def test_gradient_has_an_entry_for_every_parameter(name):
    make, likelihood, *_ = ENGINES[name]
    evidence = make().evidence(KERNEL, likelihood)
    assert evidence.gradient.shape == (KERNEL.log_params.size + likelihood.log_params.size,)
    assert np.all(np.isfinite(evidence.gradient))


@each_engine
def test_answers_do_not_depend_on_the_questions_before(name):
    """After a detour through other hyperparameters: to the tolerance of the iterations; a fresh engine exactly."""
    make, likelihood, *_ = ENGINES[name]
    first = make().evidence(KERNEL, likelihood)
    engine = make()
    for shift in (1.0, -1.0):
        engine.evidence(KERNEL.with_log_params(KERNEL.log_params + shift), likelihood)
    assert_allclose(engine.evidence(KERNEL, likelihood).value, first.value, rtol=1e-8)
    fresh = engine.stateless()
    fresh.evidence(KERNEL.with_log_params(KERNEL.log_params + 1.0), likelihood)
    assert fresh.evidence(KERNEL, likelihood).value == engine.stateless().evidence(KERNEL, likelihood).value


@pytest.mark.parametrize("make", [EPInference, LaplaceInference], ids=["ep", "laplace"])
@pytest.mark.parametrize("kernel", [KERNEL, Matern52(np.array([0.9, 2.0]), 1.4) + Linear(0.3)], ids=["se", "matern"])
def test_every_engine_is_exact_for_gaussian_noise(make, kernel):
    exact, other = ExactInference(X, REALS), make(X, REALS, ONE)
    expected, found = exact.infer(kernel, Gaussian(0.1)), other.infer(kernel, Gaussian(0.1))
    assert_allclose(found.log_evidence, expected.log_evidence, rtol=1e-8)
    assert_allclose(found.cavity_mean, expected.cavity_mean, atol=1e-7)
    assert_allclose(found.cavity_var, expected.cavity_var, rtol=1e-6)
    for one, two in ((found.posterior.at(X + 0.2), expected.posterior.at(X + 0.2)),):
        assert_allclose(one.mean, two.mean, atol=1e-8)
        assert_allclose(one.var, two.var, rtol=1e-7)
        assert_allclose(one.mean_gradient, two.mean_gradient, atol=1e-7)
        assert_allclose(one.var_gradient, two.var_gradient, atol=1e-7)
    gradient = other.evidence(kernel, Gaussian(0.1)).gradient
    assert_allclose(gradient, exact.evidence(kernel, Gaussian(0.1)).gradient[: gradient.size], atol=1e-6)


def test_known_noise_has_cavities_of_its_own():
    """Rasmussen & Williams (2006), equation 5.12, with a variance for each observation."""
    variances = np.linspace(0.05, 0.5, N)
    inferred = ExactInference(X, REALS).infer(KERNEL, Gaussian(variances))
    K = KERNEL.between(X, X).K
    for i in (0, 7, N - 1):
        rest = np.arange(N) != i
        A = K[np.ix_(rest, rest)] + np.diag(variances[rest])
        k = K[i, rest]
        assert_allclose(inferred.cavity_mean[i], k @ np.linalg.solve(A, REALS[rest]), atol=1e-8)
        assert_allclose(inferred.cavity_var[i], K[i, i] - k @ np.linalg.solve(A, k), rtol=1e-7)


@each_engine
def test_cavities_match_refits_without_the_point(name):
    """Exactly for exact inference; for EP and Laplace up to how the other sites would move."""
    make, likelihood, y, size = ENGINES[name]
    inferred = make().infer(KERNEL, likelihood)
    assert np.all(inferred.cavity_var > 0)
    assert np.all(np.isfinite(inferred.cavity_mean))
    kind = type(make())
    latent = []
    for i in range(N):
        rest = np.arange(N) != i
        sizes = () if kind is ExactInference else (size[rest],)
        at = kind(X[rest], y[rest], *sizes).infer(KERNEL, likelihood).posterior.at(X[[i]])
        latent.append((at.mean[0], at.var[0]))
    mean, var = np.array(latent).T
    width = np.sqrt(var)
    if kind is ExactInference:
        assert_allclose(inferred.cavity_mean, mean, atol=1e-8)
        assert_allclose(inferred.cavity_var, var, rtol=1e-7)
    elif kind is EPInference:
        assert np.max(np.abs(inferred.cavity_mean - mean) / width) < 0.25
        assert_allclose(inferred.cavity_var, var, rtol=0.25)
    elif likelihood.is_log_concave:
        assert np.max(np.abs(inferred.cavity_mean - mean) / width) < 0.3
        assert_allclose(inferred.cavity_var, var, rtol=0.3)
    else:
        # A robust posterior has several modes, and a point left out may tip it into another one.
        assert np.median(np.abs(inferred.cavity_mean - mean) / width) < 0.1


@each_engine
def test_identities_at_the_training_points_equal_the_general_path(name):
    make, likelihood, *_ = ENGINES[name]
    posterior = make().infer(KERNEL, likelihood).posterior
    assert (posterior.site_var is None) == (name == "laplace, student-t")
    identity, general = posterior.at_support(), posterior.at(X)
    assert_allclose(identity.mean, general.mean, atol=1e-9)
    assert_allclose(identity.var, general.var, rtol=1e-6)
    assert_allclose(identity.mean_gradient, general.mean_gradient, atol=1e-8)
    assert_allclose(identity.var_gradient, general.var_gradient, atol=1e-7)
    assert_allclose(identity.var_hessian, general.var_hessian, atol=1e-6)
    rows = np.array([2, 9, 17])
    chosen = posterior.at_support(rows)
    assert_allclose(chosen.var, general.var[rows], rtol=1e-6)
    assert_allclose(chosen.var_gradient, general.var_gradient[rows], atol=1e-7)
    for delta in (1e-5, 0.4):
        for one, two in zip(identity.step(1, delta), general.step(1, delta), strict=True):
            assert_allclose(one, two, rtol=1e-5, atol=1e-8 * delta + 1e-11)


def test_vanishing_site_precisions_take_the_general_path():
    """Sites that say next to nothing have no variance that the identities could divide by."""
    y = (X[:, 0] > 0).astype(float)
    kernel = SquaredExponential(np.array([2.0, 9.0]), 1e6)
    inferred = LaplaceInference(X, y, ONE).infer(kernel, Logit())
    K = kernel.between(X, X).K
    W = -Logit().derivatives(y, K @ inferred.posterior.weights, ONE).second
    assert (inferred.posterior.site_var is None) == bool(np.any(W * np.diagonal(K) <= LEAST_PRECISION))
    at = inferred.posterior.at_support()
    assert np.all(np.isfinite(at.mean))
    assert np.all(np.isfinite(at.var_gradient))


@pytest.mark.parametrize("level", [1.0, 1e2, 1e4, 1e6])
@pytest.mark.parametrize("name", [name for name in ENGINES if name != "exact"])
def test_weights_predict_the_latent_values_whatever_the_prior_of_the_level(name, level):
    """A level of variance 1e6 multiplies every error of the weights by that much.

    At the training points the predicted mean is the mode (Laplace) or the mean of the tilted distribution (EP), and the
    observed rate or share is met on average whatever the prior says.
    """
    make, likelihood, y, size = ENGINES[name]
    kernel = SquaredExponential(np.array([0.9, 2.0]), 1.4) + Constant(level)
    inferred = make().infer(kernel, likelihood)
    f = inferred.posterior.at(X).mean
    if isinstance(make(), EPInference):
        expected = likelihood.tilted_moments(y, inferred.cavity_mean, inferred.cavity_var, size).mean
        assert_allclose(f, expected, atol=1e-4)
    else:
        # The gradient of log p(y | f) at f has to be K^-1 f; its sum is the level's own equation.
        gradient = likelihood.derivatives(y, f, size).first
        assert_allclose(gradient, inferred.posterior.weights, atol=1e-4)


def test_covariance_of_the_posterior_is_positive_semidefinite():
    for make, likelihood, *_ in ENGINES.values():
        covariance = make().infer(KERNEL, likelihood).posterior.covariance(X + 0.1)
        assert np.linalg.eigvalsh(covariance).min() > -1e-8


def test_observations_pull_the_posterior_in():
    """Log-concave observations never leave a point more uncertain than the prior did."""
    for name, (make, likelihood, *_) in ENGINES.items():
        if name != "laplace, student-t":
            inferred = make().infer(KERNEL, likelihood)
            assert np.all(inferred.posterior.at(X).var < inferred.cavity_var)
            assert np.all(inferred.cavity_var <= KERNEL.diag(X) * (1 + 1e-9))


def test_a_fresh_ep_engine_starts_always_from_the_same_sites_and_keeps_the_evidence():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(40, 2))
    y, kernel = (X[:, 0] > 0.2) * 1.0, SquaredExponential(np.array([1.0, 2.0]), 1.5)
    engine = EPInference(X, y, np.ones(40))
    engine.evidence(kernel, Probit())
    fresh = engine.stateless()
    one, other = SquaredExponential(np.array([0.8, 1.5]), 2.0), SquaredExponential(np.array([3.0, 1.0]), 0.5)
    first = fresh.evidence(one, Probit())
    fresh.evidence(other, Probit())
    again = fresh.evidence(one, Probit())
    assert again.value == first.value
    assert_array_equal(again.gradient, first.gradient)
    truth = EPInference(X, y, np.ones(40)).evidence(one, Probit())
    assert first.value == pytest.approx(truth.value, abs=1e-5)
    assert_allclose(first.gradient, truth.gradient, rtol=5e-3)
    assert fresh.infer(one, Probit()).n_iterations < EPInference(X, y, np.ones(40)).infer(one, Probit()).n_iterations
