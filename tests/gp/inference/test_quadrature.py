"""Inference from two and three observations, against the true integrals and against dense forms of the same methods.

The truth is a sum over a lattice of latent values, with SciPy's densities. That EP and Laplace's method miss it is in
their nature; `QUALITY` says by how much. The same method by other means (a general optimiser and numerical second
derivatives; sequential EP with explicit inverses and moments by sums) has to agree to many digits.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, logsumexp, ndtr

from gpsift._utils.rows import Rows
from gpsift.gp.inference.ep import EPInference
from gpsift.gp.inference.laplace import LaplaceInference
from gpsift.gp.sparse import Sparse
from gpsift.gp.sparse.engine import local_rows
from gpsift.gp.sparse.variational import VariationalEngine
from gpsift.kernels import Constant, SquaredExponential
from gpsift.likelihoods import Binomial, Gamma, Likelihood, Logit, NegativeBinomial, Poisson, Probit, StudentT

X = np.array([[0.0], [0.8], [1.9]])
X_NEW = np.array([[1.2]])
KERNEL = SquaredExponential(np.array([1.1]), 1.3) + Constant(0.4)
# Latent values at the new point; sums over them run over a normal density or one as smooth.
F_NEW = np.linspace(-11.0, 11.0, 441)


@dataclass(frozen=True)
class Case:
    """Three observations, of which the first two are a case of their own, and one to come at `X_NEW`."""

    likelihood: Likelihood
    scipy_of: Any  # SciPy's distribution given f and size
    y: np.ndarray
    size: np.ndarray
    y_new: np.ndarray  # values that the new observation may take,
    y_weights: np.ndarray  # and weights for sums over them
    size_new: float = 1.0

    def log_density(self, y, f, size):
        distribution = self.scipy_of(f, size)
        return distribution.logpmf(y) if self.likelihood.is_discrete else distribution.logpdf(y)

    def log_term(self, i, f):
        """log p(y_i | f); i may be a slice."""
        return self.log_density(self.y[i], f, self.size[i])


def counts(stop):
    return np.arange(float(stop)), np.ones(stop)


def positive_numbers():
    u = np.linspace(-12.0, 9.0, 421)
    return np.exp(u), np.exp(u) * (u[1] - u[0])


def real_numbers():
    u = np.linspace(-8.0, 8.0, 321)
    return np.sinh(u), np.cosh(u) * (u[1] - u[0])


ONES, EXPOSURE, SOME, FEW = np.ones(3), np.array([0.5, 2.0, 1.0]), np.array([0.0, 4.0, 2.0]), np.array([5.0, 9.0, 4.0])
PLAIN, ODD = np.array([0.3, -0.4, 1.1]), np.array([0.3, 4.5, 0.2])
CASES = {
    "probit": Case(Probit(), lambda f, _: stats.bernoulli(ndtr(f)), np.array([1.0, 0.0, 1.0]), ONES, *counts(2)),
    "logit": Case(Logit(), lambda f, _: stats.bernoulli(expit(f)), np.array([1.0, 1.0, 0.0]), ONES, *counts(2)),
    "binomial": Case(
        Binomial(), lambda f, n: stats.binom(n, expit(f)), np.array([3.0, 9.0, 1.0]), FEW, *counts(7), size_new=6.0
    ),
    "poisson": Case(Poisson(), lambda f, e: stats.poisson(e * np.exp(f)), SOME, EXPOSURE, *counts(200), size_new=1.5),
    "negative binomial": Case(
        NegativeBinomial(1.7),
        lambda f, e: stats.nbinom(1.7, 1.7 / (1.7 + e * np.exp(f))),
        SOME,
        EXPOSURE,
        *counts(400),
        size_new=1.5,
    ),
    "gamma": Case(
        Gamma(2.4), lambda f, _: stats.gamma(2.4, scale=np.exp(f) / 2.4), PLAIN + 1.4, ONES, *positive_numbers()
    ),
    "student-t": Case(StudentT(4.0, 0.5), lambda f, _: stats.t(4.0, f, 0.5), PLAIN, ONES, *real_numbers()),
    "student-t, outlier": Case(StudentT(4.0, 0.5), lambda f, _: stats.t(4.0, f, 0.5), ODD, ONES, *real_numbers()),
}
WITH_EP = ("probit", "logit", "binomial", "poisson")
LOG_CONCAVE = [name for name in CASES if CASES[name].likelihood.is_log_concave]
METHODS = [
    *((name, "ep") for name in WITH_EP),
    *((name, "laplace") for name in CASES),
    *((name, "variational") for name in LOG_CONCAVE),
]


class Quality(NamedTuple):
    """Largest distance from the truth, about one and a half times what these cases show."""

    log_evidence: float  # nats
    latent_mean: float  # true standard deviations
    latent_sd: float  # relative
    total_variation: float  # of the new observation's distribution
    mean: float  # of the new observation, in its standard deviations
    sd: float  # relative


QUALITY = {
    "ep": Quality(2.5e-3, 1.2e-3, 8e-3, 1.3e-2, 1.2e-2, 0.08),
    "laplace": Quality(0.05, 0.4, 0.06, 0.09, 0.2, 0.25),
    "variational": Quality(0.03, 0.03, 0.05, 0.05, 0.05, 0.15),
    # The mode of a Student-t says less of its mass; with an outlier there are two modes.
    "laplace, student-t": Quality(0.4, 0.45, 0.5, 0.1, 0.25, 0.1),
}


def quality(name, method):
    return QUALITY["laplace, student-t" if name.startswith("student-t") else method]


each_size = pytest.mark.parametrize("n", [2, 3])
each_case = pytest.mark.parametrize("name", CASES)
each_method = pytest.mark.parametrize(("name", "method"), METHODS, ids=[", ".join(both) for both in METHODS])


def prior(n):
    """Covariance of the latent values, and f_new given f: coefficients and the variance around them."""
    K, k = KERNEL.between(X[:n], X[:n]).K, KERNEL.between(X_NEW, X[:n]).K[0]
    coefficients = np.linalg.solve(K, k)
    return K, coefficients, KERNEL.diag(X_NEW)[0] - k @ coefficients


class Posterior(NamedTuple):
    """Moments of the latent values at the observations, (n,), and weights for sums over the new one, at `F_NEW`."""

    log_evidence: float
    mean: np.ndarray
    var: np.ndarray
    new: np.ndarray


def normal_at_new(mean, var):
    """Weights of the latent values `F_NEW` under a normal distribution."""
    return stats.norm.pdf(F_NEW, mean, np.sqrt(var)) * (F_NEW[1] - F_NEW[0])


@cache
def truth(name, n, spacing=0.2):
    """Sums over a lattice in whitened coordinates, turned so that the mean of f_new given f moves along the first."""
    case = CASES[name]
    K, coefficients, rest = prior(n)
    L = np.linalg.cholesky(K)
    turn = np.linalg.qr(np.column_stack([L.T @ coefficients, np.eye(n)[:, 1:]]))[0]
    z = np.arange(-7.6, 7.6 + spacing, spacing)
    lattice = np.array(np.meshgrid(*[z] * n, indexing="ij"))
    f = np.tensordot(L @ turn, lattice, axes=1)
    log_terms = np.sum(stats.norm.logpdf(lattice) + np.log(spacing), axis=0)
    log_terms += sum(case.log_term(i, f[i]) for i in range(n))
    log_evidence = logsumexp(log_terms)
    share = np.exp(log_terms - log_evidence).reshape(z.size, -1)
    f = f.reshape(n, *share.shape)
    mean = np.sum(share * f, axis=(1, 2))
    var = np.sum(share * (f - mean[:, None, None]) ** 2, axis=(1, 2))
    new_means = (coefficients @ L @ turn)[0] * z
    new = share.sum(axis=1) @ np.array([normal_at_new(new_mean, rest) for new_mean in new_means])
    return Posterior(log_evidence, mean, var, new)


def variational_engine(X, y, size, points=None):
    """With these inducing points, or one in every row."""
    choice, points = Sparse(), X if points is None else points
    return VariationalEngine(local_rows(Rows(X, y, size=size), choice), X, points, choice)


ENGINES = {"ep": EPInference, "laplace": LaplaceInference, "variational": variational_engine}


@cache
def inferred(name, method, n):
    """The package's answer, and its latent mean and variance at the new point."""
    case = CASES[name]
    result = ENGINES[method](X[:n], case.y[:n], case.size[:n]).infer(KERNEL, case.likelihood)
    assert result.converged
    here, new = result.posterior.at(X[:n]), result.posterior.at(X_NEW)
    return Posterior(result.log_evidence, here.mean, here.var, normal_at_new(new.mean, new.var)), new.mean, new.var


