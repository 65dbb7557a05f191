r"""The predictive distribution of a Gaussian process: a likelihood averaged over a normal latent value.

.. math:: p(y) = \int p(y \mid f) \, N(f; m, v) \, df

Only a Gaussian or Bernoulli likelihood stays in its own family; a Poisson process predicts a Poisson-lognormal mixture,
for which the Fisher metric of a Poisson distribution can be 3.6 times too large. In the parameters (m, v),
dp/dm = E p'(y | f) and dp/dv = E p''(y | f) / 2, so one 2 x 2 information matrix a point,

.. math:: I_{ab} = \sum_y \frac{p_a \, p_b}{p}, \qquad a, b \in \{m, v\},

serves all features: r^2 = (dm, dv) I (dm, dv)^T. Sums over y run over the nodes that the likelihood provides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from gpsift.families import Family, log1p_excess

if TYPE_CHECKING:
    from gpsift.likelihoods.base import Likelihood

# The latent value is averaged by the trapezoidal rule over +-REACH standard deviations, which converges exponentially.
REACH = 8.5
COARSEST_STEP = 0.35
FINEST_STEP = 0.005
# Given y, the latent value is nearly normal around its peak, with tails no heavier than the prior's: nodes at
# peak + width BEND sinh(u / BEND), even near the peak and far apart in the tails, up to REACH standard deviations.
N_ADAPTED = 101
BEND = 3.0
LARGEST_RATIO = 600.0
SMALLEST_VAR = 1e-14
LARGE_CHANGE = 1e-2
NEGLIGIBLE = 1e-8
# Points are taken in blocks, so that the (point, node, latent value) array stays below this many numbers.
BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class LatentMixture(Family):
    """`likelihood` averaged over latent values N(latent_mean, latent_var), at n points."""

    likelihood: Likelihood
    latent_mean: np.ndarray
    latent_var: np.ndarray
    size: np.ndarray

    def __post_init__(self) -> None:
        # A latent value without any uncertainty is one with next to none.
        floor = SMALLEST_VAR * (1.0 + self.latent_mean**2)
        object.__setattr__(self, "latent_var", np.maximum(self.latent_var, floor))

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard normal nodes (h,) and weights, fine enough for the sharpest likelihood at any point."""
        sd = np.maximum(np.sqrt(self.latent_var), 1e-300)
        resolved = self.likelihood.latent_step(self.latent_mean + 3.0 * sd, self.size) / sd
        step = float(np.clip(np.min(resolved), FINEST_STEP, COARSEST_STEP))
        nodes = np.arange(-REACH, REACH + step, step)
        weights = np.exp(-0.5 * nodes**2)
        return nodes, weights / weights.sum()

    @cached_property
    def _latent(self) -> np.ndarray:
        """Latent values (n, h)."""
        return self.latent_mean[:, None] + np.sqrt(self.latent_var)[:, None] * self._grid[0]

    @cached_property
    def mean(self) -> np.ndarray:
        conditional_mean, _ = self.likelihood.conditional_moments(self._latent, self.size[:, None])
        return conditional_mean @ self._grid[1]

    @cached_property
    def var(self) -> np.ndarray:
        conditional_mean, conditional_var = self.likelihood.conditional_moments(self._latent, self.size[:, None])
        return (conditional_var + (conditional_mean - self.mean[:, None]) ** 2) @ self._grid[1]

    def log_density(self, y: np.ndarray) -> np.ndarray:
        return self._log_density_at(slice(None), np.asarray(y, dtype=float)[:, None])[:, 0]

    def cdf(self, y: np.ndarray) -> np.ndarray:
        """P(Y_i <= y_i)."""
        return self.likelihood.conditional_cdf(y[:, None], self._latent, self.size[:, None]) @ self._grid[1]

    def quantile(self, probability: float | np.ndarray) -> np.ndarray:
        """Quantiles: (n,) for one probability, (n, k) for k of them."""
        probability = np.asarray(probability, dtype=float)
        if np.any((probability <= 0) | (probability >= 1)):
            raise ValueError(f"Probabilities must lie between 0 and 1, got {probability}.")
        columns = [self._one_quantile(float(p)) for p in np.atleast_1d(probability)]
        return columns[0] if probability.ndim == 0 else np.stack(columns, axis=1)

    def _one_quantile(self, probability: float) -> np.ndarray:
        """Bisection between the ends of the likelihood's nodes; rounded up for counts."""
        y, _ = self.nodes(slice(None))
        low, high = y.min(axis=1) - 1.0, y.max(axis=1)
        for _ in range(80):
            middle = 0.5 * (low + high)
            middle = np.floor(middle) if self.likelihood.is_discrete else middle
            below = self.cdf(middle) < probability
            low, high = np.where(below, middle, low), np.where(below, high, middle)
            if self.likelihood.is_discrete and np.all(high - low <= 1.0):
                break
        return high

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Draws (n_draws, n), independent between points."""
        normal = rng.standard_normal((n_draws, self.latent_mean.size))
        f = self.latent_mean + np.sqrt(self.latent_var) * normal
        return self.likelihood.conditional_sample(f, np.broadcast_to(self.size, f.shape), rng)

    def metric_terms(self, *gradients: np.ndarray) -> dict[str, np.ndarray]:
        mean_gradient, var_gradient = gradients
        I_mm, I_mv, I_vv = (entry[:, None] for entry in self.information)
        squared = I_mm * mean_gradient**2 + 2.0 * I_mv * mean_gradient * var_gradient + I_vv * var_gradient**2
        return {"prediction": np.maximum(squared, 0.0)}

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        mean_change, var_change = changes
        kl = np.empty(self.latent_mean.size)
        for rows in self._blocks():
            kl[rows] = self._kl_of_rows(rows, mean_change[rows], var_change[rows])
        return {"prediction": kl}

    @cached_property
    def information(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """I_mm, I_mv and I_vv at each point, (n,) each."""
        entries = np.empty((3, self.latent_mean.size))
        for rows in self._blocks():
            y, y_weights = self.nodes(rows)
            f, log_weights, size = self._latent_given(rows, y)
            share, log_density = self._shares(rows, y, f, log_weights)
            first, second, _ = self.likelihood.derivatives(y[:, :, None], f, size)
            # p_m / p and p_v / p as averages over the latent value given y, which no tail can make overflow.
            by_mean = np.sum(share * first, axis=2)
            by_var = 0.5 * np.sum(share * (first**2 + second), axis=2)
            density = y_weights * np.exp(log_density)
            for k, (a, b) in enumerate(((by_mean, by_mean), (by_mean, by_var), (by_var, by_var))):
                entries[k, rows] = np.sum(density * a * b, axis=1)
        return entries[0], entries[1], entries[2]

    def nodes(self, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Where sums over y run, and their weights, (rows, k) each."""
        return self.likelihood.nodes(self.latent_mean[rows], np.sqrt(self.latent_var[rows]), self.size[rows])

    def _log_density_at(self, rows: slice, y: np.ndarray) -> np.ndarray:
        """log p at several values a point, (rows, k)."""
        f, log_weights, _ = self._latent_given(rows, y)
        return self._shares(rows, y, f, log_weights)[1]

    def _latent_given(self, rows: slice, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Latent values (rows, k, h) that cover p(y | f) N(f; m, v) for each y, their log weights, and the sizes."""
        size = np.broadcast_to(self.size[rows][:, None], y.shape)
        if not self.likelihood.is_log_concave:
            f = np.broadcast_to(self._latent[rows][:, None, :], (*y.shape, self._grid[0].size))
            return f, np.log(f[:, :, 1:2] - f[:, :, :1]), size[:, :, None]
        mean = np.broadcast_to(self.latent_mean[rows][:, None], y.shape).ravel()
        var = np.broadcast_to(self.latent_var[rows][:, None], y.shape).ravel()
        peak, width = self.likelihood.peak(y.ravel(), mean, var, size.ravel())
        f, log_weights = adapted_nodes(peak, width, np.sqrt(var))
        return f.reshape(*y.shape, -1), log_weights.reshape(*y.shape, -1), size[:, :, None]

    def _shares(
        self, rows: slice, y: np.ndarray, f: np.ndarray, log_weights: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How much each latent value contributes to p(y), adding up to 1, and log p(y)."""
        mean, var = self.latent_mean[rows][:, None, None], self.latent_var[rows][:, None, None]
        with np.errstate(over="ignore"):  # far from the peak of a wide product the density is 0
            log_terms = self.likelihood.log_density(y[:, :, None], f, self.size[rows][:, None, None]) + log_weights
        log_terms = log_terms - 0.5 * (f - mean) ** 2 / var - 0.5 * np.log(2.0 * np.pi * var)
        largest = log_terms.max(axis=2)
        terms = np.exp(log_terms - largest[:, :, None])
        total = terms.sum(axis=2)
        return terms / total[:, :, None], largest + np.log(total)

    def _kl_of_rows(self, rows: slice, mean_change: np.ndarray, var_change: np.ndarray) -> np.ndarray:
        """KL to the mixture with changed latent moments, without subtracting two densities of nearly equal size."""
        y, y_weights = self.nodes(rows)
        f, log_weights, size = self._latent_given(rows, y)
        share, log_density = self._shares(rows, y, f, log_weights)
        # The latent value m + sd t becomes m' + sd' t.
        var = self.latent_var[rows]
        sd = np.sqrt(var)
        sd_change = var_change / (np.sqrt(np.maximum(var + var_change, 0.0)) + sd)
        t = (f - self.latent_mean[rows][:, None, None]) / sd[:, None, None]
        move = mean_change[:, None, None] + sd_change[:, None, None] * t
        log_ratio = self.likelihood.log_density_change(y[:, :, None], f, move, size)
        change = np.sum(share * np.expm1(np.minimum(log_ratio, LARGEST_RATIO)), axis=2)
        # sum p log(p / q) = sum p (u - log(1 + u)) with u = q / p - 1, because p u adds up to zero.
        density = y_weights * np.exp(log_density)
        safe = np.sum(density * log1p_excess(np.maximum(change, -0.5)), axis=1)
        # Far away q has its mass elsewhere, and the plain sum of two log densities has all its digits.
        moved = LatentMixture(
            self.likelihood, self.latent_mean[rows] + mean_change, var + var_change, self.size[rows]
        )._log_density_at(slice(None), y)
        log_change = moved - log_density
        is_large = np.max(np.where(density > NEGLIGIBLE, np.abs(log_change), 0.0), axis=1) > LARGE_CHANGE
        return np.where(is_large, np.maximum(-np.sum(density * log_change, axis=1), 0.0), safe)

    def _blocks(self) -> Iterator[slice]:
        n = self.latent_mean.size
        n_nodes = self.nodes(slice(0, 1))[0].shape[1]
        n_latent = N_ADAPTED if self.likelihood.is_log_concave else self._grid[0].size
        rows = max(1, BLOCK // (n_nodes * n_latent))
        for start in range(0, n, rows):
            yield slice(start, min(start + rows, n))


def adapted_nodes(peak: np.ndarray, width: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Latent values (m, h) and log weights for integrals of products with a normal density, peaks and widths given."""
    reach = BEND * np.arcsinh(REACH * np.maximum(sd / width, 1.0) / BEND)[:, None]
    u = reach * np.linspace(-1.0, 1.0, N_ADAPTED)
    spacing = 2.0 * reach / (N_ADAPTED - 1)
    f = peak[:, None] + width[:, None] * BEND * np.sinh(u / BEND)
    return f, np.log(width[:, None] * spacing) + np.log(np.cosh(u / BEND))
