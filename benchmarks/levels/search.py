r"""Models of many data sets at once: log evidence with its gradient, and a search for hyperparameters.

The covariance of the rows is s K0 + c + v I with K0 the squared exponential of the columns that are on. With
G = a a^T - C^-1 twice the slope of the log evidence by the covariance C, a = C^-1 y, and W = G o s K0, the slope by the
logarithm of a length-scale is sum_i x_i^2 (W 1)_i - x^T W x, x the column in length-scales.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, lgamma, log

import torch
from torch import Tensor

# Iterations that the curvature is remembered for, halvings of a step, and the share of the expected gain that is asked.
MEMORY, MOST_HALVINGS, LEAST_SHARE = 10, 8, 1e-4
# What the diagonal gets in addition where a covariance matrix has no Cholesky factor: it leads nowhere.
LEAST_NOISE_VAR = 1e-8
# Steps of log signal, constant and noise variances relative to those of log length-scales.
SIGNAL, CONSTANT, NOISE = 0, 1, 2
STEPS = (2.0, 4.0, 2.0)
START = (1.0, 1.0, 0.1)


@dataclass(frozen=True)
class Prior:
    """Inverse gamma (`shape`, 10) of length-scales as a density of logarithms, half-t of 4 degrees of magnitudes.

    `log_noise` says whether that of the noise is a density of logarithms, too, as `gpsift.MAP` has it.
    """

    shape: float
    log_noise: bool

    def __call__(self, log_l: Tensor, on: Tensor, log_var: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Log density (B,), and slopes by log length-scales (B, A) and by log variances (B, 3)."""
        inverse = torch.where(on, 10.0 * torch.exp(-log_l), 0.0)
        level = self.shape * log(10.0) - lgamma(self.shape)
        density = torch.where(on, level - self.shape * log_l - inverse, 0.0).sum(1)
        slope = torch.where(on, inverse - self.shape, 0.0)
        ratio = torch.exp(log_var) / 4.0
        density = density - 2.5 * torch.log1p(ratio).sum(1)
        by_var = -2.5 * ratio / (1.0 + ratio)
        if self.log_noise:
            density = density + 0.5 * log_var[:, NOISE]
            by_var = by_var.clone()
            by_var[:, NOISE] += 0.5
        return density, slope, by_var


@dataclass(frozen=True, eq=False)
class Models:
    """Models of B data sets of n rows, standardised: X (B, n, p), y (B, n), and logarithms of length-scales (B, p),
    infinite where a column is off, and of the variances of signal, constant and noise (B, 3).
    """

    X: Tensor
    y: Tensor
    log_l: Tensor
    log_var: Tensor

    @classmethod
    def without_columns(cls, X: Tensor, y: Tensor) -> Models:
        return cls(X, y, torch.full_like(X[:, 0], inf), fresh_variances(X))

    @classmethod
    def with_all(cls, X: Tensor, y: Tensor) -> Models:
        """Where a search of all length-scales begins."""
        return cls(X, y, torch.full_like(X[:, 0], 0.5 * log(X.shape[2])), fresh_variances(X))

    @property
    def on(self) -> Tensor:
        return torch.isfinite(self.log_l)

    def at(self, which: Tensor) -> Models:
        return Models(self.X[which], self.y[which], self.log_l[which], self.log_var[which])

    def put(self, which: Tensor, others: Models) -> Models:
        """With those at some places exchanged."""
        log_l, log_var = self.log_l.clone(), self.log_var.clone()
        log_l[which], log_var[which] = others.log_l, others.log_var
        return Models(self.X, self.y, log_l, log_var)

    def with_params(self, log_l: Tensor, log_var: Tensor) -> Models:
        return Models(self.X, self.y, log_l, log_var)

    def scaled(self, X: Tensor | None = None) -> Tensor:
        """Columns in length-scales, (B, n, A), those that are on first."""
        X = self.X if X is None else X
        columns, on = self.columns()
        taken = torch.gather(X, 2, columns[:, None, :].expand(-1, X.shape[1], -1))
        return taken * torch.where(on, torch.exp(-torch.gather(self.log_l, 1, columns)), 0.0)[:, None, :]

    def columns(self) -> tuple[Tensor, Tensor]:
        """Numbers (B, A) of the columns that are on, A as many as any has, and which of them really are."""
        most = int(self.on.sum(1).max()) if len(self.y) else 0
        order = torch.argsort(self.on.to(torch.int8), dim=1, descending=True, stable=True)[:, :most]
        return order, torch.gather(self.on, 1, order)

    def radial(self, there: Tensor | None = None) -> Tensor:
        """K0 between the rows, or between further rows and them."""
        A = self.scaled()
        return squared_exponential(A if there is None else self.scaled(there), A)

    def factor(self) -> tuple[Tensor, Tensor, Tensor]:
        """K0, the Cholesky factor of the covariance, and which have none."""
        K0 = self.radial()
        s, c, v = torch.exp(self.log_var).unbind(1)
        C = s[:, None, None] * K0 + c[:, None, None]
        C.diagonal(dim1=1, dim2=2).add_((v + LEAST_NOISE_VAR)[:, None])
        L, info = torch.linalg.cholesky_ex(C)
        return K0, L, info != 0

    def weights(self) -> Tensor:
        """C^-1 y."""
        _, L, _ = self.factor()
        return torch.cholesky_solve(self.y[..., None], L)[..., 0]

    def log_evidence(self) -> Tensor:
        _, L, failed = self.factor()
        z = torch.linalg.solve_triangular(L, self.y[..., None], upper=False)[..., 0]
        return torch.where(failed, -inf, height(z, L))

    def slope(self) -> Slope:
        K0, L, failed = self.factor()
        z = torch.linalg.solve_triangular(L, self.y[..., None], upper=False)
        inverse = torch.cholesky_inverse(L)
        a = inverse @ self.y[..., None]
        return Slope(torch.where(failed, -inf, height(z[..., 0], L)), K0, a[..., 0], a @ a.mT - inverse)

    def left_out(self) -> tuple[Tensor, Tensor]:
        """Mean and variance (B, n) of every observation by the others."""
        _, L, _ = self.factor()
        inverse = torch.cholesky_inverse(L)
        d = inverse.diagonal(dim1=1, dim2=2)
        return self.y - (inverse @ self.y[..., None])[..., 0] / d, 1.0 / d


