"""Inference on one data set: the same three questions to exact inference, EP and Laplace's method.

An engine is made once for the data and asked many times, with other hyperparameters; what it learns from one answer it
may use for the next (workspaces, sites, modes).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from gpsift._utils.arrays import Array, take_columns
from gpsift._utils.linalg import invert_lower, solve_lower
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.reference.posterior import LEAST_PRECISION

LOG_2PI = math.log(2.0 * math.pi)


class LatentPosterior(Protocol):
    """The members that every posterior of latent functions has, `gpsift.reference.posterior.Posterior` among them."""

    @property
    def kernel(self) -> Kernel: ...
    def at(self, X: Array) -> Any: ...
    def covariance(self, X: Array) -> Array: ...


@dataclass(frozen=True)
class Evidence:
    """Log marginal likelihood, its gradient with respect to log hyperparameters, and the jitter it needed.

    The gradient has an entry for each of `kernel.log_params`, and a last one for a noise variance that all points
    share.
    """

    value: float
    gradient: np.ndarray
    jitter: float


LogParamsEvidence = Callable[[np.ndarray], Evidence]


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
    n_blocks: int = 0  # blocks of rows whose neighbours are asked; 0 where none are

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

    def log_evidence(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """Without its gradient, where that takes less time."""
        return self.evidence(kernel, likelihood).value

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


def site_var(K: np.ndarray, precision: np.ndarray) -> np.ndarray | None:
    """1 / precision where the training-point identities can use it."""
    return 1.0 / precision if np.all(precision * np.diagonal(K) > LEAST_PRECISION) else None


# A site that takes less than this share of its marginal's precision leaves too few digits of the difference from 1.
LEAST_SHARE = 1e-4


def marginal_variances(
    K: np.ndarray, L: np.ndarray, root: np.ndarray, B_inverse: np.ndarray | None = None
) -> np.ndarray:
    """Diagonal of (K^-1 + S^2)^-1, for S = diag(root) and L the Cholesky factor of B = I + S K S.

    S (K^-1 + S^2)^-1 S = I - B^-1, of which the diagonal needs a third of the work of K - K S B^-1 S K; that form
    remains for the points whose sites say almost nothing. `B_inverse` is the diagonal of B^-1, where it is known.
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
