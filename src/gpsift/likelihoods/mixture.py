r"""The predictive distribution of a Gaussian process: a likelihood averaged over a normal latent value.

.. math:: p(y) = \int p(y \mid f) \, N(f; m, v) \, df

It is of the likelihood's family only for Gaussian and Bernoulli ones. For counts it is a Poisson-lognormal mixture, for
which the Fisher metric of a Poisson distribution can be 3.6 times too large. In the parameters (m, v),
dp/dm = E p'(y | f) and dp/dv = E p''(y | f) / 2, so one 2 x 2 information matrix for each point,

.. math:: I_{ab} = \sum_y \frac{p_a \, p_b}{p}, \qquad a, b \in \{m, v\},

is enough for all features: r^2 = (dm, dv) I (dm, dv)^T. Sums over y run over the nodes that the likelihood provides.

The ratio of the distribution q after a step (dm, dv) to p has a series in derivatives along m alone, because the
derivative along v is half the second derivative along m. With D_k = (d^k p / dm^k) / p, so that p_m = p D_1 and
p_v = p D_2 / 2,

.. math:: u = q / p - 1 = \sum_{k \ge 1} c_k D_k, \qquad \sum_{k \ge 0} c_k z^k = \exp(dm \, z + dv \, z^2 / 2) .

The D_k do not depend on the step, so all features share them. As p u adds up to zero, KL = sum p (u - log(1 + u)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import herme2poly

from gpsift._utils.quadrature import N_PEAKED, normal_weights, peaked_nodes
from gpsift.likelihoods.distributions import Distribution, log1p_excess
from gpsift.likelihoods.distributions.base import bisect_quantile

# The latent value is averaged by the trapezoidal rule over +-REACH standard deviations, which converges exponentially.
REACH = 8.5
COARSEST_STEP = 0.35
FINEST_STEP = 0.005
SMALLEST_VAR = 1e-14
# Above this |log(q / p)| at a node of more than negligible mass, the nodes of p may miss mass of q: p u does not add up
# to zero over them and is left out (`_kl_of_large_steps`).
LARGE_LOG_RATIO = 0.5
NEGLIGIBLE = 1e-8
# Larger logarithms are replaced by this one, because exp() of them would overflow.
LARGEST_LOG_RATIO = 600.0
# Points are taken in blocks, so that the (point, node, latent value) array stays below this many numbers.
BLOCK = 1_000_000
# The series is used up to this E u^2, if its last two terms, of fourth order in the step, are at most this share of the
# whole: its error is then below 1e-9 of the whole.
LARGEST_SQUARE = 1e-4
LAST_SHARE = 1e-7
ORDER = 8


class LatentGivenY(NamedTuple):
    """The distribution of f given y: nodes (rows, k, h), the share of each in p(y), and log p(y), (rows, k)."""

    nodes: np.ndarray
    share: np.ndarray
    log_density: np.ndarray

    @classmethod
    def from_log_terms(cls, nodes: np.ndarray, log_terms: np.ndarray) -> LatentGivenY:
        """Normalise terms whose sum over the last axis is p(y), from their logarithms, which are overwritten."""
        largest = log_terms.max(axis=2)
        log_terms -= largest[:, :, None]
        terms = np.exp(log_terms, out=log_terms)
        total = terms.sum(axis=2)
        terms /= total[:, :, None]
        return cls(nodes, terms, largest + np.log(total))

    def average(self, values: np.ndarray) -> np.ndarray:
        """Average values (rows, k, h) given y."""
        return np.einsum("rkh,rkh->rk", self.share, values)


class Expansion(NamedTuple):
    """The series of q / p at nodes of some rows: y, log p and weight times p, (rows, k), and D_k unit^k for k >= 1."""

    rows: np.ndarray
    y: np.ndarray
    log_density: np.ndarray
    density: np.ndarray
    ratios: list[np.ndarray]

    def select(self, chosen: np.ndarray) -> Expansion:
        """Select some of the rows."""
        ratios = [ratio[chosen] for ratio in self.ratios]
        return Expansion(self.rows[chosen], self.y[chosen], self.log_density[chosen], self.density[chosen], ratios)

    def change(self, mean_step: np.ndarray, var_step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return u after a step, in units of the ratios, and the sum of the absolute last two terms of its series."""
        previous, c = np.zeros_like(mean_step), np.ones_like(mean_step)
        terms = []
        for k, ratio in enumerate(self.ratios, start=1):
            previous, c = c, (mean_step * c + var_step * previous) / k
            terms.append(c[:, None] * ratio)
        return sum(terms[1:], start=terms[0]), np.abs(terms[-2]) + np.abs(terms[-1])


