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
from typing import NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, like, to_numpy
from gpsift._utils.linalg import NotPositiveDefinite, weighted_gram
from gpsift._utils.rows import Rows, RowSource, Totals, row_chunks
from gpsift._utils.threads import threaded_map
from gpsift.gp.inference import Evidence
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.engine import Solved, SparseEngine
from gpsift.gp.sparse.inducing import Inducing, most_candidates
from gpsift.gp.sparse.sites import (
    MEMORY,
    NaturalGaussian,
    SiteSums,
    Whitened,
    inducing_gradient,
    inner_factor,
    prepare,
    step_candidates,
)
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood

# Steps of one search for q, at most.
MAX_STEPS = 200
# Expected gain that ends a search, as a share of the bound. The relative error of the gradient is about its root.
TOLERANCE = 1e-14
# Bytes of latent values that a thread averages over at a time, where matrices are on a device.
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
    """Moments of a_i^T v at a chunk of rows under q, and averages over f(x_i)."""

    mean: Array  # of a_i^T v
    s: Array  # its variance
    W: Array
    g: Array
    log_density: float  # sum_i E log p
    by_params: np.ndarray  # sum_i E d log p by the log parameters of the likelihood, where these are needed


@dataclass(frozen=True, eq=False)
class ExpectedSlopes(Totals):
    """Sums over the rows for the gradient."""

    by_kernel: np.ndarray
    by_likelihood: np.ndarray
    log_density: float


@dataclass(frozen=True, eq=False)
class Optimum:
    """The best q, or the last one, and the bound tcurrent."""

    q: NaturalGaussian
    value: float
    converged: bool
    n_steps: int


def averages(
    model: VariationalModel, q: NaturalGaussian, rows: Rows, chunk: Whitened, *, by_params: bool = False
) -> Averages:
    """Average the log density of a chunk of rows and its derivatives over q.

    Likelihoods need NumPy arrays: moments are copied from a device, and threads of this process average over them.
    """
    mean, s = chunk.A @ q.mean, chunk.explained_var(q)
    y, size = rows.targets_and_sizes()
    moments = y, to_numpy(mean), to_numpy(chunk.r + s), size

    def average_piece(piece: slice) -> list[np.ndarray]:
        chosen = [values[piece] for values in moments]
        slopes = model.likelihood.expected_param_slopes(*chosen) if by_params else []
        return [*model.likelihood.expected(*chosen), *slopes]

    if isinstance(chunk.A, np.ndarray):
        log_density, first, bend, *slopes = average_piece(slice(None))
    else:
        found = threaded_map(average_piece, row_chunks(rows.n, 1, AVERAGED_BYTES))
        log_density, first, bend, *slopes = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
    sums = np.array([slope.sum() for slope in slopes])
    return Averages(mean, s, like(chunk.A, bend), like(chunk.A, first), float(log_density.sum()), sums)


def flat_site_sums(model: VariationalModel, level: float, rows: Rows) -> SiteSums:
    """Return the sums for a first q: every row has this latent value as mean, and its curvature."""
    chunk, (y, size) = Whitened.of(model.inducing, rows.X), rows.targets_and_sizes()
    f = np.full(y.shape, level)
    W = like(chunk.A, np.maximum(-model.likelihood.derivatives(y, f, size).second, 0.0))
    return SiteSums(weighted_gram(chunk.A, W), (level * W) @ chunk.A, 0.0)


def site_sums(model: VariationalModel, q: NaturalGaussian, rows: Rows) -> SiteSums:
    """Return the sums of a natural-gradient step."""
    chunk = Whitened.of(model.inducing, rows.X)
    found = averages(model, q, rows, chunk)
    with np.errstate(over="ignore", invalid="ignore"):  # too long a step has infinite sites, and is rejected
        AA, Ab = weighted_gram(chunk.A, found.W), (found.W * found.mean + found.g) @ chunk.A
    return SiteSums(AA, Ab, found.log_density)


def expected_slopes(model: VariationalModel, q: NaturalGaussian, inner: Array, rows: Rows) -> ExpectedSlopes:
    """Return the sums of the gradient, with `inner` = (I - S) L^-1."""
    chunk = Whitened.of(model.inducing, rows.X)
    found = averages(model, q, rows, chunk, by_params=True)
    return ExpectedSlopes(chunk.log_gradient(found.W, found.g, q, inner), found.by_params, found.log_density)


