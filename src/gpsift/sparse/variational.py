r"""Sparse inference for likelihoods other than Gaussian noise: the variational bound, at a cost of O(n m^2) a step.

In whitened coordinates, K_zz = L L^T and a_i = L^-1 k(Z, x_i), the function values at the inducing points are L v with
v ~ N(0, I), and the posterior of v is approximated by a normal distribution q(v) = N(m, S). Then f(x_i) is normal with

.. math:: \mu_i = a_i^T m, \qquad \sigma_i^2 = k_{ii} - a_i^T a_i + a_i^T S a_i ,

and no q takes the bound above the log evidence (Hensman, Matthews and Ghahramani 2015, equation 18):

.. math:: F = \sum_i E_{N(\mu_i, \sigma_i^2)} \log p(y_i \mid f) - \mathrm{KL}(q \,\|\, N(0, I)) .

Let g_i = E d log p / df and W_i = -E d2 log p / df2, which is not negative for a log-concave likelihood. By Price's and
Bonnet's theorems dF / d mu_i = g_i and dF / d sigma_i^2 = -W_i / 2, and natural-gradient steps of length 1 lead to

.. math:: S^{-1} = I + \sum_i W_i a_i a_i^T, \qquad S^{-1} m = \sum_i (W_i \mu_i + g_i) a_i ,

where they stay at the optimum; shorter ones lead part of the way in (S^-1, S^-1 m), which are linear in the sites
(Khan and Lin 2017). Each row has a normal site on a_i^T v, of precision W_i, as a row with Gaussian noise has.

At the optimum F moves with the hyperparameters as if q(v) did not:

.. math::
    \partial F / \partial a_i &= g_i m - W_i (S - I) a_i, \qquad \partial F / \partial k_{ii} = -W_i / 2 \\
    \partial F / \partial K_{z i} &= L^{-T} \, \partial F / \partial a_i \\
    \partial F / \partial K_{zz} &= -\tfrac12 L^{-T} H L^{-1}, \qquad
    H = \sum_i (\partial F / \partial a_i) a_i^T = m m^T - 2 I + S + S^{-1} .

With Gaussian noise W_i = 1 / s_i, one step is the optimum, and F is the bound of `bound.py` with power 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from gpsift.arrays import Array, eye_like, like, namespace, to_numpy
from gpsift.chunks import row_chunks
from gpsift.inference.exact import Evidence
from gpsift.kernels import Pairs
from gpsift.likelihoods import Likelihood
from gpsift.linalg import NotPositiveDefinite, add_diagonal, row_products, times_transposed, weighted_gram
from gpsift.sparse.inducing import Inducing
from gpsift.sparse.natural import MEMORY, Normal, goals
from gpsift.sparse.rows import Rows, RowSource, Totals
from gpsift.threads import threaded_map

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
class Coordinates:
    """A chunk of rows in the whitened coordinates."""

    pairs: Pairs
    A: Array  # a_i as rows, (rows, m)
    r: Array  # k_ii - a_i^T a_i


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
class SiteSums(Totals):
    """What a step needs of the rows: the sites that they would like to have, and how well q explains them."""

    AA: Array  # sum_i W_i a_i a_i^T
    Ab: Array  # sum_i (W_i mu_i + g_i) a_i
    log_density: float  # sum_i E log p

    @cached_property
    def target(self) -> Normal:
        """Where a step of length 1 leads."""
        return Normal(add_diagonal(self.AA, 1.0), self.Ab)


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


def whiten(model: VariationalModel, rows: Rows) -> Coordinates:
    """a_i and k_ii - a_i^T a_i of a chunk."""
    inducing = model.inducing
    pairs = inducing.kernel.between(rows.X, inducing.Z)
    A = inducing.whitened(pairs)
    r = inducing.kernel.diag(rows.X) - row_products(A, A)
    return Coordinates(pairs, A, namespace(A).clip(r, 0.0, None))


def averages(
    model: VariationalModel, q: Normal, rows: Rows, chunk: Coordinates, *, by_params: bool = False
) -> Averages:
    """What q and the likelihood make of a chunk.

    Likelihoods are NumPy's: where matrices live on a device, moments come from there, and threads that have no rows to
    visit average over them.
    """
    V = times_transposed(chunk.A, q.L_P_inverse)
    mean, s = chunk.A @ q.mean, row_products(V, V)
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


def flat_site_sums(model: VariationalModel, level: float, rows: Rows) -> SiteSums:
    """A visit before there is a q: the rows are as curved as at this latent value, and all say that it is right."""
    chunk, (y, size) = whiten(model, rows), rows.observed()
    f = np.full(y.shape, level)
    W = like(chunk.A, np.maximum(-model.likelihood.derivatives(y, f, size).second, 0.0))
    return SiteSums(weighted_gram(chunk.A, W), (level * W) @ chunk.A, 0.0)


def site_sums(model: VariationalModel, q: Normal, rows: Rows) -> SiteSums:
    """The visit of a step."""
    chunk = whiten(model, rows)
    found = averages(model, q, rows, chunk)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that goes too far has infinite sites, and is not taken
        AA, Ab = weighted_gram(chunk.A, found.W), (found.W * found.mean + found.g) @ chunk.A
    return SiteSums(AA, Ab, found.log_density)


def expected_slopes(model: VariationalModel, q: Normal, shrunk: Array, rows: Rows) -> ExpectedSlopes:
    """The visit of the gradient, with `shrunk` = (I - S) L^-1."""
    chunk, inducing = whiten(model, rows), model.inducing
    found = averages(model, q, rows, chunk, by_params=True)
    G = (found.W[:, None] * chunk.A) @ shrunk
    G += found.g[:, None] * (q.mean @ inducing.L_inverse)
    by_kernel = chunk.pairs.log_gradient(G) + inducing.kernel.diag_log_gradient(rows.X, -0.5 * found.W)
    return ExpectedSlopes(by_kernel, found.by_params, found.log_density)


def left_out(model: VariationalModel, q: Normal, rows: Rows) -> tuple[Array, Array]:
    """Latent mean and variance at the rows of a chunk, each without its own site.

    The sites of the other rows, the inducing points and the hyperparameters stay as they were found with the row.
    """
    chunk, xp = whiten(model, rows), namespace(q.precision)
    found = averages(model, q, rows, chunk)
    # 1 / s - W is what is left of the precision of a_i^T v. Rounding can take the row's leverage above 1.
    kept = xp.clip(1.0 - found.W * found.s, float(xp.finfo(found.s.dtype).eps), None)
    return found.mean - found.g * found.s / kept, chunk.r + found.s / kept


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
        target = here.target
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
    prepare(model)
    return source.total(partial(flat_site_sums, model, level)).target


def bound_gradient(model: VariationalModel, source: RowSource, q: Normal) -> Evidence:
    """The bound at the optimal q, and its gradient by the log parameters of the kernel, then of the likelihood."""
    inducing, m, S = model.inducing, q.mean, q.covariance
    prepare(model, q)
    total = source.total(partial(expected_slopes, model, q, inducing.L_inverse - S @ inducing.L_inverse))
    H = m[:, None] * m + S + q.precision - 2.0 * eye_like(S, S.shape[0])
    by_kernel = total.by_kernel + inducing.log_gradient(inducing.unwhitened(-0.5 * H))
    gradient = np.concatenate([by_kernel, total.by_likelihood])
    return Evidence(total.log_density - q.kl_from_prior, gradient, inducing.added)


def _visited(model: VariationalModel, source: RowSource, q: Normal) -> tuple[Normal, SiteSums, float]:
    """q, what a step from it needs, and the bound: minus infinity where rates of e^40 leave a step no digits."""
    prepare(model, q)
    found = source.total(partial(site_sums, model, q))
    return q, found, found.log_density - q.kl_from_prior if found.target.is_proper() else -math.inf


def prepare(model: VariationalModel, q: Normal | None = None) -> None:
    """What every visit uses is made once, not by every thread."""
    _ = model.inducing.L_inverse
    if q is not None:
        _ = q.L_P_inverse, q.mean
