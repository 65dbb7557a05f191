"""Inference for intervals of a sparse model: evidence of some rows, as its fit had it, and posteriors of all rows.

Inducing points stay, and so do the nearest rows of each block for Vecchia's evidence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from gpsift._utils.arrays import Array, to_numpy
from gpsift._utils.rows import Rows
from gpsift.gp.inference import Evidence, InferenceMethod, InferenceResult
from gpsift.gp.sparse.bound import BoundEngine
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.engine import local_rows
from gpsift.gp.sparse.search import SAMPLE_ROWS
from gpsift.gp.sparse.vecchia.evidence import VECCHIA_ROWS, VecchiaEngine
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood


class IntervalEngine(InferenceMethod):
    """Evidence of one engine, by which hyperparameters were found, and posteriors of a sparse one with all rows."""

    name = "sparse"

    def __init__(self, by: InferenceMethod, fitted: BoundEngine):
        self.by, self.fitted = by, fitted

    @classmethod
    def of(
        cls, rows: Rows, kernel: Kernel, choice: Sparse, *, Z: Array | None, near_rows: int, by_vecchia: bool
    ) -> Self:
        """Return the engine for a model with this kernel, found by Vecchia's evidence or by the bound.

        Of many rows both had a sample. Inducing points are Z, or picked for the kernel where they are not known.
        """
        source, seed = local_rows(rows, choice), choice.seed
        if Z is None:
            Z = BoundEngine.picking(source, kernel, choice).Z
        fitted = BoundEngine(source, to_numpy(Z), Z, choice, near_rows)
        if by_vecchia:
            sample = source.sample(VECCHIA_ROWS, seed).on_host()
            return cls(VecchiaEngine.near(sample, kernel, seed), fitted)
        return cls(fitted if source.n <= SAMPLE_ROWS else fitted.on(source.sample(SAMPLE_ROWS, seed)), fitted)

    @property
    def has_exact_slopes(self) -> bool:
        return True  # of Gaussian noise

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        return self.by.evidence(kernel, likelihood)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        if not self.fitted.near_rows:
            inferred = self.fitted.solved(kernel, likelihood).inferred
            if self.by is self.fitted:
                return inferred
            return replace(inferred, log_evidence=self.by.log_evidence(kernel, likelihood))
        log_evidence = self.by.log_evidence(kernel, likelihood)
        return self.fitted.by_neighbours(kernel, likelihood).inferred(log_evidence)

    def stateless(self) -> Self:
        return type(self)(self.by.stateless(), self.fitted.stateless())
