"""Inference on one data set: the same three questions to exact inference, EP and Laplace's method.

An engine is made once for the data and asked many times, with other hyperparameters; what it learns from one answer it
may use for the next (workspaces, sites, modes).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from gpsift.arrays import Array, columns_of, like, namespace, rows_of, to_numpy
from gpsift.inference.coupled import CoupledPosterior
from gpsift.inference.ep import EPResult, expectation_propagation
from gpsift.inference.exact import Evidence, exact_evidence, exact_posterior, log_evidence_of
from gpsift.inference.inplace import InPlaceEvidence, LogParamsEvidence, Solution
from gpsift.inference.laplace import TOLERANCE, LaplaceResult, laplace, laplace_gradient
from gpsift.inference.level import level_evidence
from gpsift.inference.multiclass import MulticlassResult, cavities, multiclass_gradient, multiclass_laplace
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.linalg import (
    NotPositiveDefinite,
    add_diagonal,
    cholesky_solve,
    inverse_from_cholesky,
    is_numpy,
    jittered_cholesky,
    triangle_gram,
)
from gpsift.posterior import Posterior, TriangularFactor

# The identities at the training points divide by site precisions; below this share of the prior's they lose digits.
LEAST_PRECISION = 1e-4
# How far the sites of expectation propagation may still move, in widths of their cavities: for a posterior, for the
# evidence with its slopes, and where less will do. The evidence is flat around the fixed point. On 300 rows it was
# right to 5e-10 nats and its slopes to 8e-5 with the second, to 2e-5 and 0.013 with the third.
EP_TOLERANCE = 1e-9
EP_SEARCH_TOLERANCE = 1e-5
ROUGH_TOLERANCE = 1e-3
# The evidence alone is flat, and may be found with this times the tolerance: to 1e-3 nats at most.
EP_VALUE_ALONE = 10.0
# What Newton's method may leave before its last step where less will do, as a share of the height, and for a value
# alone times this.
ROUGH_LEFT = 1e-6
VALUE_ALONE = 100.0
# Variance that a covariance matrix of low rank may leave out at each point, in tolerances; for a value alone it is the
# tolerance of that. It changes the log density there by a quarter of that at most; on 700 rows 1e-5 changed the log
# evidence by 2e-4 nats, and 1e-4 by 2e-3, with which searches ended in steps from one rank to the next.
LEFT_OUT = 10.0


class LatentPosterior(Protocol):
    """What all posteriors of latent functions have in common: `gpsift.posterior.Posterior` and those of its kind."""

    @property
    def kernel(self) -> Kernel: ...
    def at(self, X: Array) -> Any: ...
    def covariance(self, X: Array) -> Array: ...


@dataclass(frozen=True, eq=False)
class Inferred:
    """A posterior, and what leaving each observation out makes of it."""

    posterior: LatentPosterior
    log_evidence: float
    # Latent moments at each point given all other observations, (n,); (n, C) and (n, C, C) for C classes.
    cavity_mean: np.ndarray
    cavity_var: np.ndarray
    converged: bool = True
    n_iterations: int = 0
    jitter: float = 0.0
    n_inducing: int = 0  # inducing points that stand for the rows; 0 where none do
    n_blocks: int = 0  # blocks of rows that are each inferred by their neighbours; 0 where none are

    @property
    def is_sparse(self) -> bool:
        """Whether something stands for the rows."""
        return bool(self.n_inducing or self.n_blocks)


class Engine(ABC):
    """A way of inference, bound to data."""

    name: str

    @property
    def has_exact_slopes(self) -> bool:
        """Whether gradients of the evidence are right to rounding; those of an iteration are as right as it ends."""
        return False

    @abstractmethod
    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        """Log evidence and its gradient for the log parameters of the kernel, then of the likelihood."""

    @abstractmethod
    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        """The posterior."""

    def evidence_by_log_params(self, kernel: Kernel, likelihood: Likelihood) -> LogParamsEvidence:
        """The same as a function of these log parameters, to be asked many times."""
        n_kernel = kernel.log_params.size

        def evidence(log_params: np.ndarray) -> Evidence:
            return self.evidence(
                kernel.with_log_params(log_params[:n_kernel]), likelihood.with_log_params(log_params[n_kernel:])
            )

        return evidence

    def infer_at_rows(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        """The posterior, to be looked at its own rows once: where that is quicker, without what other rows need."""
        return self.infer(kernel, likelihood)

    @abstractmethod
    def fresh(self) -> Self:
        """An engine on the same data whose answers do not depend on what it was asked before."""


class Slope(NamedTuple):
    """Derivative G of the log evidence by the covariance matrix, dL = sum_ij G_ij dK_ij, and weights of the mean.

    Weights are (n,), or (n, C) for C classes.
    """

    G: np.ndarray
    weights: np.ndarray


class DenseEngine(Engine):
    """A way of inference that has the covariance matrix of all rows."""

    X: Array

    @abstractmethod
    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """Without its gradient, at a third of the price."""

    @abstractmethod
    def slope(self, kernel: Kernel, likelihood: Likelihood) -> Slope:
        """How the evidence reacts to the covariance matrix."""

    @abstractmethod
    def on_columns(self, columns: Sequence[int]) -> Self:
        """An engine on the same rows that sees some of the columns."""

    @abstractmethod
    def on_rows(self, rows: np.ndarray) -> Self:
        """An engine on some of the rows."""

    def rough(self) -> Self:
        """An engine on the same data whose answers may have fewer digits, for searches that other ones follow."""
        return self


class ExactEngine(DenseEngine):
    """Closed form, for Gaussian noise."""

    name = "exact"

    def __init__(self, X: Array, y: Array, *, rough: bool = False):
        self.X, self.y = X, y
        self._rough = rough
        self._twin: InPlaceEvidence | None = None

    @property
    def has_exact_slopes(self) -> bool:
        return not self._rough

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        evidence = self._evidence(kernel, self._noise_var(likelihood))
        if likelihood.params:
            return evidence
        return Evidence(evidence.value, evidence.gradient[:-1], evidence.jitter)

    def _evidence(self, kernel: Kernel, noise_var: Array | float) -> Evidence:
        """By the quickest form that there is for the kernel and the inputs; the noise comes last in the gradient."""
        if self._sees_nothing:
            return level_evidence(kernel, self.X, self.y, noise_var)
        twin = self._twin_for(kernel)
        return exact_evidence(kernel, self.X, self.y, noise_var) if twin is None else twin(kernel, noise_var)

    def evidence_by_log_params(self, kernel: Kernel, likelihood: Likelihood) -> LogParamsEvidence:
        twin = None if self._sees_nothing or not likelihood.params else self._twin_for(kernel)
        return super().evidence_by_log_params(kernel, likelihood) if twin is None else twin.by_log_params(kernel)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        xp = namespace(self.y)
        noise_var = xp.zeros_like(self.y) + self._noise_var(likelihood)
        posterior, jitter = exact_posterior(kernel, self.X, self.y, noise_var)
        log_evidence = log_evidence_of(self.y, posterior.weights, posterior.L)
        return self._inferred(Solution(posterior, log_evidence, xp.linalg.diagonal(posterior.M)), jitter)

    def infer_at_rows(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        twin = None if self._sees_nothing else self._twin_for(kernel)
        solution = None if twin is None else twin.solution(kernel, np.zeros_like(self.y) + self._noise_var(likelihood))
        return self.infer(kernel, likelihood) if solution is None else self._inferred(solution)

    def _inferred(self, solution: Solution, jitter: float = 0.0) -> Inferred:
        # Rasmussen & Williams (2006), equation 5.12, for the latent value: without the noise of the point itself.
        posterior, Q = solution.posterior, solution.Q
        return Inferred(
            posterior=posterior,
            log_evidence=solution.log_evidence,
            cavity_mean=to_numpy(self.y - posterior.weights / Q),
            cavity_var=to_numpy(namespace(Q).clip(1.0 / Q - posterior.site_var, 0.0, None)),
            jitter=jitter,
        )

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        if self._sees_nothing:
            return level_evidence(kernel, self.X, self.y, self._noise_var(likelihood)).value
        twin = self._twin_for(kernel)
        value = None if twin is None else twin.value(kernel, self._noise_var(likelihood))
        if value is not None:
            return value
        L, alpha = self._solved(kernel, likelihood)
        return log_evidence_of(self.y, alpha, L)

    def slope(self, kernel: Kernel, likelihood: Likelihood) -> Slope:
        L, alpha = self._solved(kernel, likelihood)
        return Slope(to_numpy(0.5 * (alpha[:, None] * alpha - inverse_from_cholesky(L))), to_numpy(alpha))

    def on_columns(self, columns: Sequence[int]) -> Self:
        return type(self)(columns_of(self.X, columns), self.y)

    def on_rows(self, rows: np.ndarray) -> Self:
        return type(self)(rows_of(self.X, rows), rows_of(self.y, rows))

    def fresh(self) -> Self:
        # For a sampler that accepts by the evidence: its steps stay reversible whatever the digits of the slopes.
        return type(self)(self.X, self.y, rough=True)

    @property
    def _sees_nothing(self) -> bool:
        return self.X.shape[1] == 0 and is_numpy(self.X)

    def _twin_for(self, kernel: Kernel) -> InPlaceEvidence | None:
        if InPlaceEvidence.serves(kernel, self.X):
            self._twin = self._twin or InPlaceEvidence(self.X, self.y, rough=self._rough)
            return self._twin
        return None

    def _solved(self, kernel: Kernel, likelihood: Likelihood) -> tuple[Array, Array]:
        """The factor L of the covariance A of the observations, and A^-1 y."""
        L, _ = jittered_cholesky(add_diagonal(kernel.between(self.X, self.X).K, self._noise_var(likelihood)))
        return L, cholesky_solve(L, self.y)

    def _noise_var(self, likelihood: Likelihood) -> Array | float:
        noise_var = likelihood.noise_var
        return like(self.y, np.asarray(noise_var)) if likelihood.knows_noise else float(noise_var)


class Memory:
    """Where the last answer ended, from which the next one starts; engines on other columns of the rows share it."""

    def __init__(self, last: Any = None):
        self.last = last


class IteratedEngine(DenseEngine):
    """Inference of one latent function by iteration; each answer starts from where the last one ended if `warm`."""

    TOLERANCE: ClassVar[float]  # of answers, and of those that may have fewer digits
    ROUGH: ClassVar[float]

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        size: np.ndarray,
        *,
        warm: bool = True,
        memory: Memory | None = None,
        tolerance: float | None = None,
    ):
        self.X, self.y, self.size, self.warm = X, y, size, warm
        self.tolerance = self.TOLERANCE if tolerance is None else tolerance
        self._memory = memory or Memory()

    def on_columns(self, columns: Sequence[int]) -> Self:
        X = columns_of(self.X, columns)
        return type(self)(X, self.y, self.size, warm=self.warm, memory=self._memory, tolerance=self.tolerance)

    def on_rows(self, rows: np.ndarray) -> Self:
        return type(self)(self.X[rows], self.y[rows], self.size[rows], warm=self.warm, tolerance=self.tolerance)

    def rough(self) -> Self:
        return type(self)(self.X, self.y, self.size, memory=Memory(self._memory.last), tolerance=self.ROUGH)


class EPEngine(IteratedEngine):
    """Expectation propagation; each answer starts from the sites of the last one if `warm`."""

    name = "ep"
    TOLERANCE, ROUGH = EP_SEARCH_TOLERANCE, ROUGH_TOLERANCE

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        pairs = kernel.between(self.X, self.X)
        result = self._run(pairs.K, likelihood, self.tolerance)
        return Evidence(result.log_evidence, pairs.log_gradient(_ep_gradient(result)), 0.0)

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        return self._run(kernel.between(self.X, self.X).K, likelihood, EP_VALUE_ALONE * self.tolerance).log_evidence

    def slope(self, kernel: Kernel, likelihood: Likelihood) -> Slope:
        result = self._run(kernel.between(self.X, self.X).K, likelihood, self.tolerance)
        return Slope(_ep_gradient(result), result.weights)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        K = kernel.between(self.X, self.X).K
        result = self._run(K, likelihood, EP_TOLERANCE)
        tau = result.sites.tau
        factor = TriangularFactor(result.L, np.sqrt(tau))
        return Inferred(
            posterior=Posterior(kernel, self.X, result.weights, (factor,), _site_var(K, tau)),
            log_evidence=result.log_evidence,
            cavity_mean=result.cavity_mean,
            cavity_var=result.cavity_var,
            converged=result.converged,
            n_iterations=result.n_sweeps,
        )

    def fresh(self) -> Self:
        # Always from the sites of the last answer here, which is near, and to fewer digits: half the sweeps. A sampler
        # that accepts by the evidence stands slopes that are right to 0.013: its steps stay reversible.
        memory = Memory(self._memory.last)
        return type(self)(self.X, self.y, self.size, warm=False, memory=memory, tolerance=ROUGH_TOLERANCE)

    def _run(self, K: np.ndarray, likelihood: Likelihood, tolerance: float) -> EPResult:
        last = self._memory.last
        result = expectation_propagation(K, self.y, self.size, likelihood, start=last, tolerance=tolerance)
        if self.warm:
            self._memory.last = result.sites if result.converged else None
        return result


class Mode(NamedTuple):
    """Weights and latent values at the mode of the latent posterior."""

    weights: np.ndarray
    latent: np.ndarray


class LaplaceEngine(IteratedEngine):
    """Laplace's method; each answer starts from the mode of the last one if `warm`."""

    name = "laplace"
    TOLERANCE, ROUGH = TOLERANCE, ROUGH_LEFT

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        pairs = kernel.between(self.X, self.X)
        result = self._run(pairs.K, likelihood)
        G, by_param = laplace_gradient(result, self.y, self.size, likelihood)
        return Evidence(result.log_evidence, np.concatenate([pairs.log_gradient(G), by_param]), 0.0)

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        return self._run(kernel.between(self.X, self.X).K, likelihood, VALUE_ALONE * self.tolerance).log_evidence

    def slope(self, kernel: Kernel, likelihood: Likelihood) -> Slope:
        result = self._run(kernel.between(self.X, self.X).K, likelihood)
        return Slope(laplace_gradient(result, self.y, self.size, likelihood)[0], result.weights)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        K = kernel.between(self.X, self.X).K
        result = self._run(K, likelihood)
        W, var = result.curvature.W, result.curvature.var
        # The likelihood as a normal site around the mode: precision W, natural mean W f + gradient.
        # Sites of negative precision (outliers of a Student-t) can make a neighbour's larger than the posterior's;
        # without its observation a point is at most as uncertain as under the prior.
        cavity_var = 1.0 / np.maximum(1.0 / var - W, 1.0 / np.diagonal(K))
        cavity_mean = cavity_var * (result.mode / var - (W * result.mode + result.weights))
        return Inferred(
            posterior=Posterior(kernel, self.X, result.weights, result.curvature.factors, _site_var(K, W)),
            log_evidence=result.log_evidence,
            cavity_mean=cavity_mean,
            cavity_var=cavity_var,
            converged=result.converged,
            n_iterations=result.n_iterations,
        )

    def fresh(self) -> Self:
        return type(self)(self.X, self.y, self.size, warm=False)

    def _run(self, K: np.ndarray, likelihood: Likelihood, tolerance: float | None = None) -> LaplaceResult:
        tolerance = self.tolerance if tolerance is None else tolerance
        last, modes = self._memory.last, [self._from(self._memory.last, K, likelihood, tolerance)]
        if not likelihood.is_log_concave:
            # Several modes: also from nothing, and from a smooth curve through the data.
            smooth = np.linalg.solve(K + np.mean(np.diagonal(K)) * np.eye(len(K)), self.y)
            starts = [smooth] if last is None else [None, smooth]
            modes += [self._mode(K, likelihood, tolerance, start=start) for start in starts]
        best = max(modes, key=lambda result: result.height)
        if not best.converged and last is not None:
            # The weights of smoother functions can mean rates of e^48, from where no step leads up.
            best = self._mode(K, likelihood, tolerance)
        if self.warm:
            self._memory.last = Mode(best.weights, best.mode) if best.converged else None
        return best

    def _from(self, last: Mode | None, K: np.ndarray, likelihood: Likelihood, tolerance: float) -> LaplaceResult:
        """The mode from the last one, or from nothing if that led to where the curvature has no factor."""
        if last is None:
            return self._mode(K, likelihood, tolerance)
        start = {"near": last.latent} if likelihood.is_log_concave else {"start": last.weights}
        try:
            return self._mode(K, likelihood, tolerance, **start)
        except NotPositiveDefinite:
            return self._mode(K, likelihood, tolerance)

    def _mode(
        self, K: np.ndarray, likelihood: Likelihood, tolerance: float, **start: np.ndarray | None
    ) -> LaplaceResult:
        return laplace(K, self.y, self.size, likelihood, tolerance=tolerance, **start)


