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

With Gaussian noise W_i = 1 / s_i, one step is the optimum, and F is the bound of `sparse.py` with power 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

import numpy as np

from gpsift.arrays import Array, eye_like, like, namespace, to_numpy
from gpsift.chunks import row_chunks
from gpsift.inference.exact import Evidence
from gpsift.inference.rows import Rows, RowSource, Totals
from gpsift.inference.sparse import Inducing
from gpsift.kernels import Pairs
from gpsift.likelihoods import Likelihood
from gpsift.linalg import (
    NotPositiveDefinite,
    add_diagonal,
    cholesky,
    cholesky_solve,
    invert_lower,
    log_det_from_cholesky,
    row_products,
    times_transposed,
    total_product,
    weighted_gram,
)
from gpsift.threads import threaded_map

MAX_STEPS = 200
MAX_HALVINGS = 30
# What is left to gain at the end, as a share of the bound. The gradient errs by about its root.
TOLERANCE = 1e-14
# So many places of the path are mixed; directions this near to parallel count as one.
MEMORY = 6
PARALLEL = 1e-10
# Latent values that a thread averages over in one go, where the others are on a device.
AVERAGED_BYTES = 2**17
# A loss below this share of the bound is rounding error.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Model:
    """The bound at given hyperparameters."""

    inducing: Inducing
    likelihood: Likelihood


@dataclass(frozen=True, eq=False)
class Normal:
    """q(v) = N(m, S) by its natural parameters."""

    precision: Array  # P = S^-1, (m, m)
    shift: Array  # P m, (m,)

    @cached_property
    def L_P(self) -> Array:
        return cholesky(self.precision)

    @cached_property
    def L_P_inverse(self) -> Array:
        return invert_lower(self.L_P)

    @cached_property
    def mean(self) -> Array:
        return cholesky_solve(self.L_P, self.shift)

    @cached_property
    def covariance(self) -> Array:
        return self.L_P_inverse.T @ self.L_P_inverse

    @cached_property
    def kl_from_prior(self) -> float:
        """KL(q || N(0, I))."""
        spread = total_product(self.L_P_inverse, self.L_P_inverse)
        size = self.mean.shape[0]
        return 0.5 * float(spread + self.mean @ self.mean - size + log_det_from_cholesky(self.L_P))

    def towards(self, other: Self, step: float) -> Self:
        """A part of the way to another one."""
        return type(self)(
            self.precision + step * (other.precision - self.precision), self.shift + step * (other.shift - self.shift)
        )

    def distance(self, other: Self) -> float:
        """KL(q || other) + KL(other || q), to which the gain of a small step of length 1 is half."""
        shift = self.mean - other.mean
        across = total_product(other.precision - self.precision, self.covariance - other.covariance)
        return 0.5 * float(across + shift @ ((self.precision + other.precision) @ shift))

    def is_proper(self) -> bool:
        """Whether there is such a distribution: rounding and mixtures with negative weights can leave none."""
        try:
            _ = self.L_P
        except NotPositiveDefinite:
            return False
        return True

    def scaled(self, towards: Self, start: Self) -> Array:
        """The way from `start` to another in units of this one's width, flat: its square is twice a small distance."""
        xp, L_inverse = namespace(self.precision), self.L_P_inverse
        by_precision, by_shift = towards.precision - start.precision, towards.shift - start.shift
        of_precision = L_inverse @ by_precision @ L_inverse.T
        of_mean = L_inverse @ (by_shift - by_precision @ self.mean)
        return xp.concat([xp.reshape(of_precision, (-1,)), math.sqrt(2.0) * of_mean])


@dataclass(frozen=True, eq=False)
class Whitened:
    """A chunk of rows in the whitened coordinates."""

    pairs: Pairs
    A: Array  # a_i as rows, (rows, m)
    r: Array  # k_ii - a_i^T a_i


@dataclass(frozen=True, eq=False)
class Explained:
    """A chunk of rows under q: their a_i^T v, and averages over their f(x_i)."""

    mean: Array  # of a_i^T v
    s: Array  # its variance
    W: Array
    g: Array
    log_density: float  # sum_i E log p
    by_params: np.ndarray  # sum_i E d log p by the log parameters of the likelihood, where asked for


