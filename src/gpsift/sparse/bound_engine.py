"""Sparse inference for Gaussian noise as an engine: with inducing points, or by neighbours."""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np

from gpsift.arrays import Array
from gpsift.chunks import CHUNK_BYTES, DOUBLE
from gpsift.inference import Evidence, Inferred
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.neighbours.block_inference import BlockInference, Neighbourhoods
from gpsift.neighbours.vecchia import VecchiaEngine
from gpsift.rows import Rows, RowSource
from gpsift.sparse.bound import BoundModel, Passes, bound_evidence, bound_model, left_out
from gpsift.sparse.choice import Sparse
from gpsift.sparse.engine import Solved, SparseEngine, local_rows

# Rows of a block, at most, and how many are near it for each of them, at least. Of two posteriors that take the same
# time, the one of larger blocks and more rows near them is nearer to exact inference (docs/near_exact.md).
LARGE_BLOCK_ROWS = 200
NEAR_PER_ROW = 5
# Rows that are near a block, where nobody says, and where rows are many: their neighbours are nearer.
NEAR_ROWS = 1500
NEAR_OF_MANY = 1000
MANY_KEPT_ROWS = 20_000
# Rows on which leave-one-out compares neighbours with inducing points, about.
JUDGED_ROWS = 20_000
# Rows that a posterior by neighbours has: all, or of twice as many and more those that take a chunk, at least these.
LEAST_SAMPLED_ROWS = 1000
# Prior variance that inducing points leave, in units of the noise variance, below which neighbours are not tried.
LEAST_RESIDUAL = 0.01


class LeftOutScore(NamedTuple):
    """Log density of rows, each predicted by all others; the bound; the engine with what was taken.

    `residual` is the prior variance that inducing points leave, in units of the noise variance, as a mean of rows.
    """

    elpd: float
    objective: float
    residual: float
    engine: BoundEngine


class BoundEngine(SparseEngine):
    """The variational bound with inducing points, for Gaussian noise.

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
            found = self.by_blocks(kernel, likelihood)
            vecchia = VecchiaEngine.near(self._kept_rows, kernel, self.choice.seed)
            log_evidence = vecchia.evidence(kernel, likelihood).value * self.source.n / vecchia.n
            n_blocks = found.posterior.blocks.n
            return Solved(Inferred(found.posterior, log_evidence, none, none, n_blocks=n_blocks), found.left_out)
        model = self.model(kernel, likelihood)
        passes = Passes(model, self.source)
        points = {"jitter": model.inducing.added, "n_inducing": self.Z.shape[0]}
        inferred = Inferred(passes.posterior(), passes.value, none, none, **points)
        return Solved(inferred, partial(left_out, model, passes.q))

    def by_blocks(self, kernel: Kernel, likelihood: Likelihood) -> BlockInference:
        """The posterior by neighbours."""
        return BlockInference.of(self._around(kernel, likelihood, self.near_rows))

    def scored(self, kernel: Kernel, likelihood: Likelihood) -> LeftOutScore:
        """How well rows are predicted, each by all others, with inducing points or by neighbours as is better.

        Of neighbours that is known in some blocks: what they gain there is taken for their gain everywhere.
        """
        passes, asked = Passes(self.model(kernel, likelihood), self.source), self.choice.near_rows
        elpd, taken, tried = passes.elpd(self.source), 0, most_near(self.n_kept) if asked is None else asked
        residual = passes.sums.residual / self.source.n
        if asked is None and residual <= LEAST_RESIDUAL:
            tried = 0
        if tried:
            around = self._around(kernel, likelihood, tried)
            rows, by_neighbours = around.judged(JUDGED_ROWS, self.choice.seed)
            gain = by_neighbours - passes.elpd(local_rows(rows, self.choice))
            if asked or gain > 0.0:
                elpd, taken = elpd + gain * self.source.n / rows.n, tried
        engine = type(self)(self.source, self.candidates, self.Z, self.choice, taken)
        return LeftOutScore(elpd if np.isfinite(elpd) else -np.inf, passes.value, residual, engine)

    @property
    def n_kept(self) -> int:
        """How many rows a posterior by neighbours has."""
        chunk, n = self.choice.chunk_bytes or CHUNK_BYTES, self.source.n
        most = max(LEAST_SAMPLED_ROWS, chunk // (DOUBLE * self.Z.shape[1]))
        # A row that is not kept is predicted by a factor of its own block, made anew: few such rows cost as many do.
        return n if n < 2 * most else most

    @cached_property
    def _kept_rows(self) -> Rows:
        """These rows. They travel with the posterior, to where each chunk of rows is visited."""
        return self.source.sample(self.n_kept, self.choice.seed + 1)

    def _around(self, kernel: Kernel, likelihood: Likelihood, near_rows: int) -> Neighbourhoods:
        block_rows = min(LARGE_BLOCK_ROWS, max(1, near_rows // NEAR_PER_ROW))
        return Neighbourhoods.of(kernel, _shared_noise(likelihood), self._kept_rows, near_rows, block_rows)

    def fresh(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, self.near_rows)

    def model(self, kernel: Kernel, likelihood: Likelihood) -> BoundModel:
        """The bound at these hyperparameters."""
        return bound_model(kernel, self.Z, _shared_noise(likelihood))


def most_near(n_kept: int) -> int:
    """How many rows are near a block, where nobody says."""
    return NEAR_ROWS if n_kept < MANY_KEPT_ROWS else NEAR_OF_MANY


def _shared_noise(likelihood: Likelihood) -> float | None:
    """The noise variance of all rows, or None where each has its own."""
    return None if likelihood.knows_noise else float(likelihood.noise_var)
