r"""Sparse inference for likelihoods other than Gaussian noise: the variational bound, at a cost of O(n m^2) a step.

The sites of `sites.py` depend on q here, and q depends on them. A natural-gradient step of length 1 goes to the q of
the sites that rows have under the last one,

.. math:: S^{-1} = I + \sum_i W_i a_i a_i^T, \qquad S^{-1} m = \sum_i (W_i \mu_i + g_i) a_i ,

and stays there at the optimum; shorter ones lead part of the way in (S^-1, S^-1 m), which are linear in the sites
(Khan and Lin 2017). Several steps are mixed by Anderson acceleration. With Gaussian noise one step is the optimum, and
F is the bound of `bound.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from gpsift._utils.arrays import Array, like, to_numpy
from gpsift._utils.linalg import NotPositiveDefinite, weighted_gram
from gpsift._utils.rows import Rows, RowSource, Totals, row_chunks
from gpsift._utils.threads import threaded_map
from gpsift.gp.inference import Evidence, InferenceResult
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.engine import Solved, SparseEngine
from gpsift.gp.sparse.inducing import Inducing, most_candidates
from gpsift.gp.sparse.sites import MEMORY, Normal, SiteSums, Whitened, by_inducing, goals, prepare, shrunk
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood

# Of one search for q.
MAX_STEPS = 200
# What is left to gain at the end, as a share of the bound. The gradient errs by about its root.
TOLERANCE = 1e-14
# Latent values that a thread averages over in one go, where the others are on a device.
AVERAGED_BYTES = 2**17
# A loss below this share of the bound is rounding error.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class VariationalModel:
    """The bound at given hyperparameters."""

    inducing: Inducing
    likelihood: Likelihood


@dataclass(frozen=True, eq=False)
class Averages:
    """A chunk of rows under q: their a_i^T v, and averages over their f(x_i)."""

    mean: Array  # of a_i^T v
    s: Array  # its variance
    W: Array
    g: Array
    log_density: float  # sum_i E log p
    by_params: np.ndarray  # sum_i E d log p by the log parameters of the likelihood, where asked for


@dataclass(frozen=True, eq=False)
class ExpectedSums(SiteSums):
    """What a step needs of the rows: the sites that they would like to have, and how well q explains them."""

    log_density: float  # sum_i E log p


@dataclass(frozen=True, eq=False)
class ExpectedSlopes(Totals):
    """The gradient as far as it goes through the rows."""

    by_kernel: np.ndarray
    by_likelihood: np.ndarray
    log_density: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best q, or the last one, and the bound there."""

    q: Normal
    value: float
    converged: bool
    n_steps: int


def averages(model: VariationalModel, q: Normal, rows: Rows, chunk: Whitened, *, by_params: bool = False) -> Averages:
    """What q and the likelihood make of a chunk.

    Likelihoods are NumPy's: where matrices live on a device, moments come from there, and threads that have no rows to
    visit average over them.
    """
    mean, s = chunk.A @ q.mean, chunk.explained_var(q)
    y, size = rows.observed()
    moments = y, to_numpy(mean), to_numpy(chunk.r + s), size

    def of_piece(piece: slice) -> list[np.ndarray]:
        chosen = [values[piece] for values in moments]
        slopes = model.likelihood.expected_param_slopes(*chosen) if by_params else []
        return [*model.likelihood.expected(*chosen), *slopes]

    if isinstance(chunk.A, np.ndarray):
        log_density, first, bend, *slopes = of_piece(slice(None))
    else:
        found = threaded_map(of_piece, row_chunks(rows.n, 1, AVERAGED_BYTES))
        log_density, first, bend, *slopes = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
    sums = np.array([slope.sum() for slope in slopes])
    return Averages(mean, s, like(chunk.A, bend), like(chunk.A, first), float(log_density.sum()), sums)


def flat_site_sums(model: VariationalModel, level: float, rows: Rows) -> ExpectedSums:
    """A visit before there is a q: the rows are as curved as at this latent value, and all say that it is right."""
    chunk, (y, size) = Whitened.of(model.inducing, rows.X), rows.observed()
    f = np.full(y.shape, level)
    W = like(chunk.A, np.maximum(-model.likelihood.derivatives(y, f, size).second, 0.0))
    return ExpectedSums(weighted_gram(chunk.A, W), (level * W) @ chunk.A, 0.0)


def site_sums(model: VariationalModel, q: Normal, rows: Rows) -> ExpectedSums:
    """The visit of a step."""
    chunk = Whitened.of(model.inducing, rows.X)
    found = averages(model, q, rows, chunk)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that goes too far has infinite sites, and is not taken
        AA, Ab = weighted_gram(chunk.A, found.W), (found.W * found.mean + found.g) @ chunk.A
    return ExpectedSums(AA, Ab, found.log_density)


