"""Sparse inference for Gaussian noise as an engine, with blocks of rows or without."""

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
from gpsift.sparse.block_inference import BlockInference
from gpsift.sparse.bound import BoundModel, Passes, bound_evidence, bound_model, left_out, row_sums
from gpsift.sparse.choice import Sparse
from gpsift.sparse.engine import Solved, SparseEngine, local_rows
from gpsift.sparse.placing import placed
from gpsift.sparse.rows import Rows, RowSource

# Rows of a block at most, where nobody says. On 10,000 rows of the Kin40k data 50, 100 and 200 take the log density of
# test rows from -0.31 to 0.17, 0.25 and 0.36 each, and as long.
BLOCK_ROWS = 200
# Rows in all blocks together: at most, and at least. Between these limits they are as many as take no more than a
# chunk, and no more than this many times the rows of a chunk.
SAMPLED_ROWS = 20_000
LEAST_SAMPLED_ROWS = 1000
CHUNK_SHARE = 4
# Nats that blocks have to gain, for each row, to be worth their cost.
GAIN_PER_ROW = 0.01
# Prior variance that inducing points leave, in units of the noise variance, below which blocks are not tried.
LEAST_RESIDUAL = 0.01


class LeftOutScore(NamedTuple):
    """Log density of rows, each predicted by all others; the objective; the engine with or without blocks."""

    elpd: float
    objective: float
    engine: BoundEngine


class BoundEngine(SparseEngine):
    """Power expectation propagation with inducing points, for Gaussian noise.

    What these leave is followed in blocks of at most `block_rows`; 0 where it is not, see `scored`.
    """

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, block_rows: int = 0):
        super().__init__(source, candidates, Z, choice)
        self.block_rows = block_rows

    def placed(self, kernel: Kernel, likelihood: Likelihood, rows: Rows) -> Self:
        """An engine on the same rows, its inducing points moved to where they serve this model best on some of them."""
        Z = placed(kernel, self.Z, _shared_noise(likelihood), local_rows(rows, self.choice))
        return type(self)(self.source, self.candidates, Z, self.choice)

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        found = bound_evidence(self.model(kernel, likelihood), self.source)
        return found if likelihood.params else Evidence(found.value, found.gradient[:-1], found.jitter)

    def objective(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """The value of `evidence` alone, in half its time."""
        return Passes(self.model(kernel, likelihood), self.source).solution.value

    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        model, none = self.model(kernel, likelihood), np.empty(0)
        points = {"jitter": model.inducing.added, "n_inducing": self.Z.shape[0]}
        if self.block_rows:
            found = self._in_blocks(model, self.block_rows)
            n_blocks = found.posterior.blocks.n
            inferred = Inferred(found.posterior, found.log_evidence, none, none, **points, n_blocks=n_blocks)
            return Solved(inferred, found.left_out)
        passes = Passes(model, self.source)
        _ = passes.solution.L_B_inverse  # made once, not by every thread
        inferred = Inferred(passes.posterior(), passes.solution.value, none, none, **points)
        return Solved(inferred, partial(left_out, model, passes.solution))

    def scored(self, kernel: Kernel, likelihood: Likelihood) -> LeftOutScore:
        """How well all rows are predicted, each by all others, with or without blocks as asked or as is better."""
        model, asked = self.model(kernel, likelihood), self.choice.block_rows
        passes, taken = Passes(model, self.source), 0
        elpd = passes.elpd(self.source)
        tried = asked
        if asked is None:
            tried = BLOCK_ROWS if self.residual_share(kernel, likelihood) > LEAST_RESIDUAL else 0
        if tried:
            rows = local_rows(self._sampled_rows, self.choice)
            gain = (self._in_blocks(model, tried).elpd - passes.elpd(rows)) / rows.n
            if asked or gain > GAIN_PER_ROW:
                elpd, taken = elpd + gain * self.source.n, tried
        engine = type(self)(self.source, self.candidates, self.Z, self.choice, taken)
        return LeftOutScore(elpd if np.isfinite(elpd) else -np.inf, passes.solution.value, engine)

    def residual_share(self, kernel: Kernel, likelihood: Likelihood) -> float:
        """The prior variance that the inducing points leave, in units of the noise variance, as a mean of rows."""
        model = replace(self.model(kernel, likelihood), power=0.0)
        rows = local_rows(self._sampled_rows, self.choice)
        return rows.total(partial(row_sums, model)).penalty / rows.n

    @cached_property
    def _sampled_rows(self) -> Rows:
        """The rows that would be in blocks. They travel with the posterior, to where each chunk of rows is visited.

        Not those on which points are placed, if there are others: by them these points look better than they are.
        """
        chunk, width = self.choice.chunk_bytes or CHUNK_BYTES, max(self.choice.m // CHUNK_SHARE, self.Z.shape[1])
        most = max(LEAST_SAMPLED_ROWS, min(SAMPLED_ROWS, chunk // (DOUBLE * width)))
        return self.source.sample(most, self.choice.seed + 1)

    def _in_blocks(self, model: BoundModel, block_rows: int) -> BlockInference:
        return BlockInference.of(model, self.source, self._sampled_rows, block_rows)

    def fresh(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, self.block_rows)

    def model(self, kernel: Kernel, likelihood: Likelihood) -> BoundModel:
        """The objective at these hyperparameters."""
        return bound_model(kernel, self.Z, _shared_noise(likelihood), power=self.choice.power)


def _shared_noise(likelihood: Likelihood) -> float | None:
    """The noise variance of all rows, or None where each has its own."""
    return None if likelihood.knows_noise else float(likelihood.noise_var)
