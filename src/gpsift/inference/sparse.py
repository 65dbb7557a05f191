r"""Sparse inference with Gaussian noise: m inducing points stand for n rows, at a cost of O(n m^2).

One objective with a power a between 0 and 1 (Bui, Yan and Turner 2017): a = 0 is the variational bound (Titsias 2009),
which never exceeds the evidence, a = 1 is FITC (Snelson and Ghahramani 2006). With Q = K_xz K_zz^-1 K_zx, the prior
variance that it leaves, r_i = k_ii - Q_ii, and the noise s_i,

.. math::
    F = \log N(y; 0, Q + \mathrm{diag}(D)) - \frac{1 - a}{2} \sum_i \frac{\log(1 + a r_i / s_i)}{a},
    \qquad D_i = s_i + a r_i .

All of it is computed in whitened coordinates: K_zz = L L^T, A = L^-1 K_zx D^-1/2, B = I + A A^T = L_B L_B^T. B has no
eigenvalue below 1, whatever the conditioning of K_zz. With u = B^-1 A D^-1/2 y and alpha = (Q + D)^-1 y,

.. math::
    \partial F / \partial D_i &= h_i = \tfrac12 (\alpha_i^2 - (Q + D)^{-1}_{ii}), \qquad
    (Q + D)^{-1}_{ii} = (1 - |L_B^{-1} A_i|^2) / D_i \\
    \partial F / \partial r_i &= \rho_i = a h_i - (1 - a) / (2 D_i) \\
    \partial F / \partial K_{z i} &= L^{-T} (u \alpha_i - B^{-1} A_i D_i^{-1/2} - 2 \rho_i D_i^{1/2} A_i) \\
    \partial F / \partial K_{zz} &= -L^{-T} \left(\tfrac12 (u u^T - I + B^{-1}) - \textstyle\sum_i \rho_i D_i A_i A_i^T
    \right) L^{-1} .

Rows enter by sums only. Two passes over chunks of rows make them: the first gives A A^T and A D^-1/2 y, and with them B
and u; the second gives the gradient. A chunk is a pure function of its rows and of m x m matrices, and its results are
added, so that the chunks may live anywhere.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from gpsift.arrays import Array, eye_like, namespace
from gpsift.chunks import CHUNK_BYTES, row_chunks
from gpsift.inference.exact import LOG_2PI, Evidence
from gpsift.kernels import Kernel, Pairs
from gpsift.linalg import add_diagonal, inverse_from_cholesky, jittered_cholesky, log_det_from_cholesky, solve_lower
from gpsift.posterior import Posterior, TriangularFactor

# Added to the diagonal of K_zz, relative to its mean: always the same share, so that the objective stays smooth.
JITTER = 1e-10


@dataclass(frozen=True, eq=False)
class Rows:
    """Observations; `noise_var` is one number, or one for each row."""

    X: Array
    y: Array
    noise_var: Array

    def chunks(self, n_columns: int, chunk_bytes: int) -> list[Rows]:
        """The same rows in parts of which a matrix with this many columns takes no more than `chunk_bytes`."""
        parts = row_chunks(self.X.shape[0], n_columns, chunk_bytes)
        is_shared = isinstance(self.noise_var, float)
        return [Rows(self.X[s, :], self.y[s], self.noise_var if is_shared else self.noise_var[s]) for s in parts]


@dataclass(frozen=True, eq=False)
class Inducing:
    """The inducing points under a kernel: K_zz plus jitter = L L^T."""

    kernel: Kernel
    Z: Array
    pairs: Pairs
    L: Array
    jitter: float
    added: float  # the part of it that goes beyond the usual share
    power: float

    @classmethod
    def of(cls, kernel: Kernel, Z: Array, power: float) -> Self:
        pairs = kernel.between(Z, Z)
        jitter = JITTER * float(namespace(Z).mean(kernel.diag(Z)))
        L, more = jittered_cholesky(add_diagonal(pairs.K, jitter))
        return cls(kernel, Z, pairs, L, jitter + more, more, power)

    @property
    def jitter_share(self) -> float:
        """The jitter relative to the mean diagonal, with which it moves."""
        return self.jitter / float(namespace(self.Z).mean(self.kernel.diag(self.Z)))


@dataclass(frozen=True, eq=False)
class Whitened:
    """A chunk of rows in the whitened coordinates."""

    rows: Rows
    pairs: Pairs
    A: Array  # (m, rows)
    D: Array
    r: Array

    @property
    def root_D(self) -> Array:
        return namespace(self.D).sqrt(self.D)


@dataclass(frozen=True, eq=False)
class Totals:
    """Sums over rows: those of two sets of rows are added entry by entry."""

    def __add__(self, other: Self) -> Self:
        return type(self)(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True, eq=False)
class Moments(Totals):
    """What the first pass finds: all that the posterior and the value of the objective need of the rows."""

    AA: Array  # A A^T, (m, m)
    Ay: Array  # A D^-1/2 y, (m,)
    yy: float  # sum y^2 / D
    log_det: float  # sum log D
    penalty: float  # sum log(1 + a r / s) / a
    n: int


@dataclass(frozen=True, eq=False)
class Slopes(Totals):
    """What the second pass finds: the gradient as far as it goes through the rows."""

    by_kernel: np.ndarray
    by_noise: float
    AA: Array  # sum_i rho_i D_i A_i A_i^T


@dataclass(frozen=True, eq=False)
class Solution:
    """What follows from the moments: B = L_B L_B^T, u, and the value of the objective."""

    L_B: Array
    u: Array
    value: float


@dataclass(frozen=True, eq=False)
class Sites:
    """alpha and the diagonal of (Q + D)^-1, for a chunk of rows."""

    alpha: Array
    precision: Array
    V: Array  # L_B^-1 A


def whiten(inducing: Inducing, rows: Rows) -> Whitened:
    """A, D and r of a chunk."""
    xp = namespace(rows.X)
    pairs = inducing.kernel.between(rows.X, inducing.Z)
    root = solve_lower(inducing.L, pairs.K.T)
    r = xp.clip(inducing.kernel.diag(rows.X) - xp.sum(root * root, axis=0), 0.0, None)
    D = rows.noise_var + inducing.power * r
    return Whitened(rows, pairs, root / xp.sqrt(D), D, r)


def moments(inducing: Inducing, chunk: Whitened) -> Moments:
    """The first pass over a chunk."""
    xp, power = namespace(chunk.A), inducing.power
    y = chunk.rows.y / chunk.root_D
    t = chunk.r / chunk.rows.noise_var
    return Moments(
        AA=chunk.A @ chunk.A.T,
        Ay=chunk.A @ y,
        yy=float(y @ y),
        log_det=float(xp.sum(xp.log(chunk.D))),
        penalty=float(xp.sum(xp.log1p(power * t)) / power if power > 0.0 else xp.sum(t)),
        n=y.shape[0],
    )


def solve(inducing: Inducing, total: Moments) -> Solution:
    """B, u and the value, from the moments of all rows."""
    L_B, _ = jittered_cholesky(add_diagonal(total.AA, 1.0))
    c = solve_lower(L_B, total.Ay)
    log_normal = -0.5 * (total.n * LOG_2PI + total.log_det + float(log_det_from_cholesky(L_B) - c @ c) + total.yy)
    value = log_normal - 0.5 * (1.0 - inducing.power) * total.penalty
    return Solution(L_B, solve_lower(L_B, c, transpose=True), value)


def sites(chunk: Whitened, solution: Solution) -> Sites:
    """alpha and the diagonal of (Q + D)^-1 for the rows of a chunk."""
    xp = namespace(chunk.A)
    V = solve_lower(solution.L_B, chunk.A)
    # Where a row decides alone, rounding can take its leverage above 1.
    leverage = xp.clip(xp.sum(V * V, axis=0), 0.0, 1.0 - xp.finfo(V.dtype).eps)
    alpha = (chunk.rows.y / chunk.root_D - solution.u @ chunk.A) / chunk.root_D
    return Sites(alpha, (1.0 - leverage) / chunk.D, V)


def slopes(inducing: Inducing, solution: Solution, chunk: Whitened) -> Slopes:
    """The second pass over a chunk."""
    xp, power = namespace(chunk.A), inducing.power
    site, A, D, root_D, noise_var = sites(chunk, solution), chunk.A, chunk.D, chunk.root_D, chunk.rows.noise_var
    h = 0.5 * (site.alpha**2 - site.precision)
    rho = xp.where(chunk.r > 0.0, power * h - 0.5 * (1.0 - power) / D, xp.zeros_like(D))
    whitened = solution.u[:, None] * site.alpha - (2.0 * rho * root_D) * A
    whitened -= solve_lower(solution.L_B, site.V, transpose=True) / root_D
    G = solve_lower(inducing.L, whitened, transpose=True).T
    by_kernel = chunk.pairs.log_gradient(G) + inducing.kernel.diag_log_gradient(chunk.rows.X, rho)
    by_noise = xp.sum(noise_var * h + 0.5 * (1.0 - power) * chunk.r / D)
    return Slopes(by_kernel, float(by_noise), (A * (rho * D)) @ A.T)


def gradient(inducing: Inducing, solution: Solution, total: Slopes) -> np.ndarray:
    """By the log parameters of the kernel, then by a noise variance that all rows share."""
    xp, L = namespace(inducing.L), inducing.L
    u, B_inverse = solution.u, inverse_from_cholesky(solution.L_B)
    inner = total.AA - 0.5 * (u[:, None] * u + B_inverse - eye_like(L, L.shape[0]))
    G = solve_lower(L, solve_lower(L, inner, transpose=True).T, transpose=True)
    # The jitter is a share of the mean diagonal, and moves with it.
    G = add_diagonal(G, inducing.jitter_share * float(xp.mean(xp.linalg.diagonal(G))))
    return np.append(total.by_kernel + inducing.pairs.log_gradient(G), total.by_noise)


class Passes:
    """The rows of a data set under one kernel, chunk by chunk; a single chunk is kept from one pass to the next."""

    def __init__(self, inducing: Inducing, rows: Rows, chunk_bytes: int = CHUNK_BYTES):
        self.inducing = inducing
        self._chunks: Sequence[Rows] = rows.chunks(inducing.Z.shape[0], chunk_bytes)
        self._kept = whiten(inducing, self._chunks[0]) if len(self._chunks) == 1 else None
        self.solution = solve(inducing, self._total(lambda chunk: moments(inducing, chunk)))

    def gradient(self) -> np.ndarray:
        """Of the objective; see `gradient`."""
        total = self._total(lambda chunk: slopes(self.inducing, self.solution, chunk))
        return gradient(self.inducing, self.solution, total)

    def cavities(self) -> tuple[np.ndarray, np.ndarray]:
        """Latent mean and variance at each row given all others, inducing points kept, (n,) each.

        Sites do not see one another, so leaving a row out is leaving its site out, exactly. What remains is that the
        inducing points, like the hyperparameters, were chosen with the row.
        """
        means, variances = [], []
        for chunk in self._whitened():
            site = sites(chunk, self.solution)
            means.append(chunk.rows.y - site.alpha / site.precision)
            variances.append(1.0 / site.precision - chunk.D + chunk.r)
        xp = namespace(self.inducing.Z)
        return xp.concat(means), xp.clip(xp.concat(variances), 0.0, None)

    def posterior(self) -> Posterior:
        """M = K_zz^-1 - (L B L^T)^-1 and w = L^-T u, with the inducing points as support."""
        L, solution = self.inducing.L, self.solution
        factors = (TriangularFactor(L), TriangularFactor(L @ solution.L_B, sign=-1.0))
        return Posterior(self.inducing.kernel, self.inducing.Z, solve_lower(L, solution.u, transpose=True), factors)

    def _whitened(self) -> Any:
        if self._kept is not None:
            return (self._kept,)
        return (whiten(self.inducing, chunk) for chunk in self._chunks)

    def _total(self, of: Any) -> Any:
        return functools.reduce(operator.add, map(of, self._whitened()))


def sparse_evidence(
    kernel: Kernel,
    Z: Array,
    X: Array,
    y: Array,
    noise_var: Array | float,
    *,
    power: float = 0.0,
    chunk_bytes: int = CHUNK_BYTES,
) -> Evidence:
    """The objective F of Gaussian observations y = f(X) + noise, with its gradient; `noise_var` as in `Rows`."""
    passes = Passes(Inducing.of(kernel, Z, power), Rows(X, y, noise_var), chunk_bytes)
    value = passes.solution.value
    return Evidence(value if math.isfinite(value) else -math.inf, passes.gradient(), passes.inducing.added)
