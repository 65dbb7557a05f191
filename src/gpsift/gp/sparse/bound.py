r"""Sparse inference with Gaussian noise: m inducing points stand for n rows, at a cost of O(n m^2) (Titsias 2009).

With noise variances s_i the sites of `sites.py` are known before q is: W_i = 1 / s_i, W_i mu_i + g_i = y_i / s_i. One
visit of all rows finds the best q, and with it

.. math::
    F = \sum_i \log N(y_i; 0, s_i) - \sum_i \frac{r_i}{2 s_i} + \tfrac12 m^T S^{-1} m - \tfrac12 \log |S^{-1}| ,

which is log N(y; 0, Q + diag(s)) less the penalty for the prior variance that the points leave, Q = K_xz K_zz^-1 K_zx.
A second visit finds the gradient. By the logarithm of a noise variance that all rows share it is

.. math::
    \tfrac12 \sum_i (s_i g_i^2 - 1 + (r_i + a_i^T S a_i) / s_i) , \qquad
    \sum_i a_i^T S a_i / s_i = \mathrm{tr}(I - S) .
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpsift._utils.arrays import Array, namespace
from gpsift._utils.linalg import log_det_from_cholesky, total_product
from gpsift._utils.rows import Rows, RowSource, Totals
from gpsift.gp.inference.base import LOG_2PI, Evidence
from gpsift.gp.sparse.inducing import Inducing
from gpsift.gp.sparse.natural import Normal
from gpsift.gp.sparse.sites import SiteSums, Whitened, by_inducing, prepare, shrunk
from gpsift.kernels import Kernel
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
        self.sums = source.total(partial(site_sums, model))
        self.q = q = self.sums.q
        gained = 0.5 * float(q.shift @ q.mean - log_det_from_cholesky(q.L_P))
        self.value = self.sums.log_density - 0.5 * self.sums.residual + gained
        prepare(model.inducing, q)

    def gradient(self) -> np.ndarray:
        """Of the bound, by the log parameters of the kernel, then by a noise variance that all rows share."""
        model, q = self.model, self.q
        total = self.source.total(partial(slopes, model, q, shrunk(model.inducing, q)))
        explained = q.mean.shape[0] - total_product(q.L_P_inverse, q.L_P_inverse)  # tr(I - S)
        return np.append(total.by_kernel + by_inducing(model.inducing, q), total.by_noise + 0.5 * explained)

    def elpd(self, rows: RowSource) -> float:
        """Log predictive density of some of the rows, each given all others in the sense of `left_out`."""
        return rows.total(partial(left_out_density, self.model, self.q))

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
