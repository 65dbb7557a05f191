r"""Student-t noise, for regression with outliers, and the predictive distribution of a Gaussian process with it.

Student-t noise is normal given its precision g / s^2, where g has a Gamma(df/2, df/2) distribution. Given g the latent
value N(m, v) integrates out, and the predictive distribution is a mixture of normal ones with one integral left, in
u = log g:

.. math:: p(y) = \int N(y; m, w) \, p(u) \, du, \qquad w = v + s^2 e^{-u} .

The integrand is analytic for \|Im u\| < pi / 2, so one step of the trapezoidal rule suits all s and v. An integral over
the latent value has poles at a distance of sqrt(df) s from the real axis, and needs a step that shrinks with s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import digamma, gammainccinv, gammaincinv, gammaln, logsumexp, ndtr, ndtri, stdtrit

from gpsift._utils.parameter import Parameter
from gpsift._utils.priors import GammaPrior, HalfT, OnLogScale
from gpsift.likelihoods import distributions
from gpsift.likelihoods.base import Derivatives, Likelihood, ParamDerivatives
from gpsift.likelihoods.mixture import Expansion, LatentGivenY, LatentMixture, hermite

# Nodes of y for Student-t noise. Compared with nodes four times as dense, the information is right to 3e-9 for df from
# 0.5 to 1e3 and latent standard deviations from 1e-3 to 1e3 of the noise scale.
BEND = 3.0
SPACING = 0.1
# Degrees of freedom from which on a limit replaces differences of large logarithms.
NEARLY_NORMAL = 1e7
# Step in u, and its largest ratio to the standard deviation of u: right to 1e-9 for df from 0.5 to infinity.
STEP = 0.35
RELATIVE_STEP = 0.5
# The tails of u are cut off where their share of p(y) is below this.
CUT = 1e-14
# The largest number of nodes in u. More would be needed only for nearly normal noise and observations dozens of
# standard deviations away; the step is then coarser.
MOST_PRECISIONS = 2000


def log_gamma_increment(df: float) -> float:
    """Return log Gamma((df + 1) / 2) - log Gamma(df / 2) - log(df / 2) / 2, which goes to 0 as df grows."""
    if df > NEARLY_NORMAL:  # the difference of two huge logarithms has no digits left
        return -0.25 / df
    return float(gammaln((df + 1.0) / 2.0) - gammaln(df / 2.0) - 0.5 * np.log(df / 2.0))


def digamma_increment(df: float) -> float:
    """Return digamma((df + 1) / 2) - digamma(df / 2), 1 / df for large df."""
    return 1.0 / df if df > NEARLY_NORMAL else float(digamma((df + 1.0) / 2.0) - digamma(df / 2.0))


# The prior is weak. It keeps df away from the limits, where the likelihood is flat.
DF = Parameter("df", limits=(0.5, 1e30), prior=GammaPrior(2.0, 0.1), prior_argument="df", absent=math.inf)
NOISE_SCALE = Parameter(
    "noise_scale",
    unit="target",
    limits=(1e-4, 1e2),
    prior=OnLogScale(HalfT(4.0, 1.0)),
    prior_argument="noise",
    short_start=0.3,
)


@dataclass(frozen=True)
class StudentT(Likelihood):
    """y = f + noise_scale times a Student-t variable: regression that is robust to outliers.

    Parameters
    ----------
    df : float
        Degrees of freedom; small values have heavier tails.
    noise_scale : float
        In standard deviations of the target.
    """

    df: float = 4.0
    noise_scale: float = 0.3

    PARAMS: ClassVar[tuple[Parameter, ...]] = (DF, NOISE_SCALE)
    standardises_target: ClassVar[bool] = True
    is_log_concave: ClassVar[bool] = False

    def first_latent_value(self, y: np.ndarray, size: np.ndarray) -> float:
        return float(np.median(y))

    def in_units(self, y_scale: float) -> StudentT:
        return StudentT(self.df, self.noise_scale * y_scale)

    @property
    def _squared_width(self) -> float:
        return self.df * self.noise_scale**2

    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        constant = log_gamma_increment(self.df) - 0.5 * np.log(2.0 * np.pi) - np.log(self.noise_scale)
        return constant - 0.5 * (self.df + 1.0) * np.log1p((y - f) ** 2 / self._squared_width)

    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        r, a = y - f, self._squared_width
        total = a + r**2
        power = self.df + 1.0
        return Derivatives(
            power * r / total, power * (r**2 - a) / total**2, -2.0 * power * r * (3.0 * a - r**2) / total**3
        )

    def safe_weights(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        # The weights of the EM algorithm, which treats the noise as a scale mixture of normals and never descends.
        return (self.df + 1.0) / (self._squared_width + (y - f) ** 2)

    def log_param_derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> list[ParamDerivatives]:
        r, a, df = y - f, self._squared_width, self.df
        total, power = a + r**2, df + 1.0
        # Derivatives with respect to a = df noise_scale^2, which depends on both parameters.
        by_a = ParamDerivatives(
            0.5 * power * r**2 / (a * total), -power * r / total**2, power * (a - 3.0 * r**2) / total**3
        )
        by_df = ParamDerivatives(
            0.5 * (digamma_increment(df) - 1.0 / df - np.log1p(r**2 / a)), r / total, (r**2 - a) / total**2
        )
        df_part = ParamDerivatives(*(df * direct + a * via_a for direct, via_a in zip(by_df, by_a, strict=True)))
        scale_part = ParamDerivatives(2.0 * a * by_a.log_density - 1.0, 2.0 * a * by_a.first, 2.0 * a * by_a.second)
        return [df_part, scale_part]

    def conditional(self, f: np.ndarray, size: np.ndarray) -> distributions.StudentT:
        return distributions.StudentT(f, np.full_like(f, self.noise_scale), np.asarray(self.df))

    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        # The density has poles at a distance of sqrt(df) noise_scale from the real axis.
        return np.full_like(f, min(0.17 * np.sqrt(self._squared_width), 0.8 * self.noise_scale))

    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # y = mean + width BEND sinh(sinh(u / BEND)): even near the middle, doubly exponential in the tails. They end
        # where the mass of a tail over its squared distance, its weight in a score, is 1e-14.
        width = np.sqrt(sd**2 + self.noise_scale**2)[:, None]
        tail = max(9.0, -stdtrit(self.df, 1e-14 ** (self.df / (self.df + 2.0))))
        reach = BEND * np.arcsinh(np.arcsinh(tail / BEND))
        u, spacing = np.linspace(-reach, reach, 2 * int(np.ceil(reach / SPACING)) + 1, retstep=True)
        inner = np.sinh(u / BEND)
        return mean[:, None] + width * BEND * np.sinh(inner), width * np.cosh(inner) * np.cosh(u / BEND) * spacing

    def predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> StudentTMixture:
        return StudentTMixture(self, mean, var, size)


@dataclass(frozen=True, eq=False)
class StudentTMixture(LatentMixture):
    """`likelihood`, a Student-t, averaged over latent values N(latent_mean, latent_var), at n points."""

    @property
    def mean(self) -> np.ndarray:
        return self.latent_mean

    @property
    def var(self) -> np.ndarray:
        _, noise_var = self.likelihood.conditional_moments(self.latent_mean, self.size)
        return self.latent_var + noise_var

    def cdf(self, y: np.ndarray) -> np.ndarray:
        log_weights, w = self._normals(self._all_rows, y[:, None], beyond=True)
        return np.sum(np.exp(log_weights) * ndtr((y - self.latent_mean)[:, None] / np.sqrt(w)), axis=1)

    def _bracket(self, probability: float) -> tuple[np.ndarray, np.ndarray]:
        # P(f + noise > a + b) <= P(f > a) + P(noise > b).
        half = 0.5 * min(probability, 1.0 - probability)
        likelihood = self.likelihood
        reach = -(np.sqrt(self.latent_var) * ndtri(half) + likelihood.noise_scale * stdtrit(likelihood.df, half))
        return self.latent_mean - reach, self.latent_mean + reach

    @property
    def _smallest_var(self) -> np.ndarray:
        return np.zeros_like(self.latent_mean)

    @property
    def _unit(self) -> np.ndarray:
        return np.sqrt(self.latent_var + self.likelihood.noise_scale**2)

    @property
    def _n_components(self) -> int:
        return self._normals(self._all_rows, self.nodes(self._all_rows)[0])[0].size

    def _expansion(self, rows: np.ndarray, order: int) -> Expansion:
        # p and D_k for even k are symmetric around the middle node, D_k for odd k is antisymmetric.
        y, y_weights = self.nodes(rows)
        right = y[:, y.shape[1] // 2 :]
        given = self._latent_given_y(rows, right)
        log_density = extend_by_symmetry(given.log_density)
        ratios = [
            extend_by_symmetry(ratio, (-1.0) ** k) for k, ratio in enumerate(self._ratios(rows, right, given, order), 1)
        ]
        return Expansion(rows, y, log_density, y_weights * np.exp(log_density), ratios)

    def _latent_given_y(self, rows: np.ndarray, y: np.ndarray) -> LatentGivenY:
        """Return the distribution of the variance w given each of several values of y a point."""
        log_weights, w = self._normals(rows, y)
        squared = (y - self.latent_mean[rows][:, None]) ** 2
        log_terms = squared[:, :, None] * (-0.5 / w)[:, None, :]
        log_terms += (log_weights - 0.5 * np.log(2.0 * np.pi * w))[:, None, :]
        return LatentGivenY.from_log_terms(w[:, None, :], log_terms)

    def _ratios(self, rows: np.ndarray, y: np.ndarray, given: LatentGivenY, order: int) -> list[np.ndarray]:
        # With a = unit^2 / w, D_k unit^k = E He_k(r sqrt(a)) a^(k/2): only powers of a are averaged over the mixture.
        unit = self._unit[rows][:, None]
        r = (y - self.latent_mean[rows][:, None]) / unit
        powers = (unit**2 / given.nodes[:, 0, :])[:, :, None] ** np.arange(order + 1.0)
        averages = np.moveaxis(given.share @ powers, 2, 0)
        return [hermite({j: r**j * averages[(k + j) // 2] for j in range(k, -1, -2)}) for k in range(1, order + 1)]

    def _normals(self, rows: np.ndarray, y: np.ndarray, *, beyond: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Return log weights (h,) and variances (rows, h) of normals whose mixture is p at y, or `beyond` y."""
        df, noise_var = self.likelihood.df, self.likelihood.noise_scale**2
        squared, var = (y - self.latent_mean[rows][:, None]) ** 2, self.latent_var[rows][:, None]
        # Two lower bounds of g. Given y, g has a Gamma((df + 1) / 2, (df + r^2 / s^2) / 2) distribution if v = 0 and
        # is larger for larger v. And y raises no share of g by more than exp(r^2 / 2 (v + s^2)). In the mass beyond y
        # small g have a larger share, as in Gamma(df / 2, ...).
        shape = 0.5 * (df + 1.0)
        rate = 0.5 * (df + np.max(squared) / noise_var)
        rarest = CUT * np.exp(-0.5 * np.max(squared / (var + noise_var)))
        smallest = gammaincinv(shape - 0.5 * beyond, CUT) / rate, gammaincinv(0.5 * df, rarest) / (0.5 * df)
        low = np.log(max(smallest))
        high = np.log(gammainccinv(shape, CUT) / (0.5 * df))
        step = max(min(STEP, RELATIVE_STEP / np.sqrt(shape)), (high - low) / MOST_PRECISIONS)
        u = step * np.arange(np.floor(low / step), np.ceil(high / step) + 1.0)
        log_weights = 0.5 * df * (u - np.expm1(u))
        # The constant follows from v = 0, where p at its peak is the likelihood at its peak.
        at_peak = np.zeros(1)
        peak = self.likelihood.log_density(at_peak, at_peak, at_peak) + 0.5 * np.log(2.0 * np.pi * noise_var)
        return log_weights + peak - logsumexp(log_weights + 0.5 * u), var + noise_var * np.exp(-u)


def extend_by_symmetry(right: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """Extend an even or, with sign -1, odd function from the middle node and those to its right to all nodes."""
    return np.concatenate([sign * right[:, :0:-1], right], axis=1)
