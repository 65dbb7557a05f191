"""The interface of a method of inference: evidence, posterior and derivatives for given hyperparameters.

A method is bound to one data set and evaluated many times, at other hyperparameters. It may use results of one
evaluation for the next: workspaces, sites, modes.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, take_columns
from gpsift._utils.linalg import invert_lower, solve_lower
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.reference.posterior import LEAST_PRECISION

LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Evidence:
    """Log marginal likelihood, its gradient by log hyperparameters, and the jitter of the Cholesky factor.

    The gradient has an entry for each of `kernel.log_params`, and a last one for a noise variance that all points
    share.
    """

    value: float
    gradient: np.ndarray
    jitter: float

    def without_noise(self) -> Evidence:
        """Return the evidence without the derivative by a shared noise variance, for observations of known noise."""
        return Evidence(self.value, self.gradient[:-1], self.jitter)


LogParamsEvidence = Callable[[np.ndarray], Evidence]


@dataclass(frozen=True, eq=False)
class InferenceResult:
    """A posterior, its evidence, and the latent moments at each point without its own observation."""

    posterior: Any  # a `Posterior`, `SoftmaxPosterior` or `BlockPosterior`
    log_evidence: float
    # Latent moments at each point given all other observations, (n,); (n, C) and (n, C, C) for C classes.
    cavity_mean: np.ndarray
    cavity_var: np.ndarray
    converged: bool = True
    n_iterations: int = 0
    jitter: float = 0.0
    n_inducing: int = 0  # inducing points, 0 without these
    n_blocks: int = 0  # blocks of Vecchia's approximation, 0 without these

    @property
    def is_sparse(self) -> bool:
        """Whether the posterior is an approximation by inducing points or blocks."""
        return bool(self.n_inducing or self.n_blocks)


class InferenceMethod(ABC):
    """A method of inference, bound to data."""

    name: str

    @property
    def has_exact_slopes(self) -> bool:
        """Whether gradients of the evidence are exact up to rounding, not up to the tolerance of an iteration."""
        return False

    @abstractmethod
    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        """Return the log evidence and its gradient for the log parameters of the kernel, then of the likelihood."""

    @abstractmethod
    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        """Infer the posterior."""

    def evidence_by_log_params(self, kernel: Kernel, likelihood: Likelihood) -> LogParamsEvidence:
        """Return the evidence as a function of the log parameters of kernel and likelihood, for many evaluations."""
        n_kernel = kernel.log_params.size

        def evidence(log_params: np.ndarray) -> Evidence:
            return self.evidence(
                kernel.with_log_params(log_params[:n_kernel]), likelihood.with_log_params(log_params[n_kernel:])
            )

        return evidence

    def infer_posterior(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        """Infer the posterior, possibly without the leave-one-out moments, which some methods do in less time."""
        return self.infer(kernel, likelihood)

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """Return the log evidence without its gradient, in less time where the method allows it."""
        return self.evidence(kernel, likelihood).value

    @abstractmethod
    def stateless(self) -> Self:
        """Return a method on the same data whose results do not depend on earlier evaluations."""


class Slope(NamedTuple):
    """Derivative G of the log evidence by the covariance matrix, dL = sum_ij G_ij dK_ij, and weights of the mean.

    Weights are (n,), or (n, C) for C classes.
    """

    G: np.ndarray
    weights: np.ndarray


class DenseInference(InferenceMethod):
    """A method of inference with the covariance matrix of all rows."""

    X: Array

    @abstractmethod
    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """Return the log evidence without its gradient, in a third of the time."""

    @abstractmethod
    def slope(self, kernel: Kernel, likelihood: Likelihood) -> Slope:
        """Return the derivative of the evidence by the covariance matrix."""

    @abstractmethod
    def on_columns(self, columns: Sequence[int]) -> Self:
        """Return a method on the same rows with some of the columns."""

    @abstractmethod
    def on_rows(self, rows: np.ndarray) -> Self:
        """Return a method on some of the rows."""

    def low_precision(self) -> Self:
        """Return a method on the same data with less accurate results, for the first of several searches."""
        return self


@dataclass(eq=False)
class WarmStart:
    """The end of the last iteration, where the next one starts; methods on other columns share it."""

    last: Any = None


@dataclass(frozen=True, eq=False)
class IteratedInference(DenseInference):
    """Inference by iteration; each run starts at the end of the run before if `warm`."""

    X: np.ndarray
    y: np.ndarray
    warm: bool = field(default=True, kw_only=True)
    warm_start: WarmStart = field(default_factory=WarmStart, kw_only=True)
    tolerance: float = field(kw_only=True)

    LOW_PRECISION: ClassVar[float]  # the tolerance of `low_precision`
    VALUE_ALONE: ClassVar[float]  # factor of the tolerance for the evidence without its gradient

    @abstractmethod
    def _run(self, K: np.ndarray, likelihood: Likelihood, tolerance: float) -> Any:
        """Iterate to the posterior under the prior covariance K; the result has weights and a log evidence."""

    @abstractmethod
    def _gradient(self, result: Any, likelihood: Likelihood) -> tuple[np.ndarray, np.ndarray]:
        """Return G with dL = sum(G o dK), and the gradient for the log parameters of the likelihood."""

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        pairs = kernel.between(self.X, self.X)
        result = self._run(pairs.K, likelihood, self.tolerance)
        G, by_param = self._gradient(result, likelihood)
        return Evidence(result.log_evidence, np.append(pairs.log_gradient(G), by_param), 0.0)

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        K = kernel.between(self.X, self.X).K
        return self._run(K, likelihood, self.VALUE_ALONE * self.tolerance).log_evidence

    def slope(self, kernel: Kernel, likelihood: Likelihood) -> Slope:
        result = self._run(kernel.between(self.X, self.X).K, likelihood, self.tolerance)
        return Slope(self._gradient(result, likelihood)[0], result.weights)

    def on_columns(self, columns: Sequence[int]) -> Self:
        return replace(self, X=take_columns(self.X, columns))

    def on_rows(self, rows: np.ndarray) -> Self:
        return replace(self, X=self.X[rows], y=self.y[rows], warm_start=WarmStart())

    def low_precision(self) -> Self:
        return replace(self, warm=True, warm_start=WarmStart(self.warm_start.last), tolerance=self.LOW_PRECISION)

    def stateless(self) -> Self:
        return replace(self, warm=False, warm_start=WarmStart())


@dataclass(frozen=True, eq=False)
class SingleLatentInference(IteratedInference):
    """Iterated inference of one latent function, from targets with trials or exposures."""

    size: np.ndarray

    def on_rows(self, rows: np.ndarray) -> Self:
        return replace(super().on_rows(rows), size=self.size[rows])


def site_var(K: np.ndarray, precision: np.ndarray) -> np.ndarray | None:
    """Return 1 / precision where the identities at training points can use it, else None."""
    return 1.0 / precision if np.all(precision * np.diagonal(K) > LEAST_PRECISION) else None


# Where a site has less than this share of its marginal's precision, 1 - B^-1_ii has too few digits.
LEAST_SHARE = 1e-4


def marginal_variances(
    K: np.ndarray, L: np.ndarray, root: np.ndarray, B_inverse: np.ndarray | None = None
) -> np.ndarray:
    """Return the diagonal of (K^-1 + S^2)^-1, for S = diag(root) and L the Cholesky factor of B = I + S K S.

    S (K^-1 + S^2)^-1 S = I - B^-1, whose diagonal needs a third of the work of K - K S B^-1 S K; that form remains for
    the points whose sites have next to no precision. `B_inverse` is the diagonal of B^-1, where it is known.
    """
    if B_inverse is None:
        B_inverse = np.einsum("ij,ij->j", inverse := invert_lower(L), inverse)
    share = 1.0 - B_inverse
    weak = share < LEAST_SHARE
    var = share / np.where(weak, 1.0, root) ** 2
    if weak.any():
        V = solve_lower(L, root[:, None] * K[:, weak])
        var[weak] = np.diagonal(K)[weak] - np.einsum("ij,ij->j", V, V)
    return var
