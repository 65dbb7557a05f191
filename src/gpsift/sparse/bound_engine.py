"""Sparse inference for Gaussian noise as an engine: with inducing points, or by neighbours."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np

from gpsift.arrays import Array
from gpsift.chunks import CHUNK_BYTES, DOUBLE
from gpsift.inference import Evidence, Inferred
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.sparse.block_inference import BlockInference, Neighbourhoods
from gpsift.sparse.bound import BoundModel, Passes, bound_evidence, bound_model, left_out, row_sums
from gpsift.sparse.choice import Sparse
from gpsift.sparse.engine import Solved, SparseEngine, local_rows
from gpsift.sparse.rows import Rows, RowSource
from gpsift.sparse.vecchia import VecchiaEngine

# Rows that are near a block, where nobody says.
NEAR_ROWS = 600
# Blocks on which leave-one-out compares neighbours with inducing points, at most.
JUDGED_BLOCKS = 400
# Rows that a posterior by neighbours has are as many as take no more than a chunk, and at least these.
LEAST_SAMPLED_ROWS = 1000
# Prior variance that inducing points leave, in units of the noise variance, below which neighbours are not tried.
LEAST_RESIDUAL = 0.01


class LeftOutScore(NamedTuple):
    """Log density of rows, each predicted by all others; the objective; the engine with what was taken."""

    elpd: float
    objective: float
    engine: BoundEngine


class BoundEngine(SparseEngine):
    """Power expectation propagation with inducing points, for Gaussian noise.

    The posterior is by neighbours instead where `near_rows` is not 0: in each block of rows by as many, see `scored`.
    """

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, near_rows: int = 0):
        super().__init__(source, candidates, Z, choice)
        self.near_rows = near_rows

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        found = bound_evidence(self.model(kernel, likelihood), self.source)
        return found if likelihood.params else Evidence(found.value, found.gradient[:-1], found.jitter)

    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        none = np.empty(0)
        if self.near_rows:
            found = BlockInference.of(self._around(kernel, likelihood, self.near_rows))
            vecchia = VecchiaEngine.near(self._kept_rows, kernel, self.choice.seed).evidence(kernel, likelihood)
            log_evidence = vecchia.value * self.source.n / self._kept_rows.n
            n_blocks = found.posterior.blocks.n
            return Solved(Inferred(found.posterior, log_evidence, none, none, n_blocks=n_blocks), found.left_out)
        model = self.model(kernel, likelihood)
        passes = Passes(model, self.source)
        _ = passes.solution.L_B_inverse  # made once, not by every thread
        points = {"jitter": model.inducing.added, "n_inducing": self.Z.shape[0]}
        inferred = Inferred(passes.posterior(), passes.solution.value, none, none, **points)
        return Solved(inferred, partial(left_out, model, passes.solution))

    def scored(self, kernel: Kernel, likelihood: Likelihood) -> LeftOutScore:
        """How well rows are predicted, each by all others, with inducing points or by neighbours as is better.

        Of neighbours that is known in some blocks: what they gain there is taken for their gain everywhere.
        """
        passes, asked = Passes(self.model(kernel, likelihood), self.source), self.choice.near_rows
        elpd, taken, tried = passes.elpd(self.source), 0, NEAR_ROWS if asked is None else asked
        if asked is None and self.residual_share(kernel, likelihood) <= LEAST_RESIDUAL:
            tried = 0
        if tried:
            around = self._around(kernel, likelihood, tried)
            rows, by_neighbours = around.judged(JUDGED_BLOCKS, self.choice.seed)
            gain = by_neighbours - passes.elpd(local_rows(rows, self.choice))
            if asked or gain > 0.0:
                elpd, taken = elpd + gain * self.source.n / rows.n, tried
        engine = type(self)(self.source, self.candidates, self.Z, self.choice, taken)
        return LeftOutScore(elpd if np.isfinite(elpd) else -np.inf, passes.solution.value, engine)

    def residual_share(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """The prior variance that the inducing points leave, in units of the noise variance, as a mean of rows."""
        model = replace(self.model(kernel, likelihood), power=0.0)
        return self.source.total(partial(row_sums, model)).penalty / self.source.n

    @cached_property
    def _kept_rows(self) -> Rows:
        """The rows that a posterior by neighbours has. They travel with it, to where each chunk of rows is visited."""
        chunk = self.choice.chunk_bytes or CHUNK_BYTES
        return self.source.sample(max(LEAST_SAMPLED_ROWS, chunk // (DOUBLE * self.Z.shape[1])), self.choice.seed + 1)

    def _around(self, kernel: Kernel, likelihood: Likelihood, near_rows: int) -> Neighbourhoods:
        return Neighbourhoods.of(kernel, _shared_noise(likelihood), self._kept_rows, near_rows)

    def fresh(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, self.near_rows)

    def model(self, kernel: Kernel, likelihood: Likelihood) -> BoundModel:
        """The objective at these hyperparameters."""
        return bound_model(kernel, self.Z, _shared_noise(likelihood), power=self.choice.power)


def _shared_noise(likelihood: Likelihood) -> float | None:
    """The noise variance of all rows, or None where each has its own."""
    return None if likelihood.knows_noise else float(likelihood.noise_var)
