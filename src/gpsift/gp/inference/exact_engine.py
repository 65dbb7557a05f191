"""Exact inference for Gaussian noise as an engine: in place where the kernel allows it, on any array otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array, like, namespace, take_columns, take_rows, to_numpy
from gpsift._utils.linalg import add_diagonal, cholesky_solve, inverse_from_cholesky, is_numpy, jittered_cholesky
from gpsift.gp.inference.engine import DenseEngine, Inferred, Slope
from gpsift.gp.inference.exact import Evidence, exact_evidence, log_evidence_of
from gpsift.gp.inference.inplace import InPlaceEvidence, LogParamsEvidence, Solution
from gpsift.gp.inference.level import level_evidence
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.reference.posterior import exact_posterior


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
        return type(self)(take_columns(self.X, columns), self.y)

    def on_rows(self, rows: np.ndarray) -> Self:
        return type(self)(take_rows(self.X, rows), take_rows(self.y, rows))

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
