r"""Sparse inference with Gaussian noise: m inducing points stand for n rows, at a cost of O(n m^2) (Titsias 2009).

With noise variances s_i the sites of `sites.py` are known before q is: W_i = 1 / s_i, W_i mu_i + g_i = y_i / s_i. One
pass over all rows finds the best q, and with it

.. math::
    F = \sum_i \log N(y_i; 0, s_i) - \sum_i \frac{r_i}{2 s_i} + \tfrac12 m^T S^{-1} m - \tfrac12 \log |S^{-1}| ,

which is log N(y; 0, Q + diag(s)) less the penalty for the prior variance that the points leave, Q = K_xz K_zz^-1 K_zx.
A second pass finds the gradient. By the logarithm of a noise variance that all rows share it is

.. math::
    \tfrac12 \sum_i (s_i g_i^2 - 1 + (r_i + a_i^T S a_i) / s_i) , \qquad
    \sum_i a_i^T S a_i / s_i = \mathrm{tr}(I - S) .

`BoundEngine` is the method of inference. Its posterior has the inducing points as support, or is the one by blocks of
`gpsift.gp.sparse.vecchia` where that predicts left-out rows better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, namespace
from gpsift._utils.linalg import log_det_from_cholesky, total_product
from gpsift._utils.rows import CHUNK_BYTES, DOUBLE, Rows, RowSource, Totals
from gpsift.gp.inference import Evidence, InferenceResult
from gpsift.gp.inference.base import LOG_2PI
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.engine import Solved, SparseEngine, local_rows
from gpsift.gp.sparse.inducing import Inducing
from gpsift.gp.sparse.sites import Normal, SiteSums, Whitened, by_inducing, prepare, shrunk
from gpsift.gp.sparse.vecchia.block_inference import ByNeighbours, NearBlocks, usual_near_rows
from gpsift.gp.sparse.vecchia.evidence import VecchiaEngine
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.reference.posterior import Posterior


@dataclass(frozen=True, eq=False)
class BoundModel:
    """The bound at given hyperparameters; `noise_var` is None where each row has its own."""

    inducing: Inducing
    noise_var: float | None

    def noise(self, rows: Rows) -> Array:
        """s_i of a chunk."""
        return rows.noise_var if self.noise_var is None else namespace(rows.y).zeros_like(rows.y) + self.noise_var


@dataclass(frozen=True, eq=False)
class GaussianSums(SiteSums):
    """What the first visit finds: all that the posterior and the value of the bound need of the rows."""

    log_density: float  # sum_i log N(y_i; 0, s_i)
    residual: float  # sum_i r_i / s_i


@dataclass(frozen=True, eq=False)
class Slopes(Totals):
    """What the second visit finds: the gradient as far as it goes through the rows."""

    by_kernel: np.ndarray
    by_noise: float


def site_sums(model: BoundModel, rows: Rows) -> GaussianSums:
    """The first visit of a chunk."""
    chunk, s = Whitened.of(model.inducing, rows.X), model.noise(rows)
    xp = namespace(s)
    scaled, y = chunk.A / xp.sqrt(s)[:, None], rows.y / xp.sqrt(s)
    log_density = -0.5 * (rows.n * LOG_2PI + float(xp.sum(xp.log(s))) + float(y @ y))
    return GaussianSums(scaled.T @ scaled, y @ scaled, log_density, float(xp.sum(chunk.r / s)))


def slopes(model: BoundModel, q: Normal, inner: Array, rows: Rows) -> Slopes:
    """The second visit of a chunk, with `inner` = (I - S) L^-1."""
    chunk, s = Whitened.of(model.inducing, rows.X), model.noise(rows)
    xp, W, g = namespace(s), 1.0 / s, (rows.y - chunk.A @ q.mean) / s
    by_noise = 0.5 * float(xp.sum(s * g**2 - 1.0 + chunk.r / s))
    return Slopes(chunk.log_gradient(W, g, q, inner), by_noise)


def left_out(model: BoundModel, q: Normal, rows: Rows) -> tuple[Array, Array]:
    """Latent mean and variance at the rows of a chunk, each given all others, which is exact with inducing points kept.

    What remains is that these, like the hyperparameters, were chosen with the row.
    """
    chunk, s = Whitened.of(model.inducing, rows.X), model.noise(rows)
    mean = chunk.A @ q.mean
    return chunk.left_out(mean, chunk.explained_var(q), 1.0 / s, (rows.y - mean) / s)


def left_out_density(model: BoundModel, q: Normal, rows: Rows) -> float:
    """How well the rows of a chunk are predicted, each by all others."""
    mean, var = left_out(model, q, rows)
    xp, var = namespace(mean), var + model.noise(rows)
    return -0.5 * float(xp.sum(xp.log(var) + (rows.y - mean) ** 2 / var + LOG_2PI))


class Passes:
    """All rows of a data set under one model: the best q, and the value of the bound."""

    def __init__(self, model: BoundModel, source: RowSource):
        self.model, self.source = model, source
        prepare(model.inducing)
        self.sums = source.map_reduce(partial(site_sums, model))
        self.q = q = self.sums.q
        gained = 0.5 * float(q.shift @ q.mean - log_det_from_cholesky(q.L_P))
        self.value = self.sums.log_density - 0.5 * self.sums.residual + gained
        prepare(model.inducing, q)

    def gradient(self) -> np.ndarray:
        """Of the bound, by the log parameters of the kernel, then by a noise variance that all rows share."""
        model, q = self.model, self.q
        total = self.source.map_reduce(partial(slopes, model, q, shrunk(model.inducing, q)))
        explained = q.mean.shape[0] - total_product(q.L_P_inverse, q.L_P_inverse)  # tr(I - S)
        return np.append(total.by_kernel + by_inducing(model.inducing, q), total.by_noise + 0.5 * explained)

    def elpd(self, rows: RowSource) -> float:
        """Log predictive density of some of the rows, each given all others in the sense of `left_out`."""
        return rows.map_reduce(partial(left_out_density, self.model, self.q))

    def posterior(self) -> Posterior:
        """With the inducing points as support."""
        return self.model.inducing.posterior(self.q.mean, self.q.precision)


def bound_evidence(model: BoundModel, source: RowSource) -> Evidence:
    """The bound with its gradient."""
    passes = Passes(model, source)
    value = passes.value
    return Evidence(value if math.isfinite(value) else -math.inf, passes.gradient(), model.inducing.added)


def bound_model(kernel: Kernel, Z: Array, noise_var: float | None = None) -> BoundModel:
    """The bound of Gaussian observations with these inducing points."""
    return BoundModel(Inducing.of(kernel, Z), noise_var)


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