@cache
def prediction(name, method, n):
    """The density of the new observation at the values of the case, its mean and variance; the truth if no method."""
    case, size = CASES[name], np.full_like(F_NEW, CASES[name].size_new)
    weights = truth(name, n).new if method is None else inferred(name, method, n)[0].new
    given = case.scipy_of(F_NEW, size)
    mean = given.mean() @ weights
    density = np.exp(case.log_density(case.y_new[:, None], F_NEW, size)) @ weights
    return density, mean, (given.var() + (given.mean() - mean) ** 2) @ weights


@each_size
@each_case
def test_the_lattice_is_fine_enough(name, n):
    """Errors fall by a factor of 30 or more from the coarser lattice to the one that is used."""
    fine, coarse = truth(name, n), truth(name, n, spacing=0.25)
    assert_allclose(fine.log_evidence, coarse.log_evidence, atol=1e-7)
    assert_allclose(fine.mean, coarse.mean, atol=1e-7)
    assert_allclose(fine.var, coarse.var, rtol=1e-6)
    assert_allclose(fine.new.sum(), 1.0, rtol=1e-10)
    assert_allclose(np.sum(CASES[name].y_weights * prediction(name, None, n)[0]), 1.0, rtol=1e-6)


@each_size
@each_method
def test_evidence_is_near_the_integral(name, method, n):
    found, expected = inferred(name, method, n)[0].log_evidence, truth(name, n).log_evidence
    assert_allclose(found, expected, atol=quality(name, method).log_evidence)