@dataclass(frozen=True, eq=False)
class Slope:
    """Log evidence (B,), K0, weights a = C^-1 y, and G = a a^T - C^-1."""

    value: Tensor
    K0: Tensor
    weights: Tensor
    G: Tensor


def height(z: Tensor, L: Tensor) -> Tensor:
    """The log evidence, from L^-1 y and L."""
    half_log_det = torch.log(L.diagonal(dim1=1, dim2=2)).sum(1)
    return -0.5 * (z * z).sum(1) - half_log_det - 0.5 * log(2.0 * torch.pi) * z.shape[1]


def squared_exponential(A: Tensor, B: Tensor) -> Tensor:
    squares = (A * A).sum(2)[:, :, None] + (B * B).sum(2)[:, None, :]
    return torch.exp(-0.5 * torch.baddbmm(squares, A, B.mT, alpha=-2.0).clamp_min(0.0))


def fresh_variances(X: Tensor) -> Tensor:
    return torch.log(X.new_tensor(START)).repeat(len(X), 1)


def posterior(models: Models, prior: Prior) -> tuple[Tensor, Tensor, Tensor]:
    """Log evidence plus log prior (B,), and slopes by the logarithms of length-scales (B, p) and variances (B, 3)."""
    columns, on = models.columns()
    here, A = models.slope(), models.scaled()
    W = here.G * here.K0
    W *= torch.exp(models.log_var[:, SIGNAL])[:, None, None]
    by_l = torch.where(on, ((A * A) * W.sum(2, keepdim=True)).sum(1) - (A * (W @ A)).sum(1), 0.0)
    by_var = 0.5 * torch.stack(
        [
            W.sum((1, 2)),
            torch.exp(models.log_var[:, CONSTANT]) * here.G.sum((1, 2)),
            torch.exp(models.log_var[:, NOISE]) * here.G.diagonal(dim1=1, dim2=2).sum(1),
        ],
        dim=1,
    )
    log_l = torch.where(on, torch.gather(models.log_l, 1, columns), 0.0)
    density, prior_by_l, prior_by_var = prior(log_l, on, models.log_var)
    by_column = torch.zeros_like(models.log_l).scatter_(1, columns, by_l + prior_by_l)
    return here.value + density, by_column, by_var + prior_by_var


