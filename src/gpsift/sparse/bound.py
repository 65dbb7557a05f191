r"""Sparse inference with Gaussian noise: m inducing points stand for n rows, at a cost of O(n m^2).

One objective with a power a between 0 and 1 (Bui, Yan and Turner 2017): a = 0 is the variational bound (Titsias 2009),
which never exceeds the evidence, a = 1 is FITC (Snelson and Ghahramani 2006). With Q = K_xz K_zz^-1 K_zx, the prior
variance that it leaves, r_i = k_ii - Q_ii, and the noise s_i,

.. math::
    F = \log N(y; 0, Q + \mathrm{diag}(D)) - \frac{1 - a}{2} \sum_i \frac{\log(1 + a r_i / s_i)}{a},
    \qquad D_i = s_i + a r_i .

All of it is computed in whitened coordinates: K_zz = L L^T, A = D^-1/2 K_xz L^-T, B = I + A^T A = L_B L_B^T. B has no
eigenvalue below 1, whatever the conditioning of K_zz. With u = B^-1 A^T D^-1/2 y and alpha = (Q + D)^-1 y,

.. math::
    \partial F / \partial D_i &= h_i = \tfrac12 (\alpha_i^2 - (Q + D)^{-1}_{ii}), \qquad
    (Q + D)^{-1}_{ii} = (1 - |A_i L_B^{-T}|^2) / D_i \\
    \partial F / \partial r_i &= \rho_i = a h_i - (1 - a) / (2 D_i) \\
    \partial F / \partial K_{i z} &= (\alpha_i u^T - D_i^{-1/2} A_i B^{-1} - 2 \rho_i D_i^{1/2} A_i) L^{-1} \\
    \partial F / \partial K_{zz} &= -L^{-T} \left(\tfrac12 (u u^T - I + B^{-1}) - \textstyle\sum_i \rho_i D_i A_i^T A_i
    \right) L^{-1} .

Rows enter by sums only. Two visits of all rows make them: the first gives A^T A and A^T D^-1/2 y, and with them B
and u; the second gives the gradient. For a = 0, rho_i D_i = -1/2 for every row, and two products are all of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from gpsift.arrays import Array, eye_like, namespace
from gpsift.inference.exact import LOG_2PI, Evidence
from gpsift.kernels import Kernel, Pairs
from gpsift.linalg import (
    add_diagonal,
    inverse_from_cholesky,
    invert_lower,
    jittered_cholesky,
    log_det_from_cholesky,
    row_products,
    solve_lower,
    times_transposed,
)
from gpsift.posterior import Posterior
from gpsift.sparse.inducing import Inducing
from gpsift.sparse.rows import Rows, RowSource, Totals


@dataclass(frozen=True, eq=False)
class BoundModel:
    """The objective at given hyperparameters; `noise_var` is None where each row has its own."""

    inducing: Inducing
    noise_var: float | None
    power: float

    def noise(self, rows: Rows) -> Array | float:
        return rows.noise_var if self.noise_var is None else self.noise_var


@dataclass(frozen=True, eq=False)
class Whitened:
    """A chunk of rows in the whitened coordinates."""

    pairs: Pairs
    A: Array  # (rows, m)
    y: Array  # D^-1/2 y
    s: Array | float
    D: Array
    root: Array  # D^1/2
    r: Array


@dataclass(frozen=True, eq=False)
class RowSums(Totals):
    """What the first visit finds: all that the posterior and the value of the objective need of the rows."""

    AA: Array  # A^T A, (m, m)
    Ay: Array  # A^T D^-1/2 y, (m,)
    yy: float  # sum y^2 / D
    log_det: float  # sum log D
    penalty: float  # sum log(1 + a r / s) / a
    n: int


@dataclass(frozen=True, eq=False)
class GradientSums(Totals):
    """What the second visit finds: the gradient as far as it goes through the rows."""

    by_kernel: np.ndarray
    by_noise: float
    AA: Array  # sum_i rho_i D_i A_i^T A_i


@dataclass(frozen=True, eq=False)
class Solution:
    """What follows from the sums: B = L_B L_B^T, u, and the value of the objective."""

    sums: RowSums
    L_B: Array
    u: Array
    value: float

    @cached_property
    def B_inverse(self) -> Array:
        return inverse_from_cholesky(self.L_B)

    @cached_property
    def L_B_inverse(self) -> Array:
        return invert_lower(self.L_B)


def whiten(model: BoundModel, rows: Rows) -> Whitened:
    """A, D and r of a chunk."""
    xp, inducing = namespace(rows.X), model.inducing
    pairs = inducing.kernel.between(rows.X, inducing.Z)
    root = inducing.whitened(pairs)
    r = xp.clip(inducing.kernel.diag(rows.X) - row_products(root, root), 0.0, None)
    s = model.noise(rows)
    D = s + model.power * r
    root_D = xp.sqrt(D)
    root /= root_D[:, None]
    return Whitened(pairs, root, rows.y / root_D, s, D, root_D, r)


def row_sums(model: BoundModel, rows: Rows) -> RowSums:
    """The first visit of a chunk."""
    chunk, power = whiten(model, rows), model.power
    xp, t = namespace(chunk.A), chunk.r / chunk.s
    return RowSums(
        AA=chunk.A.T @ chunk.A,
        Ay=chunk.y @ chunk.A,
        yy=float(chunk.y @ chunk.y),
        log_det=float(xp.sum(xp.log(chunk.D))),
        penalty=float(xp.sum(xp.log1p(power * t)) / power if power > 0.0 else xp.sum(t)),
        n=rows.n,
    )


def solve(model: BoundModel, total: RowSums) -> Solution:
    """B, u and the value, from the sums over all rows."""
    L_B, _ = jittered_cholesky(add_diagonal(total.AA, 1.0))
    c = solve_lower(L_B, total.Ay)
    log_normal = -0.5 * (total.n * LOG_2PI + total.log_det + float(log_det_from_cholesky(L_B) - c @ c) + total.yy)
    value = log_normal - 0.5 * (1.0 - model.power) * total.penalty
    return Solution(total, L_B, solve_lower(L_B, c, transpose=True), value)


def inverse_terms(chunk: Whitened, solution: Solution) -> tuple[Array, Array]:
    """alpha and the diagonal of (Q + D)^-1 for the rows of a chunk."""
    xp = namespace(chunk.A)
    V = times_transposed(chunk.A, solution.L_B_inverse)
    # Where a row decides alone, rounding can take its leverage above 1.
    leverage = xp.clip(row_products(V, V), 0.0, 1.0 - xp.finfo(V.dtype).eps)
    return _alpha(chunk, solution), (1.0 - leverage) / chunk.D


def gradient_sums(model: BoundModel, solution: Solution, rows: Rows) -> GradientSums:
    """The second visit of a chunk."""
    chunk, power, inducing = whiten(model, rows), model.power, model.inducing
    xp, A, D = namespace(chunk.A), chunk.A, chunk.D
    alpha, precision = inverse_terms(chunk, solution)
    h = 0.5 * (alpha**2 - precision)
    rho = xp.where(chunk.r > 0.0, power * h - 0.5 * (1.0 - power) / D, xp.zeros_like(D))
    whitened = (2.0 * rho * chunk.root)[:, None] * A
    whitened += (A / chunk.root[:, None]) @ solution.B_inverse
    G = alpha[:, None] * solution.u - whitened
    by_noise = xp.sum(chunk.s * h + 0.5 * (1.0 - power) * chunk.r / D)
    return GradientSums(
        chunk.pairs.log_gradient(G @ inducing.L_inverse) + inducing.kernel.diag_log_gradient(rows.X, rho),
        float(by_noise),
        A.T @ ((rho * D)[:, None] * A),
    )


def variational_gradient_sums(model: BoundModel, solution: Solution, shrunk: Array, rows: Rows) -> GradientSums:
    """The second visit for power 0, with `shrunk` = (I - B^-1) L^-1.

    h is needed in its sum only, and its part with the leverages is a trace.
    """
    chunk = whiten(model, rows)
    xp, D, alpha = namespace(chunk.A), chunk.D, _alpha(chunk, solution)
    A = chunk.A
    A /= chunk.root[:, None]
    G = A @ shrunk
    G += alpha[:, None] * (solution.u @ model.inducing.L_inverse)
    return GradientSums(
        chunk.pairs.log_gradient(G) + model.inducing.kernel.diag_log_gradient(rows.X, -0.5 / D),
        0.5 * float(xp.sum(D * alpha**2 - 1.0 + chunk.r / D)),
        0.0,  # what it would hold is half of the first visit's A^T A, with a minus
    )


def _by_inducing_covariance(model: BoundModel, solution: Solution, by_rows: Array) -> Array:
    """dF / dK_zz, (m, m), with `by_rows` = sum_i rho_i D_i A_i^T A_i."""
    u, B_inverse = solution.u, solution.B_inverse
    return model.inducing.unwhitened(by_rows - 0.5 * (u[:, None] * u + B_inverse - eye_like(B_inverse, u.shape[0])))


def left_out(model: BoundModel, solution: Solution, rows: Rows) -> tuple[Array, Array]:
    """Latent mean and variance at the rows of a chunk, each given all others, inducing points kept.

    Sites do not see one another, so leaving a row out is leaving its site out, exactly. What remains is that the
    inducing points, like the hyperparameters, were chosen with the row.
    """
    chunk = whiten(model, rows)
    alpha, precision = inverse_terms(chunk, solution)
    var = 1.0 / precision - chunk.D + chunk.r
    return rows.y - alpha / precision, namespace(var).clip(var, 0.0, None)


def left_out_density(model: BoundModel, solution: Solution, rows: Rows) -> float:
    """How well the rows of a chunk are predicted, each by all others."""
    mean, var = left_out(model, solution, rows)
    xp, var = namespace(mean), var + model.noise(rows)
    return -0.5 * float(xp.sum(xp.log(var) + (rows.y - mean) ** 2 / var + LOG_2PI))


def _alpha(chunk: Whitened, solution: Solution) -> Array:
    return (chunk.y - chunk.A @ solution.u) / chunk.root


class Passes:
    """All rows of a data set under one model."""

    def __init__(self, model: BoundModel, source: RowSource):
        self.model, self.source = model, source
        _ = model.inducing.L_inverse  # made once, not by every thread
        self.solution = solve(model, source.total(partial(row_sums, model)))

    def gradient(self) -> np.ndarray:
        """Of the objective, by the log parameters of the kernel, then by a noise variance that all rows share."""
        model, solution = self.model, self.solution
        if model.power == 0.0:
            total = self.source.total(partial(variational_gradient_sums, model, solution, self._shrunk))
            xp, B_inverse = namespace(solution.u), solution.B_inverse
            by_rows = -0.5 * solution.sums.AA
            by_noise = total.by_noise + 0.5 * float(B_inverse.shape[0] - xp.sum(xp.linalg.diagonal(B_inverse)))
        else:
            _ = solution.L_B_inverse, solution.B_inverse  # made once, not by every thread
            total = self.source.total(partial(gradient_sums, model, solution))
            by_rows, by_noise = total.AA, total.by_noise
        by_kernel = total.by_kernel + model.inducing.log_gradient(_by_inducing_covariance(model, solution, by_rows))
        return np.append(by_kernel, by_noise)

    @property
    def _shrunk(self) -> Array:
        inverse = self.model.inducing.L_inverse
        return inverse - self.solution.B_inverse @ inverse

    def elpd(self, rows: RowSource) -> float:
        """Log predictive density of some of the rows, each given all others in the sense of `left_out`."""
        _ = self.solution.L_B_inverse  # made once, not by every thread
        return rows.total(partial(left_out_density, self.model, self.solution))

    def posterior(self) -> Posterior:
        """With the inducing points as support."""
        return self.model.inducing.posterior(self.solution.u, add_diagonal(self.solution.sums.AA, 1.0))


def bound_evidence(model: BoundModel, source: RowSource) -> Evidence:
    """The objective F with its gradient."""
    passes = Passes(model, source)
    value = passes.solution.value
    return Evidence(value if math.isfinite(value) else -math.inf, passes.gradient(), model.inducing.added)


def bound_model(kernel: Kernel, Z: Array, noise_var: float | None = None, *, power: float = 0.0) -> BoundModel:
    """The objective of Gaussian observations with these inducing points."""
    return BoundModel(Inducing.of(kernel, Z), noise_var, power)
