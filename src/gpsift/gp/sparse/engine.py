"""What every sparse engine does: rows that are visited, and inducing points that stand for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, like, to_numpy
from gpsift._utils.rows import LocalRows, Rows, RowSource, chunk_bytes_for
from gpsift.gp.inference import InferenceMethod, InferenceResult
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.inducing import inducing_rows, most_candidates
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood


class Solved(NamedTuple):
    """An answer before rows are left out, and how that is done: latent mean and variance of some, given all others."""

    inferred: InferenceResult
    left_out: Callable[[Rows], tuple[Array, Array]]


class SparseEngine(InferenceMethod):
    """Inference with inducing points Z (m, p), picked among candidates; they stay where they are, see `picked_for`."""

    name = "sparse"

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse):
        self.source, self.candidates, self.Z, self.choice = source, candidates, Z, choice

    @classmethod
    def picking(cls, source: RowSource, kernel: Kernel, choice: Sparse) -> Self:
        """With the inducing points that suit this kernel."""
        candidates = source.sample(most_candidates(choice.m), choice.seed).X
        return cls(source, to_numpy(candidates), candidates, choice).picked_for(kernel)

    def picked_for(self, kernel: Kernel) -> Self:
        """An engine on the same rows, with the inducing points that suit this kernel."""
        Z = self.candidates[inducing_rows(kernel, self.candidates, self.choice.m, seed=self.choice.seed)]
        return type(self)(self.source, self.candidates, like(self.Z, Z), self.choice)

    def on(self, rows: Rows) -> Self:
        """An engine with the same inducing points, on these rows only."""
        return type(self)(local_rows(rows, self.choice), self.candidates, self.Z, self.choice)

    @abstractmethod
    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        """The posterior, and how rows are left out of it."""

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        inferred, left_out = self.solved(kernel, likelihood)
        source = self.source.single_chunk() if inferred.n_blocks else self.source  # what leaves rows out divides them
        cavity_mean, cavity_var = source.map_concat(left_out)
        return replace(inferred, cavity_mean=to_numpy(cavity_mean), cavity_var=to_numpy(cavity_var))


def local_rows(rows: Rows, choice: Sparse) -> LocalRows:
    """Rows to be visited in this process."""
    return LocalRows(rows, choice.m, choice.chunk_bytes or chunk_bytes_for(rows.X))