def loo_moments(model: VariationalModel, q: NaturalGaussian, rows: Rows) -> tuple[Array, Array]:
    """Return latent mean and variance at the rows of a chunk, each without its own site."""
    chunk = Whitened.of(model.inducing, rows.X)
    found = averages(model, q, rows, chunk)
    return chunk.loo_moments(found.mean, found.s, found.W, found.g)


class Pass(NamedTuple):
    """The result of a pass over the rows under q: the next q, of the sites under this one, and the bound."""

    q: NaturalGaussian
    target: NaturalGaussian
    value: float

    @classmethod
    def under(cls, q: NaturalGaussian, model: VariationalModel, source: RowSource) -> Self:
        prepare(model.inducing, q)
        sums = source.map_reduce(partial(site_sums, model, q))
        # Rates of e^40 leave no digits for a step.
        return cls(q, sums.q, sums.log_density - q.kl_from_prior if sums.q.is_proper() else -math.inf)


def best_q(model: VariationalModel, source: RowSource, starts: Iterable[NaturalGaussian]) -> Optimum:
    """Take natural-gradient steps from the first start with a finite bound, halved where the bound falls."""
    for start in starts:
        current = Pass.under(start, model, source)
        if np.isfinite(current.value):
            break
    else:
        raise NotPositiveDefinite(
            f"the variational bound of a {type(model.likelihood).__name__} likelihood is not finite: the inducing "
            "points leave too large a prior variance unexplained"
        )
    path: list[tuple[NaturalGaussian, NaturalGaussian]] = []  # the last q, each with its target
    for n_steps in range(1, MAX_STEPS + 1):
        if 0.5 * current.q.distance(current.target) < TOLERANCE * max(1.0, abs(current.value)):
            return Optimum(current.target, current.value, converged=True, n_steps=n_steps)
        path = [*path, (current.q, current.target)][-MEMORY:]
        for candidate in step_candidates(path):
            following = Pass.under(candidate, model, source)
            if following.value >= current.value - ROUNDING * abs(current.value):
                current = following
                break
            path = path[-1:]
        else:
            return Optimum(current.q, current.value, converged=False, n_steps=n_steps)
    return Optimum(current.q, current.value, converged=False, n_steps=MAX_STEPS)


def bound_gradient(model: VariationalModel, source: RowSource, q: NaturalGaussian) -> Evidence:
    """Return the bound at the optimal q, and its gradient by log parameters of the kernel, then of the likelihood."""
    inducing = model.inducing
    prepare(inducing, q)
    total = source.map_reduce(partial(expected_slopes, model, q, inner_factor(inducing, q)))
    gradient = np.concatenate([total.by_kernel + inducing_gradient(inducing, q), total.by_likelihood])
    return Evidence(total.log_density - q.kl_from_prior, gradient, inducing.added)


class VariationalEngine(SparseEngine):
    """The variational bound of log-concave likelihoods; each search starts from the last q if `warm`."""

    def __init__(self, source: RowSource, candidates: np.ndarray, Z: Array, choice: Sparse, *, warm: bool = True):
        super().__init__(source, candidates, Z, choice)
        self.warm = warm
        self._last: NaturalGaussian | None = None

    def evidence(self, kernel: Kernel, likelihood: Likelihood) -> Evidence:
        model, found = self._optimum(kernel, likelihood)
        return bound_gradient(model, self.source, found.q)

    def solve(self, kernel: Kernel, likelihood: Likelihood) -> Solved:
        model, found = self._optimum(kernel, likelihood)
        prepare(model.inducing, found.q)
        status = {"converged": found.converged, "n_iterations": found.n_steps}
        result = self.result(model.inducing, found.q, found.value, **status)
        return Solved(result, partial(loo_moments, model, found.q))

    def stateless(self) -> Self:
        return type(self)(self.source, self.candidates, self.Z, self.choice, warm=False)

    def _optimum(self, kernel: Kernel, likelihood: Likelihood) -> tuple[VariationalModel, Optimum]:
        model = VariationalModel(Inducing.of(kernel, self.Z), likelihood)
        found = best_q(model, self.source, self._starts(model))
        self._last = found.q if self.warm and found.converged else None
        return model, found

    def _starts(self, model: VariationalModel) -> Iterator[NaturalGaussian]:
        if self._last is not None:
            yield self._last
        # Otherwise from a constant function, at the latent value that suits a sample of the rows.
        rows = self.source.sample(most_candidates(self.choice.m), self.choice.seed)
        level = model.likelihood.first_latent_value(*rows.targets_and_sizes())
        prepare(model.inducing)
        yield self.source.map_reduce(partial(flat_site_sums, model, level)).q
