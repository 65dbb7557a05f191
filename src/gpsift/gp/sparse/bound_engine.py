"""Sparse inference for Gaussian noise as an engine: with inducing points, or by neighbours."""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array
from gpsift._utils.chunks import CHUNK_BYTES, DOUBLE
from gpsift._utils.rows import Rows, RowSource
from gpsift.gp.inference import Evidence, InferenceResult
from gpsift.gp.sparse.bound import BoundModel, Passes, bound_evidence, bound_model, left_out
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.engine import Solved, SparseEngine, local_rows
from gpsift.gp.sparse.vecchia.block_inference import ByNeighbours, NearBlocks, usual_near_rows
from gpsift.gp.sparse.vecchia.vecchia import VecchiaEngine
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood

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

    The posterior is by neighbours instead where some rows are near each block, see `scored`.
    """

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, near_rows: int = 0):
        super().__init__(source, candidates, Z, choice)
        self.near_rows = near_rows

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        found = bound_evidence(self.model(kernel, likelihood), self.source)
        return found if likelihood.params else Evidence(found.value, found.gradient[:-1], found.jitter)

    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        if self.near_rows:
            found = self.by_neighbours(kernel, likelihood)
            vecchia = VecchiaEngine.near(self._kept_rows, kernel, self.choice.seed)
            log_evidence = vecchia.log_evidence(kernel, likelihood) * self.source.n / vecchia.n
            return Solved(found.inferred(log_evidence), found.left_out)
        model = self.model(kernel, likelihood)
        passes = Passes(model, self.source)
        points = {"jitter": model.inducing.added, "n_inducing": self.Z.shape[0]}
        none = np.empty(0)
        inferred = InferenceResult(passes.posterior(), passes.value, none, none, **points)
        return Solved(inferred, partial(left_out, model, passes.q))

    def by_neighbours(self, kernel: Kernel, likelihood: Likelihood) -> ByNeighbours:
        """The posterior by neighbours."""
        return self._near_blocks(kernel, likelihood, self.near_rows).answer()

    def scored(self, kernel: Kernel, likelihood: Likelihood) -> LeftOutScore:
        """How well rows are predicted, each by all others, with inducing points or by neighbours as is better.

        Of neighbours that is known in some blocks: what they gain there is taken for their gain everywhere.
        """
        passes = Passes(self.model(kernel, likelihood), self.source)
        elpd, residual = passes.elpd(self.source), passes.sums.residual / self.source.n
        near_rows = self.tried_near_rows(residual)
        if near_rows:
            gain = self._gain(passes, elpd, self._near_blocks(kernel, likelihood, near_rows))
            if self.choice.near_rows or gain > 0.0:
                elpd += gain * self.source.n
            else:
                near_rows = 0
        engine = type(self)(self.source, self.candidates, self.Z, self.choice, near_rows)
        return LeftOutScore(elpd if np.isfinite(elpd) else -np.inf, passes.value, residual, engine)

    def tried_near_rows(self, residual: float) -> int:
        """How many rows near each block are tried where inducing points leave so much; 0 where neighbours are not."""
        if self.choice.near_rows is not None:
            return self.choice.near_rows
        return usual_near_rows(self.n_kept) if residual > LEAST_RESIDUAL else 0

    def _gain(self, passes: Passes, elpd: float, near_blocks: NearBlocks) -> float:
        """What neighbours gain over points in the log density of a row, as a mean of some; `elpd` is that of all."""
        rows, by_neighbours = near_blocks.judged(JUDGED_ROWS, self.choice.seed)
        by_points = elpd if rows.n == self.source.n else passes.elpd(local_rows(rows, self.choice))
        gain = (by_neighbours - by_points) / rows.n
        return gain if np.isfinite(gain) else -np.inf

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

    def _near_blocks(self, kernel: Kernel, likelihood: Likelihood, near_rows: int) -> NearBlocks:
        return NearBlocks.of(kernel, _shared_noise(likelihood), self._kept_rows, near_rows)

    def stateless(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, self.near_rows)

    def model(self, kernel: Kernel, likelihood: Likelihood) -> BoundModel:
        """The bound at these hyperparameters."""
        return bound_model(kernel, self.Z, _shared_noise(likelihood))


def _shared_noise(likelihood: Likelihood) -> float | None:
    """The noise variance of all rows, or None where each has its own."""
    return None if likelihood.knows_noise else float(likelihood.noise_var)