@dataclass(frozen=True, eq=False)
class Sites(Totals):
    """What a step needs of the rows: the sites that they would like to have, and how well q explains them."""

    AA: Array  # sum_i W_i a_i a_i^T
    Ab: Array  # sum_i (W_i mu_i + g_i) a_i
    log_density: float  # sum_i E log p

    @cached_property
    def target(self) -> Normal:
        """Where a step of length 1 leads."""
        return Normal(add_diagonal(self.AA, 1.0), self.Ab)


@dataclass(frozen=True, eq=False)
class Slopes(Totals):
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


def whiten(model: Model, rows: Rows) -> Whitened:
    """a_i and k_ii - a_i^T a_i of a chunk."""
    inducing = model.inducing
    pairs = inducing.kernel.between(rows.X, inducing.Z)
    A = inducing.whitened(pairs)
    r = inducing.kernel.diag(rows.X) - row_products(A, A)
    return Whitened(pairs, A, namespace(A).clip(r, 0.0, None))


def explain(model: Model, q: Normal, rows: Rows, chunk: Whitened, *, by_params: bool = False) -> Explained:
    """What q and the likelihood make of a chunk.

    Likelihoods are NumPy's: where matrices live on a device, moments come from there, and threads that have no rows to
    visit average over them.
    """
    V = times_transposed(chunk.A, q.L_P_inverse)
    mean, s = chunk.A @ q.mean, row_products(V, V)
    y, size = rows.observed()
    moments = y, to_numpy(mean), to_numpy(chunk.r + s), size

    def averages(piece: slice) -> list[np.ndarray]:
        of_piece = [values[piece] for values in moments]
        slopes = model.likelihood.expected_param_slopes(*of_piece) if by_params else []
        return [*model.likelihood.expected(*of_piece), *slopes]

    if isinstance(chunk.A, np.ndarray):
        log_density, first, bend, *slopes = averages(slice(None))
    else:
        found = threaded_map(averages, row_chunks(rows.n, 1, AVERAGED_BYTES))
        log_density, first, bend, *slopes = (np.concatenate(pieces) for pieces in zip(*found, strict=True))
    sums = np.array([slope.sum() for slope in slopes])
    return Explained(mean, s, like(chunk.A, bend), like(chunk.A, first), float(log_density.sum()), sums)


def flat_sites(model: Model, level: float, rows: Rows) -> Sites:
    """A visit before there is a q: the rows are as curved as at this latent value, and all say that it is right."""
    chunk, (y, size) = whiten(model, rows), rows.observed()
    f = np.full(y.shape, level)
    W = like(chunk.A, np.maximum(-model.likelihood.derivatives(y, f, size).second, 0.0))
    return Sites(weighted_gram(chunk.A, W), (level * W) @ chunk.A, 0.0)


def sites(model: Model, q: Normal, rows: Rows) -> Sites:
    """The visit of a step."""
    chunk = whiten(model, rows)
    found = explain(model, q, rows, chunk)
    with np.errstate(over="ignore", invalid="ignore"):  # a step that goes too far has infinite sites, and is not taken
        AA, Ab = weighted_gram(chunk.A, found.W), (found.W * found.mean + found.g) @ chunk.A
    return Sites(AA, Ab, found.log_density)


def slopes(model: Model, q: Normal, shrunk: Array, rows: Rows) -> Slopes:
    """The visit of the gradient, with `shrunk` = (I - S) L^-1."""
    chunk, inducing = whiten(model, rows), model.inducing
    found = explain(model, q, rows, chunk, by_params=True)
    G = (found.W[:, None] * chunk.A) @ shrunk
    G += found.g[:, None] * (q.mean @ inducing.L_inverse)
    by_kernel = chunk.pairs.log_gradient(G) + inducing.kernel.diag_log_gradient(rows.X, -0.5 * found.W)
    return Slopes(by_kernel, found.by_params, found.log_density)


