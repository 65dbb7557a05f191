"""Inference around a fitted sparse model: by the evidence that its fit ended with, and with its own posterior.

What stands for the rows stays: inducing points, or which rows are near a block of them for the evidence.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Self

from gpsift.gp.inference import Evidence, InferenceMethod, InferenceResult
from gpsift.gp.sparse.bound_engine import BoundEngine
from gpsift.gp.sparse.search import SAMPLE_ROWS
from gpsift.gp.sparse.vecchia.vecchia import VECCHIA_ROWS, VecchiaEngine
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood


class AroundEngine(InferenceMethod):
    """Evidence of one engine, posteriors of another, of which no rows are left out."""

    name = "sparse"

    def __init__(self, by: InferenceMethod, fitted: BoundEngine):
        self.by, self.fitted = by, fitted

    @classmethod
    def of(cls, fitted: BoundEngine, kernel: Kernel, *, by_neighbours: bool) -> Self:
        """Around a model with this kernel; its hyperparameters were found by neighbours, or by the bound.

        Of many rows both had a sample.
        """
        source, seed = fitted.source, fitted.choice.seed
        if by_neighbours:
            rows = source.sample(VECCHIA_ROWS, seed).on_host()
            return cls(VecchiaEngine.near(rows, kernel, seed), fitted)
        return cls(fitted if source.n <= SAMPLE_ROWS else fitted.on(source.sample(SAMPLE_ROWS, seed)), fitted)

    @property
    def has_exact_slopes(self) -> bool:
        return True  # of normal noise

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
