r"""Sparse inference with Gaussian noise: m inducing points in place of n rows, at a cost of O(n m^2) (Titsias 2009).

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
`gpsift.gp.sparse.vecchia` where that predicts left-out rows better. `IntervalEngine` infers with hyperparameters that
are drawn around those of a fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, namespace, to_numpy
from gpsift._utils.linalg import log_det_from_cholesky, total_product
from gpsift._utils.rows import CHUNK_BYTES, DOUBLE, Rows, RowSource, Totals
from gpsift.gp.inference import Evidence, InferenceMethod, InferenceResult
from gpsift.gp.inference.base import LOG_2PI
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.engine import Solved, SparseEngine, local_rows
from gpsift.gp.sparse.inducing import Inducing
from gpsift.gp.sparse.sites import NaturalGaussian, SiteSums, Whitened, inducing_gradient, inner_factor, prepare
from gpsift.gp.sparse.vecchia.block_posterior import BlockInference, NearBlocks, default_near_rows
from gpsift.gp.sparse.vecchia.evidence import VECCHIA_ROWS, VecchiaEngine
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood
from gpsift.reference.posterior import Posterior


@dataclass(frozen=True, eq=False)
class BoundModel:
    """The bound at given hyperparameters; `noise_var` is None where each row has its own."""

    inducing: Inducing
    noise_var: float | None

    def noise(self, rows: Rows) -> Array:
        """Return s_i of a chunk."""
        return rows.noise_var if self.noise_var is None else namespace(rows.y).zeros_like(rows.y) + self.noise_var


@dataclass(frozen=True, eq=False)
class GaussianSums(SiteSums):
    """Sums of the first pass over the rows, for the posterior and the value of the bound."""

    residual: float  # sum_i r_i / s_i


@dataclass(frozen=True, eq=False)
class Slopes(Totals):
    """Sums of the second pass over the rows: the part of the gradient that depends on them."""

    by_kernel: np.ndarray
    by_noise: float


def site_sums(model: BoundModel, rows: Rows) -> GaussianSums:
    """Return the sums of the first pass over a chunk."""
    chunk, s = Whitened.of(model.inducing, rows.X), model.noise(rows)
    xp = namespace(s)
    scaled, y = chunk.A / xp.sqrt(s)[:, None], rows.y / xp.sqrt(s)
    log_density = -0.5 * (rows.n * LOG_2PI + float(xp.sum(xp.log(s))) + float(y @ y))
    return GaussianSums(scaled.T @ scaled, y @ scaled, log_density, float(xp.sum(chunk.r / s)))


def slopes(model: BoundModel, q: NaturalGaussian, inner: Array, rows: Rows) -> Slopes:
    """Return the sums of the second pass over a chunk, with `inner` = (I - S) L^-1."""
    chunk, s = Whitened.of(model.inducing, rows.X), model.noise(rows)
    xp, W, g = namespace(s), 1.0 / s, (rows.y - chunk.A @ q.mean) / s
    by_noise = 0.5 * float(xp.sum(s * g**2 - 1.0 + chunk.r / s))
    return Slopes(chunk.log_gradient(W, g, q, inner), by_noise)


def loo_moments(model: BoundModel, q: NaturalGaussian, rows: Rows) -> tuple[Array, Array]:
    """Return latent mean and variance at the rows of a chunk, each given all others.

    This is exact for given inducing points and hyperparameters, which were chosen with the row.
    """
    chunk, s = Whitened.of(model.inducing, rows.X), model.noise(rows)
    mean = chunk.A @ q.mean
    return chunk.loo_moments(mean, chunk.explained_var(q), 1.0 / s, (rows.y - mean) / s)


def loo_log_density(model: BoundModel, q: NaturalGaussian, rows: Rows) -> float:
    """Return the log density of the rows of a chunk, each predicted by all others."""
    mean, var = loo_moments(model, q, rows)
    xp, var = namespace(mean), var + model.noise(rows)
    return -0.5 * float(xp.sum(xp.log(var) + (rows.y - mean) ** 2 / var + LOG_2PI))


class Passes:
    """The best q of all rows under one model, and the value of the bound."""

    def __init__(self, model: BoundModel, source: RowSource):
        self.model, self.source = model, source
        prepare(model.inducing)
        self.sums = source.map_reduce(partial(site_sums, model))
        self.q = q = self.sums.q
        gained = 0.5 * float(q.shift @ q.mean - log_det_from_cholesky(q.L_P))
        self.value = self.sums.log_density - 0.5 * self.sums.residual + gained
        prepare(model.inducing, q)

    def gradient(self) -> np.ndarray:
        """Return the gradient by the log parameters of the kernel, then by a noise variance that all rows share."""
        model, q = self.model, self.q
        total = self.source.map_reduce(partial(slopes, model, q, inner_factor(model.inducing, q)))
        explained = q.mean.shape[0] - total_product(q.L_P_inverse, q.L_P_inverse)  # tr(I - S)
        return np.append(total.by_kernel + inducing_gradient(model.inducing, q), total.by_noise + 0.5 * explained)

    def elpd(self, rows: RowSource) -> float:
        """Return the log predictive density of some of the rows, each given all others."""
        return rows.map_reduce(partial(loo_log_density, self.model, self.q))

    def posterior(self) -> Posterior:
        """Return the posterior with the inducing points as support."""
        return self.model.inducing.posterior(self.q.mean, self.q.precision)


def bound_evidence(model: BoundModel, source: RowSource) -> Evidence:
    """Return the bound with its gradient."""
    passes = Passes(model, source)
    value = passes.value
    return Evidence(value if math.isfinite(value) else -math.inf, passes.gradient(), model.inducing.added)


def bound_model(kernel: Kernel, Z: Array, noise_var: float | None = None) -> BoundModel:
    """Return the bound of Gaussian observations with these inducing points."""
    return BoundModel(Inducing.of(kernel, Z), noise_var)


# Approximate number of rows on which leave-one-out compares neighbours with inducing points.
COMPARED_ROWS = 20_000
# A posterior by neighbours keeps all rows, or a sample of the size of a chunk if there are at least twice as many. The
# sample has at least this many rows.
LEAST_SAMPLED_ROWS = 1000
# Neighbours are tried only if inducing points leave more prior variance than this, in units of the noise variance.
LEAST_RESIDUAL = 0.01
# Rows whose bound is maximised, at most.
SAMPLE_ROWS = 10_000


class LooScore(NamedTuple):
    """Log density of rows, each predicted by all others; the bound; and the engine that predicts them best.

    `residual` is the prior variance that inducing points leave, in units of the noise variance, as a mean of rows.
    """

    elpd: float
    objective: float
    residual: float
    engine: BoundEngine


class BoundEngine(SparseEngine):
    """The variational bound with inducing points, for Gaussian noise.

    With `near_rows` above 0 the posterior is by neighbours, with this many rows near each block; `score` decides.
    """

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, near_rows: int = 0):
        super().__init__(source, candidates, Z, choice)
        self.near_rows = near_rows

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        found = bound_evidence(self.model(kernel, likelihood), self.source)
        return found if likelihood.params else found.without_noise()

    def solve(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        if self.near_rows:
            by_blocks = self.infer_by_neighbours(kernel, likelihood)
            vecchia = VecchiaEngine.for_kernel(self._kept_rows, kernel, self.choice.seed)
            log_evidence = vecchia.log_evidence(kernel, likelihood) * self.source.n / vecchia.n
            return Solved(by_blocks.result(log_evidence), by_blocks.loo_moments)
        passes = Passes(self.model(kernel, likelihood), self.source)
        result = self.result(passes.model.inducing, passes.q, passes.value)
        return Solved(result, partial(loo_moments, passes.model, passes.q))

    def infer_by_neighbours(self, kernel: Kernel, likelihood: Likelihood) -> BlockInference:
        """Infer the posterior by exact inference on the near rows of each block."""
        return self._near_blocks(kernel, likelihood, self.near_rows).infer()

    def score(self, kernel: Kernel, likelihood: Likelihood) -> LooScore:
        """Compare inducing points with neighbours by leave-one-out, and return the score of the better.

        Neighbours predict some blocks only, and their mean gain in these is taken as that of all rows.
        """
        passes, n = Passes(self.model(kernel, likelihood), self.source), self.source.n
        elpd, residual = passes.elpd(self.source), passes.sums.residual / n
        near_rows = self.choice.near_rows
        if near_rows is None:
            near_rows = default_near_rows(self._n_kept) if residual > LEAST_RESIDUAL else 0
        if near_rows:
            blocks = self._near_blocks(kernel, likelihood, near_rows)
            rows, by_neighbours = blocks.score(COMPARED_ROWS, self.choice.seed)
            by_points = elpd if rows.n == n else passes.elpd(local_rows(rows, self.choice))
            gain = (by_neighbours - by_points) / rows.n
            if not np.isfinite(gain):
                gain = -np.inf
            if self.choice.near_rows or gain > 0.0:
                elpd += gain * n
            else:
                near_rows = 0
        engine = type(self)(self.source, self.candidates, self.Z, self.choice, near_rows)
        return LooScore(elpd if np.isfinite(elpd) else -np.inf, passes.value, residual, engine)

    @property
    def _n_kept(self) -> int:
        """The number of rows that a posterior by neighbours has."""
        chunk, n = self.choice.chunk_bytes or CHUNK_BYTES, self.source.n
        most = max(LEAST_SAMPLED_ROWS, chunk // (DOUBLE * self.Z.shape[1]))
        # A row that is not kept needs a new factor of its block, however few such rows there are.
        return n if n < 2 * most else most

    @cached_property
    def _kept_rows(self) -> Rows:
        """The rows of a posterior by neighbours, which is sent with them to the process of each chunk."""
        return self.source.sample(self._n_kept, self.choice.seed + 1)

    def _near_blocks(self, kernel: Kernel, likelihood: Likelihood, near_rows: int) -> NearBlocks:
        return NearBlocks.of(kernel, _shared_noise(likelihood), self._kept_rows, near_rows)

    def stateless(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, self.near_rows)

    def model(self, kernel: Kernel, likelihood: Likelihood) -> BoundModel:
        """Return the bound at these hyperparameters."""
        return bound_model(kernel, self.Z, _shared_noise(likelihood))


def _shared_noise(likelihood: Likelihood) -> float | None:
    """Return the noise variance of all rows, or None where each has its own."""
    return None if likelihood.knows_noise else float(likelihood.noise_var)


class IntervalEngine(InferenceMethod):
    """Inference for intervals: the evidence by which hyperparameters were found, and posteriors of all rows.

    Inducing points do not change with the hyperparameters, nor do the nearest rows of each block.
    """

    name = "sparse"

    def __init__(self, evidence_engine: InferenceMethod, posterior_engine: BoundEngine):
        self.evidence_engine, self.posterior_engine = evidence_engine, posterior_engine

    @classmethod
    def of(
        cls, rows: Rows, kernel: Kernel, choice: Sparse, *, Z: Array | None, near_rows: int, by_vecchia: bool
    ) -> Self:
        """Return the engine for a model with this kernel, found by Vecchia's evidence or by the bound.

        With many rows both evidences are those of a sample. Inducing points are Z, or picked for the kernel if None.
        """
        source, seed = local_rows(rows, choice), choice.seed
        if Z is None:
            Z = BoundEngine.of(source, kernel, choice).Z
        fitted = BoundEngine(source, to_numpy(Z), Z, choice, near_rows)
        if by_vecchia:
            sample = source.sample(VECCHIA_ROWS, seed).on_host()
            return cls(VecchiaEngine.for_kernel(sample, kernel, seed), fitted)
        return cls(fitted if source.n <= SAMPLE_ROWS else fitted.on_rows(source.sample(SAMPLE_ROWS, seed)), fitted)

    @property
    def has_exact_slopes(self) -> bool:
        return True  # the noise is Gaussian

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        return self.evidence_engine.evidence(kernel, likelihood)

    def infer(self, kernel: Kernel, likelihood: Likelihood) -> InferenceResult:
        if self.posterior_engine.near_rows:
            log_evidence = self.evidence_engine.log_evidence(kernel, likelihood)
            return self.posterior_engine.infer_by_neighbours(kernel, likelihood).result(log_evidence)
        result = self.posterior_engine.solve(kernel, likelihood).result
        if self.evidence_engine is self.posterior_engine:
            return result
        return replace(result, log_evidence=self.evidence_engine.log_evidence(kernel, likelihood))

    def stateless(self) -> Self:
        return type(self)(self.evidence_engine.stateless(), self.posterior_engine.stateless())