def searched(models: Models, prior: Prior, iterations: int, least_gain: float) -> tuple[Models, Tensor]:
    """The models where a search under a prior ends, and their log evidence."""
    columns, on = models.columns()
    n_on = columns.shape[1]
    steps = models.X.new_tensor([1.0] * n_on + list(STEPS))
    start = torch.cat([torch.where(on, torch.gather(models.log_l, 1, columns), 0.0), models.log_var], dim=1)

    def read(x: Tensor, which: Tensor) -> Models:
        log_l = torch.full_like(models.log_l[which], inf)
        kept = torch.where(on[which], x[:, :n_on] * steps[:n_on], inf)
        log_l.scatter_(1, columns[which], kept)
        return Models(models.X[which], models.y[which], log_l, x[:, n_on:] * steps[n_on:])

    def objective(x: Tensor, which: Tensor) -> tuple[Tensor, Tensor]:
        value, by_l, by_var = posterior(read(x, which), prior)
        return -value, -torch.cat([torch.gather(by_l, 1, columns[which]), by_var], dim=1) * steps

    end = minimised(objective, start / steps, iterations, least_gain)
    found = read(end, torch.arange(len(end), device=end.device))
    return found, found.log_evidence()


Objective = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def minimised(objective: Objective, x: Tensor, iterations: int, least_gain: float) -> Tensor:
    """Where L-BFGS ends for each of many problems, those that gain less than `least_gain` in an iteration resting."""
    x = x.clone()
    everyone = torch.arange(len(x), device=x.device)
    f, g = objective(x, everyone)
    history = History.empty(x)
    going = torch.isfinite(f)
    for _ in range(iterations):
        which = everyone[going]
        if not len(which):
            break
        direction = history.direction(g[which], which)
        there, f_new, g_new, moved = stepped(objective, x[which], f[which], g[which], direction, which)
        history.remember(there - x[which], g_new - g[which], which, moved)
        gain = torch.where(moved, f[which] - f_new, 0.0)
        x[which] = torch.where(moved[:, None], there, x[which])
        f[which] = torch.where(moved, f_new, f[which])
        g[which] = torch.where(moved[:, None], g_new, g[which])
        going[which] = gain >= least_gain
    return x


def stepped(
    objective: Objective, x: Tensor, f: Tensor, g: Tensor, direction: Tensor, which: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A step of each problem, halved until it gains; the last says which have moved."""
    rate = (g * direction).sum(1)
    size = torch.ones_like(f)
    there, f_new, g_new = x.clone(), torch.full_like(f, inf), g.clone()
    moved = torch.zeros_like(f, dtype=torch.bool)
    for _ in range(MOST_HALVINGS):
        trying = torch.nonzero(~moved)[:, 0]
        if not len(trying):
            break
        x_try = x[trying] + size[trying, None] * direction[trying]
        f_try, g_try = objective(x_try, which[trying])
        good = torch.isfinite(f_try) & (f_try <= f[trying] + LEAST_SHARE * size[trying] * rate[trying])
        accepted = trying[good]
        there[accepted], f_new[accepted], g_new[accepted] = x_try[good], f_try[good], g_try[good]
        moved[accepted] = True
        size[trying[~good]] *= 0.4
    return there, f_new, g_new, moved


@dataclass(eq=False)
class History:
    """Steps and changes of the slope of the last iterations, (MEMORY, B, d), the newest last."""

    steps: Tensor
    changes: Tensor
    inverse_products: Tensor

    @classmethod
    def empty(cls, x: Tensor) -> History:
        zeros = x.new_zeros((MEMORY, *x.shape))
        return cls(zeros, zeros.clone(), x.new_zeros((MEMORY, len(x))))

    def remember(self, step: Tensor, change: Tensor, which: Tensor, moved: Tensor) -> None:
        product = (step * change).sum(1)
        kept = moved & (product > 1e-10)
        own = which[kept]
        for tensor, new in (
            (self.steps, step[kept]),
            (self.changes, change[kept]),
            (self.inverse_products, 1.0 / product[kept]),
        ):
            tensor[:, own] = torch.cat([tensor[1:, own], new[None]])

    def direction(self, g: Tensor, which: Tensor) -> Tensor:
        """Minus the slope times an estimate of the inverse curvature; without memory a step of length at most 1."""
        S, Y, rho = self.steps[:, which], self.changes[:, which], self.inverse_products[:, which]
        q, shares = g.clone(), []
        for s, y, r in zip(reversed(S), reversed(Y), reversed(rho), strict=True):
            share = r * (s * q).sum(1)
            shares.append(share)
            q -= share[:, None] * y
        squares = (Y[-1] * Y[-1]).sum(1)
        has_memory = rho[-1] > 0
        scale = torch.where(has_memory, 1.0 / (rho[-1] * squares).clamp_min(1e-300), 1.0 / g.norm(dim=1).clamp_min(1.0))
        q *= scale[:, None]
        for s, y, r, share in zip(S, Y, rho, reversed(shares), strict=True):
            q += s * (share - r * (y * q).sum(1))[:, None]
        uphill = (q * g).sum(1) <= 0
        return -torch.where(uphill[:, None], g / g.norm(dim=1, keepdim=True).clamp_min(1.0), q)