@dataclass(frozen=True, eq=False)
class LatentMixture(Distribution):
    """`likelihood` averaged over latent values N(latent_mean, latent_var), at n points."""

    VARYING: ClassVar = ("latent_mean", "latent_var")

    likelihood: Any  # a `Likelihood`; its module imports this one
    latent_mean: np.ndarray
    latent_var: np.ndarray
    size: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "latent_var", np.maximum(self.latent_var, self._smallest_var))

    @property
    def _smallest_var(self) -> np.ndarray:
        """The least latent variance, which replaces a variance of 0."""
        return SMALLEST_VAR * (1.0 + self.latent_mean**2)

    @property
    def _all_rows(self) -> np.ndarray:
        return np.arange(self.latent_mean.size)

    @cached_property
    def _grid(self) -> tuple[np.ndarray, np.ndarray]:
        """Standard normal nodes (h,) and weights, fine enough for the likelihood at every point."""
        sd = np.maximum(np.sqrt(self.latent_var), 1e-300)
        resolved = self.likelihood.latent_step(self.latent_mean + 3.0 * sd, self.size) / sd
        step = float(np.clip(np.min(resolved), FINEST_STEP, COARSEST_STEP))
        nodes = np.arange(-REACH, REACH + step, step)
        return nodes, normal_weights(nodes)

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
        return self._latent_given_y(self._all_rows, np.asarray(y, dtype=float)[:, None]).log_density[:, 0]

    def cdf(self, y: np.ndarray) -> np.ndarray:
        return self.likelihood.conditional_cdf(y[:, None], self._latent, self.size[:, None]) @ self._grid[1]

    def quantile_at(self, probability: float) -> np.ndarray:
        low, high = self._bracket(probability)
        return bisect_quantile(self.cdf, probability, low, high, whole=self.likelihood.is_discrete)

    def _bracket(self, probability: float) -> tuple[np.ndarray, np.ndarray]:
        """Return values below and above the quantile: the ends of the likelihood's nodes."""
        y, _ = self.nodes(self._all_rows)
        return y.min(axis=1) - 1.0, y.max(axis=1)

    def sample(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
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
        for series in self._expansions:
            unit = self._unit[series.rows]
            change, last = series.change(mean_change[series.rows] / unit, var_change[series.rows] / unit**2)
            # Where the series applies, u < -1/2 occurs only at nodes of negligible mass.
            kl[series.rows] = np.sum(series.density * log1p_excess(np.maximum(change, -0.5)), axis=1)
            square, last_square = (np.sum(series.density * part**2, axis=1) for part in (change, last))
            is_large = (square > LARGEST_SQUARE) | (last_square > LAST_SHARE**2 * square)
            if is_large.any():
                rows = series.rows[is_large]
                kl[rows] = self._kl_of_large_steps(series.select(is_large), mean_change[rows], var_change[rows])
        return {"prediction": kl}

    def _kl_of_large_steps(self, series: Expansion, mean_change: np.ndarray, var_change: np.ndarray) -> np.ndarray:
        """Return the KL from differences of log densities, which are accurate where steps are large."""
        mean, var, size = self.latent_mean[series.rows], self.latent_var[series.rows], self.size[series.rows]
        moved = replace(self, latent_mean=mean + mean_change, latent_var=var + var_change, size=size)
        log_ratio = moved._latent_given_y(moved._all_rows, series.y).log_density - series.log_density
        is_far = np.max(np.where(series.density > NEGLIGIBLE, np.abs(log_ratio), 0.0), axis=1) > LARGE_LOG_RATIO
        change = np.where(is_far[:, None], 0.0, np.expm1(np.minimum(log_ratio, LARGEST_LOG_RATIO)))
        return np.maximum(np.sum(series.density * (change - log_ratio), axis=1), 0.0)

    @cached_property
    def information(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """I_mm, I_mv and I_vv at each point, (n,) each."""
        entries = np.empty((3, self.latent_mean.size))
        for rows in self._blocks():
            series = self._expansion(rows, 2)
            unit = self._unit[rows][:, None]
            by_mean, by_var = series.ratios[0] / unit, 0.5 * series.ratios[1] / unit**2
            for k, (a, b) in enumerate(((by_mean, by_mean), (by_mean, by_var), (by_var, by_var))):
                entries[k, rows] = np.sum(series.density * a * b, axis=1)
        return entries[0], entries[1], entries[2]

    @cached_property
    def _expansions(self) -> list[Expansion]:
        """The expansions of all rows, which the steps along all features share."""
        return [self._expansion(rows, ORDER) for rows in self._blocks()]

    def _expansion(self, rows: np.ndarray, order: int) -> Expansion:
        y, y_weights = self.nodes(rows)
        given = self._latent_given_y(rows, y)
        density = y_weights * np.exp(given.log_density)
        return Expansion(rows, y, given.log_density, density, self._ratios(rows, y, given, order))

    @property
    def _unit(self) -> np.ndarray:
        """A scale of f, (n,), with which D_k unit^k neither overflow nor underflow."""
        return np.sqrt(self.latent_var)

    def nodes(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return nodes and weights of sums over y, (rows, k) each."""
        return self.likelihood.nodes(self.latent_mean[rows], np.sqrt(self.latent_var[rows]), self.size[rows])

    def _latent_given_y(self, rows: np.ndarray, y: np.ndarray) -> LatentGivenY:
        """Return the distribution of the latent value given each y, (rows, k)."""
        f, log_weights = self._latent_nodes(rows, y)
        mean, var = self.latent_mean[rows][:, None, None], self.latent_var[rows][:, None, None]
        with np.errstate(over="ignore"):  # far from the peak of a wide product the density is 0
            log_terms = self.likelihood.log_density(y[:, :, None], f, self.size[rows][:, None, None]) + log_weights
        return LatentGivenY.from_log_terms(f, log_terms - 0.5 * (f - mean) ** 2 / var - 0.5 * np.log(2.0 * np.pi * var))

    def _latent_nodes(self, rows: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return latent values (rows, k, h) that cover p(y | f) N(f; m, v) for each y, and their log weights."""
        if not self.likelihood.is_log_concave:
            f = np.broadcast_to(self._latent[rows][:, None, :], (*y.shape, self._grid[0].size))
            return f, np.log(f[:, :, 1:2] - f[:, :, :1])
        mean, var, size = (
            np.broadcast_to(values[rows][:, None], y.shape).ravel()
            for values in (self.latent_mean, self.latent_var, self.size)
        )
        peak, width = self.likelihood.peak(y.ravel(), mean, var, size)
        f, log_weights = peaked_nodes(peak, width, np.sqrt(var))
        return f.reshape(*y.shape, -1), log_weights.reshape(*y.shape, -1)

    def _ratios(self, rows: np.ndarray, y: np.ndarray, given: LatentGivenY, order: int) -> list[np.ndarray]:
        """Return D_k sd^k for k = 1 to order: averages over the latent value given y, which do not overflow."""
        sd = self._unit[rows][:, None]
        t = (given.nodes - self.latent_mean[rows][:, None, None]) / sd[:, :, None]
        moments, power = [np.ones(y.shape), given.average(t)], t
        for _ in range(2, order + 1):
            power = power * t
            moments.append(given.average(power))
        ratios = [hermite({j: moments[j] for j in range(k, -1, -2)}) for k in range(1, order + 1)]
        # E He_k(t) is inaccurate where y tells little about f. There D_1 and D_2 are computed as E p'(y | f) and
        # E p''(y | f) over p(y), which in turn are inaccurate where y determines f.
        is_uninformative = moments[2] - moments[1] ** 2 > 0.5
        first, second, _ = self.likelihood.derivatives(y[:, :, None], given.nodes, self.size[rows][:, None, None])
        ratios[0] = np.where(is_uninformative, given.average(first) * sd, ratios[0])
        ratios[1] = np.where(is_uninformative, given.average(first**2 + second) * sd**2, ratios[1])
        return ratios

    @property
    def _n_components(self) -> int:
        """The number of latent values for each y."""
        return N_PEAKED if self.likelihood.is_log_concave else self._grid[0].size

    def _blocks(self) -> Iterator[np.ndarray]:
        """Yield blocks of indices of points."""
        n = self.latent_mean.size
        n_nodes = self.nodes(np.arange(1))[0].shape[1]
        rows = max(1, BLOCK // (n_nodes * self._n_components))
        for start in range(0, n, rows):
            yield np.arange(start, min(start + rows, n))


class KnownLatent(LatentMixture):
    """`likelihood` at known latent values: latent variances are 0."""

    @cached_property
    def information(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The Fisher information of the latent value at each point, E (d log p / df)^2, and twice 0."""
        I_ff, none = np.empty(self.latent_mean.size), np.zeros(self.latent_mean.size)
        for rows in self._blocks():
            y, _, density = self._density(rows)
            f, size = self.latent_mean[rows][:, None], self.size[rows][:, None]
            I_ff[rows] = np.sum(density * self.likelihood.derivatives(y, f, size).first ** 2, axis=1)
        return I_ff, none, none

    def kl_terms(self, *changes: np.ndarray) -> dict[str, np.ndarray]:
        kl = np.empty(self.latent_mean.size)
        for rows in self._blocks():
            y, log_density, density = self._density(rows)
            moved = (self.latent_mean + changes[0])[rows][:, None]
            log_ratio = self.likelihood.log_density(y, moved, self.size[rows][:, None]) - log_density
            relevant = np.where(density > NEGLIGIBLE, np.abs(log_ratio), 0.0)
            is_far = np.max(relevant, axis=1, keepdims=True) > LARGE_LOG_RATIO
            change = np.where(is_far, 0.0, np.expm1(np.minimum(log_ratio, LARGEST_LOG_RATIO)))
            kl[rows] = np.maximum(np.sum(density * (change - log_ratio), axis=1), 0.0)
        return {"prediction": kl}

    def _density(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return nodes y, log p(y), and weight times p(y), of some rows, (rows, k) each."""
        y, weights = self.nodes(rows)
        log_density = self.likelihood.log_density(y, self.latent_mean[rows][:, None], self.size[rows][:, None])
        return y, log_density, weights * np.exp(log_density)


def hermite(powers: Mapping[int, np.ndarray]) -> np.ndarray:
    """Evaluate the Hermite polynomial He_k, k the largest key, with `powers[j]` for the j-th power of its argument."""
    coefficients = herme2poly([0.0] * max(powers) + [1.0])
    return np.sum([coefficients[j] * power for j, power in powers.items()], axis=0)
