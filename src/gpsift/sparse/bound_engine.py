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
from gpsift.neighbours import (
    NOBODY,
    ByNeighbours,
    Near,
    NearBlocks,
    NearPoints,
    Neighbourhoods,
    VecchiaEngine,
    near_blocks,
    nearest_to_points,
)
from gpsift.rows import Rows, RowSource
from gpsift.sparse.bound import BoundModel, Passes, bound_evidence, bound_model, left_out
from gpsift.sparse.choice import Sparse
from gpsift.sparse.engine import Solved, SparseEngine, local_rows

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

    The posterior is by neighbours instead where anybody is near, see `scored`.
    """

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, near: Near = NOBODY):
        super().__init__(source, candidates, Z, choice)
        self.near = near

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        found = bound_evidence(self.model(kernel, likelihood), self.source)
        return found if likelihood.params else Evidence(found.value, found.gradient[:-1], found.jitter)

    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        if self.near.anybody:
            found = self.by_neighbours(kernel, likelihood)
            vecchia = VecchiaEngine.near(self._kept_rows, kernel, self.choice.seed)
            log_evidence = vecchia.log_evidence(kernel, likelihood) * self.source.n / vecchia.n
            return Solved(found.inferred(log_evidence), found.left_out)
        model = self.model(kernel, likelihood)
        passes = Passes(model, self.source)
        points = {"jitter": model.inducing.added, "n_inducing": self.Z.shape[0]}
        none = np.empty(0)
        inferred = Inferred(passes.posterior(), passes.value, none, none, **points)
        return Solved(inferred, partial(left_out, model, passes.q))

    def by_neighbours(self, kernel: Kernel, likelihood: Likelihood) -> ByNeighbours:
        """The posterior by neighbours."""
        return self._around(kernel, likelihood, self.near).answer()

    def scored(self, kernel: Kernel, likelihood: Likelihood) -> LeftOutScore:
        """How well rows are predicted, each by all others, with inducing points or by neighbours as is better.

        Of neighbours that is known in some blocks: what they gain there is taken for their gain everywhere.
        """
        passes = Passes(self.model(kernel, likelihood), self.source)
        elpd, taken, residual = passes.elpd(self.source), NOBODY, passes.sums.residual / self.source.n
        ways = self.ways(residual)
        gains = [self._gain(passes, elpd, self._around(kernel, likelihood, near)) for near in ways]
        if gains and (self.choice.near.anybody or max(gains) > 0.0):
            elpd, taken = elpd + max(gains) * self.source.n, ways[int(np.argmax(gains))]
        engine = type(self)(self.source, self.candidates, self.Z, self.choice, taken)
        return LeftOutScore(elpd if np.isfinite(elpd) else -np.inf, passes.value, residual, engine)

    def ways(self, residual: float) -> list[Near]:
        """To be by neighbours, that are tried where inducing points leave so much."""
        choice, blocks = self.choice, near_blocks(self.n_kept)
        if choice.near.anybody:
            return [choice.near]
        if choice.near_rows == 0 or residual <= LEAST_RESIDUAL:
            return []
        return [blocks, *(nearest_to_points(self.n_kept) if choice.nearest is None else ())]

    def _gain(self, passes: Passes, elpd: float, around: Neighbourhoods) -> float:
        """What neighbours gain over points in the log density of a row, as a mean of some; `elpd` is that of all."""
        rows, by_neighbours = around.judged(JUDGED_ROWS, self.choice.seed)
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

    def _around(self, kernel: Kernel, likelihood: Likelihood, near: Near) -> Neighbourhoods:
        kind, k = (NearPoints, near.point) if near.point else (NearBlocks, near.block)
        return kind.of(kernel, _shared_noise(likelihood), self._kept_rows, k)

    def fresh(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, self.near)

    def model(self, kernel: Kernel, likelihood: Likelihood) -> BoundModel:
        """The bound at these hyperparameters."""
        return bound_model(kernel, self.Z, _shared_noise(likelihood))


def _shared_noise(likelihood: Likelihood) -> float | None:
    """The noise variance of all rows, or None where each has its own."""
    return None if likelihood.knows_noise else float(likelihood.noise_var)
