"""The base class of sparse inference: rows are read in chunks, and the posterior has inducing points."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, like, to_numpy
from gpsift._utils.rows import LocalRows, Rows, RowSource, chunk_bytes_for
from gpsift.gp.inference import InferenceMethod, InferenceResult
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.inducing import Inducing, inducing_rows, most_candidates
from gpsift.gp.sparse.sites import NaturalGaussian
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood


class Solved(NamedTuple):
    """A result without cavities, and the function that returns latent moments at rows, each given all others."""

    result: InferenceResult
    loo_moments: Callable[[Rows], tuple[Array, Array]]


class SparseEngine(InferenceMethod):
    """Inference with inducing points Z (m, p), picked among candidates; `pick_points` replaces them."""

    name = "sparse"

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse):
        self.source, self.candidates, self.Z, self.choice = source, candidates, Z, choice

    @classmethod
    def of(cls, source: RowSource, kernel: Kernel, choice: Sparse) -> Self:
        """Return an engine with the inducing points that suit this kernel."""
        candidates = source.sample(most_candidates(choice.m), choice.seed).X
        return cls(source, to_numpy(candidates), candidates, choice).pick_points(kernel)

    def pick_points(self, kernel: Kernel) -> Self:
        """Return an engine on the same rows, with the inducing points that suit this kernel."""
        Z = self.candidates[inducing_rows(kernel, self.candidates, self.choice.m, seed=self.choice.seed)]
        return type(self)(self.source, self.candidates, like(self.Z, Z), self.choice)

    def on_rows(self, rows: Rows) -> Self:
        """Return an engine with the same inducing points, on these rows only."""
        return type(self)(local_rows(rows, self.choice), self.candidates, self.Z, self.choice)

    @abstractmethod
    def solve(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        """Infer the posterior; return it without cavities, and the function that computes them."""

    def result(self, inducing: Inducing, q: NaturalGaussian, log_evidence: float, **status: Any) -> InferenceResult:
        """Return the result with inducing points as support, without cavities."""
        posterior, none = inducing.posterior(q.mean, q.precision), np.empty(0)
        n_inducing = self.Z.shape[0]
        return InferenceResult(
            posterior, log_evidence, none, none, jitter=inducing.added, n_inducing=n_inducing, **status
        )

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        result, loo_moments = self.solve(kernel, likelihood)
        source = self.source.single_chunk() if result.n_blocks else self.source  # blocks divide the rows themselves
        cavity_mean, cavity_var = source.map_concat(loo_moments)
        return replace(result, cavity_mean=to_numpy(cavity_mean), cavity_var=to_numpy(cavity_var))


def local_rows(rows: Rows, choice: Sparse) -> LocalRows:
    """Return a source of rows in this process."""
    return LocalRows(rows, choice.m, choice.chunk_bytes or chunk_bytes_for(rows.X))