def left_out(model: Model, q: Normal, rows: Rows) -> tuple[Array, Array]:
    """Latent mean and variance at the rows of a chunk, each without its own site.

    The sites of the other rows, the inducing points and the hyperparameters stay as they were found with the row.
    """
    chunk, xp = whiten(model, rows), namespace(q.precision)
    found = explain(model, q, rows, chunk)
    # 1 / s - W is what is left of the precision of a_i^T v. Rounding can take the row's leverage above 1.
    kept = xp.clip(1.0 - found.W * found.s, float(xp.finfo(found.s.dtype).eps), None)
    return found.mean - found.g * found.s / kept, chunk.r + found.s / kept


def climb(model: Model, source: RowSource, starts: Iterable[Normal]) -> Optimum:
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
        for goal in _goals(path):
            nearer, found, reached = _visited(model, source, goal)
            if reached >= value - ROUNDING * abs(value):
                break
            path = path[-1:]
        else:
            return Optimum(q, value, converged=False, n_steps=n_steps)
        q, here, value = nearer, found, reached
    return Optimum(q, value, converged=False, n_steps=MAX_STEPS)


def mixed(path: Sequence[tuple[Normal, Normal]]) -> Normal:
    """Anderson's mixture of where the last steps lead: were all linear, a step from there would be the shortest.

    Plain steps creep, or go back and forth, where the signal is large: at a signal variance of 100 with a logit link
    they took 107 visits of the rows, and with mixtures 9.
    """
    here = path[-1][0]
    ways = [here.scaled(target, q) for q, target in path]
    lengths = np.array([math.sqrt(float(way @ way)) for way in ways])
    cosines = np.array([[float(one @ other) for one in ways] for other in ways]) / np.outer(lengths, lengths)
    weights = np.linalg.solve(cosines + PARALLEL * np.eye(len(ways)), 1.0 / lengths) / lengths
    weights /= weights.sum()
    shares = [(float(weight), target) for weight, (_, target) in zip(weights, path, strict=True)]
    return Normal(
        sum(weight * target.precision for weight, target in shares),
        sum(weight * target.shift for weight, target in shares),
    )


def _goals(path: Sequence[tuple[Normal, Normal]]) -> Iterator[Normal]:
    """Where to go from the last place of the path, the boldest first."""
    q, target = path[-1]
    if len(path) > 1:
        mixture = mixed(path)
        if mixture.is_proper():
            yield mixture
    for halving in range(MAX_HALVINGS):
        yield q.towards(target, 0.5**halving)


def flat_start(model: Model, source: RowSource, level: float) -> Normal:
    """A q to start from, around the function that has this latent value everywhere."""
    prepare(model)
    return source.total(partial(flat_sites, model, level)).target


def bound_gradient(model: Model, source: RowSource, q: Normal) -> Evidence:
    """The bound at the optimal q, and its gradient by the log parameters of the kernel, then of the likelihood."""
    inducing, m, S = model.inducing, q.mean, q.covariance
    prepare(model, q)
    total = source.total(partial(slopes, model, q, inducing.L_inverse - S @ inducing.L_inverse))
    H = m[:, None] * m + S + q.precision - 2.0 * eye_like(S, S.shape[0])
    by_kernel = total.by_kernel + inducing.log_gradient(inducing.unwhitened(-0.5 * H))
    gradient = np.concatenate([by_kernel, total.by_likelihood])
    return Evidence(total.log_density - q.kl_from_prior, gradient, inducing.added)


def _visited(model: Model, source: RowSource, q: Normal) -> tuple[Normal, Sites, float]:
    """q, what a step from it needs, and the bound: minus infinity where rates of e^40 leave a step no digits."""
    prepare(model, q)
    found = source.total(partial(sites, model, q))
    return q, found, found.log_density - q.kl_from_prior if found.target.is_proper() else -math.inf


def prepare(model: Model, q: Normal | None = None) -> None:
    """What every visit uses is made once, not by every thread."""
    _ = model.inducing.L_inverse
    if q is not None:
        _ = q.L_P_inverse, q.mean
