"""Inference that iterates, as an engine: EP, and Laplace's method for one latent function or one for each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import take_columns
from gpsift._utils.linalg import NotPositiveDefinite, triangle_gram
from gpsift.gp.inference.coupled import CoupledPosterior
from gpsift.gp.inference.engine import DenseEngine, Inferred, Slope
from gpsift.gp.inference.ep import EPResult, expectation_propagation
from gpsift.gp.inference.exact import Evidence
from gpsift.gp.inference.laplace import TOLERANCE, LaplaceResult, laplace, laplace_gradient
from gpsift.gp.inference.multiclass import MulticlassResult, cavities, multiclass_gradient, multiclass_laplace
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.reference.posterior import LEAST_PRECISION, Posterior, TriangularFactor

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
        X = take_columns(self.X, columns)
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
        X = take_columns(self.X, columns)
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