@pytest.mark.parametrize("points", [X[:1], X_NEW, X[:2], X], ids=["a row", "no row", "two rows", "all rows"])
@each_size
@pytest.mark.parametrize("name", LOG_CONCAVE)
def test_variational_bound_stays_below_the_integral(name, n, points):
    case = CASES[name]
    engine = variational_engine(X[:n], case.y[:n], case.size[:n], points)
    assert engine.evidence(KERNEL, case.likelihood).value < truth(name, n).log_evidence


@each_size
@each_method
def test_latent_posterior_is_near_the_true_one(name, method, n):
    found, expected, allowed = inferred(name, method, n)[0], truth(name, n), quality(name, method)
    assert_allclose((found.mean - expected.mean) / np.sqrt(expected.var), 0.0, atol=allowed.latent_mean)
    assert_allclose(np.sqrt(found.var), np.sqrt(expected.var), rtol=allowed.latent_sd)


@each_size
@each_method
def test_prediction_is_near_the_true_one(name, method, n):
    density, mean, var = prediction(name, method, n)
    true_density, true_mean, true_var = prediction(name, None, n)
    allowed = quality(name, method)
    assert 0.5 * np.sum(CASES[name].y_weights * np.abs(density - true_density)) < allowed.total_variation
    assert_allclose((mean - true_mean) / np.sqrt(true_var), 0.0, atol=allowed.mean)
    assert_allclose(np.sqrt(var), np.sqrt(true_var), rtol=allowed.sd)