class MulticlassEngine(DenseEngine):
    """Laplace's method for a softmax; each answer starts from the mode of the last one if `warm`."""

    name = "laplace"

    def __init__(
        self,
        X: np.ndarray,
        y: np.ndarray,
        likelihood: Likelihood,
        *,
        warm: bool = True,
        memory: Memory | None = None,
        tolerance: float = TOLERANCE,
    ):
        self.X, self.y, self.likelihood, self.warm, self.tolerance = X, y, likelihood, warm, tolerance
        self._indicators = likelihood.indicators(y)
        self._memory = memory or Memory()  # of latent values at the mode

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        pairs = kernel.between(self.X, self.X)
        result = self._run(pairs.K, self.tolerance, LEFT_OUT * self.tolerance)
        return Evidence(result.log_evidence, pairs.log_gradient(multiclass_gradient(result)), 0.0)

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        tolerance = VALUE_ALONE * self.tolerance
        return self._run(kernel.between(self.X, self.X).K, tolerance, tolerance).log_evidence

    def slope(self, kernel: Kernel, likelihood: Likelihood) -> Slope:
        result = self._run(kernel.between(self.X, self.X).K, self.tolerance, LEFT_OUT * self.tolerance)
        return Slope(multiclass_gradient(result), result.weights)

    def on_columns(self, columns: Sequence[int]) -> Self:
        X = columns_of(self.X, columns)
        return type(self)(X, self.y, self.likelihood, warm=self.warm, memory=self._memory, tolerance=self.tolerance)

    def on_rows(self, rows: np.ndarray) -> Self:
        return type(self)(self.X[rows], self.y[rows], self.likelihood, warm=self.warm, tolerance=self.tolerance)

    def rough(self) -> Self:
        return type(self)(self.X, self.y, self.likelihood, memory=Memory(self._memory.last), tolerance=ROUGH_LEFT)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> Inferred:
        result = self._run(kernel.between(self.X, self.X).K, self.tolerance)
        curvature = result.curvature
        cavity_mean, cavity_cov = cavities(result, self._indicators)
        return Inferred(
            posterior=CoupledPosterior(kernel, self.X, result.weights, curvature.L, curvature.P, curvature.N),
            log_evidence=result.log_evidence,
            cavity_mean=cavity_mean,
            cavity_var=cavity_cov,
            converged=result.converged,
            n_iterations=result.n_iterations,
        )

    def fresh(self) -> Self:
        return type(self)(self.X, self.y, self.likelihood, warm=False)

    def _run(self, K: np.ndarray, tolerance: float, left_out: float = 0.0) -> MulticlassResult:
        start = self._memory.last
        result = multiclass_laplace(K, self._indicators, start=start, tolerance=tolerance, left_out=left_out)
        if self.warm:
            self._memory.last = result.mode if result.converged else None
        return result


def _ep_gradient(result: EPResult) -> np.ndarray:
    """At the fixed point only the explicit dependence on K is left (Rasmussen & Williams 2006, equation 5.27)."""
    G = triangle_gram(result.inverse * np.sqrt(result.sites.tau))  # M = S B^-1 S
    np.subtract(np.multiply.outer(result.weights, result.weights), G, out=G)
    G *= 0.5
    return G


def _site_var(K: np.ndarray, precision: np.ndarray) -> np.ndarray | None:
    """1 / precision where the training-point identities can use it."""
    return 1.0 / precision if np.all(precision * np.diagonal(K) > LEAST_PRECISION) else None
