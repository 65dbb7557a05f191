"""Inference on one data set: the same three questions to exact inference, EP and Laplace's method.

An engine is made once for the data and asked many times, with other hyperparameters; what it learns from one answer it
may use for the next (workspaces, sites, modes).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from gpsift._utils.arrays import Array
from gpsift.gp.inference.exact import Evidence
from gpsift.gp.inference.inplace import LogParamsEvidence
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood


class LatentPosterior(Protocol):
    """The members that every posterior of latent functions has, `gpsift.reference.posterior.Posterior` among them."""

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