@each_size
@each_method
def test_prediction_is_the_average_over_the_latent_value(name, method, n):
    """Given the latent mean and variance, the package's prediction is exact."""
    case, (_, latent_mean, latent_var) = CASES[name], inferred(name, method, n)
    density, mean, var = prediction(name, method, n)
    family = case.likelihood.predictive(latent_mean, latent_var, np.array([case.size_new]))
    assert_allclose(family.mean[0], mean, rtol=1e-8, atol=1e-10)
    assert_allclose(family.var[0], var, rtol=1e-8)
    seen = np.flatnonzero(density > 1e-10)[:: max(1, case.y_new.size // 40)]
    found = [family.log_density(case.y_new[[k]])[0] for k in seen]
    assert_allclose(found, np.log(density[seen]), rtol=1e-8, atol=1e-8)


@each_size
@pytest.mark.parametrize("name", WITH_EP)
def test_ep_comes_nearer_than_laplace(name, n):
    exact = truth(name, n)
    ep, laplace = (inferred(name, method, n)[0] for method in ("ep", "laplace"))
    assert abs(ep.log_evidence - exact.log_evidence) < 0.15 * abs(laplace.log_evidence - exact.log_evidence)
    assert np.abs(ep.mean - exact.mean).max() < 0.05 * np.abs(laplace.mean - exact.mean).max()
    assert np.abs(ep.var - exact.var).max() < 0.25 * np.abs(laplace.var - exact.var).max()


def at_new(n, mean, covariance):
    """Mean and variance of the new latent value when those at the observations are normal."""
    _, coefficients, rest = prior(n)
    return coefficients @ mean, rest + coefficients @ covariance @ coefficients


def log_integral(mean, precision):
    """log of the integral of exp(-(f - mean)^T P (f - mean) / 2 + mean^T P mean / 2), P the precision."""
    precision, mean = np.atleast_2d(precision), np.atleast_1d(mean)
    return 0.5 * (mean @ precision @ mean - np.linalg.slogdet(precision / (2.0 * np.pi))[1])


def curvature(function, f, step=0.01):
    """The second derivative, right to fourth order in the step."""
    near, far = function(f + step) + function(f - step), function(f + 2 * step) + function(f - 2 * step)
    return (16.0 * near - far - 30.0 * function(f)) / (12.0 * step**2)


@each_size
@each_case
def test_laplace_matches_a_general_optimiser(name, n):
    case, (K, *_) = CASES[name], prior(n)
    P = np.linalg.inv(K)

    def negative(f):
        return 0.5 * f @ P @ f - case.log_term(slice(n), f).sum()

    # A Student-t may have several modes: the highest counts.
    starts = [np.zeros(n)] if case.likelihood.is_log_concave else [np.zeros(n), case.y[:n]]
    tight = {"xatol": 1e-9, "fatol": 1e-14}
    best = min((minimize(negative, f, method="Nelder-Mead", options=tight) for f in starts), key=lambda r: r.fun)
    W = -curvature(lambda f: case.log_term(slice(n), f), best.x)
    log_evidence = -best.fun - 0.5 * np.linalg.slogdet(K)[1] - 0.5 * np.linalg.slogdet(P + np.diag(W))[1]
    covariance = np.linalg.inv(P + np.diag(W))
    new_mean, new_var = at_new(n, best.x, covariance)

    found, found_mean, found_var = inferred(name, "laplace", n)
    assert_allclose(found.log_evidence, log_evidence, atol=1e-6)
    assert_allclose(found.mean, best.x, atol=1e-6)
    assert_allclose(found.var, np.diagonal(covariance), rtol=1e-6)
    assert_allclose(found_mean[0], new_mean, atol=1e-6)
    assert_allclose(found_var[0], new_var, rtol=1e-6)


@each_size
@pytest.mark.parametrize("name", WITH_EP)
def test_ep_matches_sequential_ep_with_dense_matrices(name, n):
    """One site after the other; the evidence from the normalisers of all normal distributions involved."""
    case, (K, *_) = CASES[name], prior(n)
    P = np.linalg.inv(K)
    t = np.linspace(-11.0, 11.0, 441)
    tau, nu, log_scale = np.zeros((3, n))

    def cavity(i):
        covariance = np.linalg.inv(P + np.diag(tau))
        mean, var = (covariance @ nu)[i], covariance[i, i]
        precision = 1.0 / var - tau[i]
        return (mean / var - nu[i]) / precision, precision

    for _ in range(40):
        for i in range(n):
            mean, precision = cavity(i)
            f = mean + t / np.sqrt(precision)
            log_terms = case.log_term(i, f) + stats.norm.logpdf(t) + np.log(t[1] - t[0])
            total = logsumexp(log_terms)
            share = np.exp(log_terms - total)
            tilted_mean = share @ f
            tilted_precision = 1.0 / (share @ (f - tilted_mean) ** 2)
            tau[i] = tilted_precision - precision
            nu[i] = tilted_precision * tilted_mean - precision * mean
            log_scale[i] = total + log_integral(mean, precision) - log_integral(tilted_mean, tilted_precision)

    covariance = np.linalg.inv(P + np.diag(tau))
    mean = covariance @ nu
    log_evidence = log_scale.sum() + log_integral(mean, P + np.diag(tau)) - log_integral(np.zeros(n), P)
    new_mean, new_var = at_new(n, mean, covariance)

    found, found_mean, found_var = inferred(name, "ep", n)
    assert_allclose(found.log_evidence, log_evidence, atol=1e-8)
    assert_allclose(found.mean, mean, atol=1e-7)
    assert_allclose(found.var, np.diagonal(covariance), rtol=1e-7)
    assert_allclose(found_mean[0], new_mean, atol=1e-7)
    assert_allclose(found_var[0], new_var, rtol=1e-7)