def expected_slopes(model: VariationalModel, q: Normal, inner: Array, rows: Rows) -> ExpectedSlopes:
    """The visit of the gradient, with `inner` = (I - S) L^-1."""
    chunk = Whitened.of(model.inducing, rows.X)
    found = averages(model, q, rows, chunk, by_params=True)
    return ExpectedSlopes(chunk.log_gradient(found.W, found.g, q, inner), found.by_params, found.log_density)


def left_out(model: VariationalModel, q: Normal, rows: Rows) -> tuple[Array, Array]:
    """Latent mean and variance at the rows of a chunk, each without its own site."""
    chunk = Whitened.of(model.inducing, rows.X)
    found = averages(model, q, rows, chunk)
    return chunk.left_out(found.mean, found.s, found.W, found.g)


def best_q(model: VariationalModel, source: RowSource, starts: Iterable[Normal]) -> Optimum:
    """Natural-gradient steps from the first start at which the bound is finite, shortened where they do not lead up."""
    for start in starts:
        q, here, value = _visited(model, source, start)
        if np.isfinite(value):
            break
    else:
        raise NotPositiveDefinite(
            f"the variational bound of a {type(model.likelihood).__name__} likelihood is not finite: the inducing "
            "points leave too large a prior variance unexplained"
        )
    path: list[tuple[Normal, Normal]] = []  # the last ones, and where a step from each would lead
    for n_steps in range(1, MAX_STEPS + 1):
        target = here.q
        if 0.5 * q.distance(target) < TOLERANCE * max(1.0, abs(value)):
            return Optimum(target, value, converged=True, n_steps=n_steps)
        path = [*path, (q, target)][-MEMORY:]
        for goal in goals(path):
            nearer, found, reached = _visited(model, source, goal)
            if reached >= value - ROUNDING * abs(value):
                break
            path = path[-1:]
        else:
            return Optimum(q, value, converged=False, n_steps=n_steps)
        q, here, value = nearer, found, reached
    return Optimum(q, value, converged=False, n_steps=MAX_STEPS)


def flat_start(model: VariationalModel, source: RowSource, level: float) -> Normal:
    """A q to start from, around the function that has this latent value everywhere."""
    prepare(model.inducing)
    return source.map_reduce(partial(flat_site_sums, model, level)).q


def bound_gradient(model: VariationalModel, source: RowSource, q: Normal) -> Evidence:
    """The bound at the optimal q, and its gradient by the log parameters of the kernel, then of the likelihood."""
    inducing = model.inducing
    prepare(inducing, q)
    total = source.map_reduce(partial(expected_slopes, model, q, shrunk(inducing, q)))
    gradient = np.concatenate([total.by_kernel + by_inducing(inducing, q), total.by_likelihood])
    return Evidence(total.log_density - q.kl_from_prior, gradient, inducing.added)


def _visited(model: VariationalModel, source: RowSource, q: Normal) -> tuple[Normal, ExpectedSums, float]:
    """q, what a step from it needs, and the bound: minus infinity where rates of e^40 leave a step no digits."""
    prepare(model.inducing, q)
    found = source.map_reduce(partial(site_sums, model, q))
    return q, found, found.log_density - q.kl_from_prior if found.q.is_proper() else -math.inf


class VariationalEngine(SparseEngine):
    """The variational bound of log-concave likelihoods; each answer starts from the q of the last one if `warm`."""

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, *, warm: bool = True):
        super().__init__(source, candidates, Z, choice)
        self.warm = warm
        self._last: Normal | None = None

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        model, found = self._optimum(kernel, likelihood)
        return bound_gradient(model, self.source, found.q)

    def solved(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        model, found = self._optimum(kernel, likelihood)
        prepare(model.inducing, found.q)
        inferred = InferenceResult(
            posterior=model.inducing.posterior(found.q.mean, found.q.precision),
            log_evidence=found.value,
            cavity_mean=np.empty(0),
            cavity_var=np.empty(0),
            converged=found.converged,
            n_iterations=found.n_steps,
            jitter=model.inducing.added,
            n_inducing=self.Z.shape[0],
        )
        return Solved(inferred, partial(left_out, model, found.q))

    def stateless(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, warm=False)

    def _optimum(self, kernel: Kernel, likelihood: Likelihood) -> tuple[VariationalModel, Optimum]:
        model = VariationalModel(Inducing.of(kernel, self.Z), likelihood)
        found = best_q(model, self.source, self._starts(model))
        self._last = found.q if self.warm and found.converged else None
        return model, found

    def _starts(self, model: VariationalModel) -> Iterator[Normal]:
        if self._last is not None:
            yield self._last
        # Around a latent value that suits the rows as a whole, by some of them.
        rows = self.source.sample(most_candidates(self.choice.m), self.choice.seed)
        yield flat_start(model, self.source, model.likelihood.level_start(*rows.observed()))
