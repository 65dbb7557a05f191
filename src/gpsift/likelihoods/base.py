"""The interface of a likelihood p(y | f), with defaults by quadrature.

A new likelihood defines `log_density`, `derivatives`, `conditional` (or its moments, draws and cdf), `latent_step` and
`nodes`; everything else has a default. Moments, averages and predictive distributions follow by quadrature, and a
likelihood overrides them where they have a closed form.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, NoReturn, Self

import numpy as np

from gpsift._utils.parameter import Parameterized
from gpsift._utils.quadrature import normal_blocks, peaked_nodes
from gpsift.likelihoods.distributions import Distribution
from gpsift.likelihoods.mixture import KnownLatent, LatentMixture

# exp() of a latent value, and its square, stay finite. From so far away Newton's method returns about one unit a step.
LARGEST_LATENT = 300.0
MAX_NEWTON_STEPS = 400
# Below this standard deviation E (t slope) / sd is less accurate for the average curvature than the direct average.
SMALL_SD = 1e-3


class Derivatives(NamedTuple):
    """First, second and third derivative of log p(y | f) with respect to f, (n,) each."""

    first: np.ndarray
    second: np.ndarray
    third: np.ndarray


class ParamDerivatives(NamedTuple):
    """Derivatives of log p, and of its first and second derivative in f, by the logarithm of one parameter."""

    log_density: np.ndarray
    first: np.ndarray
    second: np.ndarray


class Expected(NamedTuple):
    """Averages over the latent value: log p, its first derivative, and minus its second, (n,) each."""

    log_density: np.ndarray
    first: np.ndarray
    curvature: np.ndarray


class Moments(NamedTuple):
    """Moments of p(y | f) N(f; mean, var): the logarithm of the integral, and mean and variance of f."""

    log_normaliser: np.ndarray
    mean: np.ndarray
    var: np.ndarray


@dataclass(frozen=True)
class Likelihood(Parameterized, ABC):
    """The distribution p(y | f) of an observation given the latent value at its point.

    `size` is a second number of each observation: the number of trials of a binomial, the exposure of a count; 1 for
    all others. Parameters are positive and estimated on the log scale.

    Other code reads the capabilities of a likelihood from its attributes, never from its class.
    """

    kind: ClassVar[str]  # the name of the distribution in messages
    target_rule: ClassVar[str]  # allowed observations in messages, where not every number is allowed
    size_rule: ClassVar[str] = "positive"  # allowed sizes in messages
    standardises_target: ClassVar[bool] = False  # whether y may be shifted and scaled
    size_name: ClassVar[str | None] = None  # the name of `size` as an argument
    is_discrete: ClassVar[bool] = False
    takes_negative: ClassVar[bool] = True  # whether y may be below 0
    predicts_classes: ClassVar[bool] = False  # whether y is the code of a class
    is_log_concave: ClassVar[bool] = True  # d2 log p / df2 <= 0: the latent posterior has one mode
    has_closed_form: ClassVar[bool] = False  # of posterior and evidence: Gaussian noise only
    default_inference: ClassVar[Literal["exact", "ep", "laplace"]] = "laplace"  # for rows that fit into memory

    @property
    def params(self) -> tuple[str, ...]:
        """Names of the hyperparameters that a search estimates."""
        return tuple(self.values)

    @property
    def n_latent(self) -> int:
        """The number of latent functions that an observation depends on."""
        return 1

    @property
    def has_sparse_form(self) -> bool:
        """Whether sparse inference supports the likelihood."""
        return self.is_log_concave

    @property
    def noise_var(self) -> float | np.ndarray:
        """Variance of Gaussian noise: one number, or a known variance for each observation."""
        raise AttributeError(f"a {type(self).__name__} likelihood has no noise variance")

    @property
    def knows_noise(self) -> bool:
        """Whether the noise variance of each observation is known."""
        return False

    def with_noise_var(self, noise_var: float | np.ndarray) -> Likelihood:
        """Return the likelihood with this noise variance; refuse it where the likelihood has none."""
        raise ValueError(f"`noise_var` was given, but a {type(self).__name__} likelihood has no such noise.")

    @property
    def for_new_rows(self) -> Likelihood:
        """The likelihood for new rows, whose noise has the mean of the variances known for the training rows."""
        return self

    def for_target(self, y: np.ndarray) -> Self:
        """Return the likelihood with attributes set from the observations, such as the number of classes."""
        return self

    def __post_init__(self) -> None:
        for name in (parameter.name for parameter in self.PARAMS):
            value = getattr(self, name)
            if not np.all(np.isfinite(value) & (np.asarray(value) > 0)):
                raise ValueError(f"`{name}` of {type(self).__name__} must be positive and finite, got {value}.")

    def wrong_targets(self, y: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Mark the observations that have no probability."""
        return np.zeros(y.shape, dtype=bool)

    def wrong_sizes(self, size: np.ndarray) -> np.ndarray:
        """Mark the sizes that no observation can have."""
        return np.zeros(size.shape, dtype=bool)

    def check_target(self, y: np.ndarray, size: np.ndarray) -> None:
        """Refuse observations and sizes that have no probability."""
        self.check_size(size)
        wrong = self.wrong_targets(y, size)
        if wrong.any():
            row = int(wrong.argmax())
            self.refuse_target(int(wrong.sum()), row, y[row])

    def check_size(self, size: np.ndarray) -> None:
        """Refuse sizes that no observation can have."""
        wrong = self.wrong_sizes(size)
        if wrong.any():
            row = int(wrong.argmax())
            self.refuse_size(row, size[row])

    def refuse_target(self, count: int, row: int, y: float) -> NoReturn:
        """Refuse `count` observations, of which this is the first."""
        raise ValueError(
            f"A {self.kind} likelihood needs {self.target_rule}, but `y` is {y:g} in row {row} ({count} such row(s))."
        )

    def refuse_size(self, row: int, size: float) -> NoReturn:
        """Refuse sizes, of which this is the first wrong one."""
        raise ValueError(f"`{self.size_name}` must be {self.size_rule}, got {size:g} in row {row}.")

    @abstractmethod
    def log_density(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return log p(y | f), elementwise and broadcasting."""

    @abstractmethod
    def derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> Derivatives:
        """Return the derivatives of log p(y | f) with respect to f."""

    def safe_weights(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return nonnegative weights that replace -d2 log p / df2 where Newton's method fails with it."""
        return np.maximum(-self.derivatives(y, f, size).second, 0.0)

    def log_param_derivatives(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> list[ParamDerivatives]:
        """Return derivatives with respect to the logarithm of each of `params`."""
        return []

    def conditional(self, f: np.ndarray, size: np.ndarray) -> Distribution:
        """Return the distribution of y given f; a likelihood without one overrides the next three methods."""
        raise NotImplementedError(f"{type(self).__name__} says nothing of the distribution of y given f.")

    def conditional_moments(self, f: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return E[y | f] and Var[y | f]."""
        given = self.conditional(f, size)
        return given.mean, given.var

    def conditional_sample(self, f: np.ndarray, size: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one observation for each latent value."""
        given = self.conditional(f.ravel(), np.broadcast_to(size, f.shape).ravel())
        return given.sample(1, rng).reshape(f.shape)

    def conditional_cdf(self, y: np.ndarray, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return P(Y <= y | f)."""
        return self.conditional(f, size).cdf(y)

    @abstractmethod
    def latent_step(self, f: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Return the largest step in f at which the trapezoidal rule resolves p(y | f) around f to rounding error."""

    @abstractmethod
    def nodes(self, mean: np.ndarray, sd: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return y and weights (n, k) for sums or integrals over y, with latent values N(mean, sd^2)."""

    def predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Distribution:
        """Return the distribution of an observation with latent value N(mean, var)."""
        return (LatentMixture if np.any(var) else KnownLatent)(self, mean, var, size)

    def training_predictive(self, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Distribution:
        """Return the distribution of an observation at each training row, with the row's noise where it is known."""
        return self.predictive(mean, var, size)

    def first_latent_value(self, y: np.ndarray, size: np.ndarray) -> float:
        """Return a latent value for all observations, at which searches start."""
        return 0.0

    def fit_without_inputs(self, y: np.ndarray, size: np.ndarray) -> tuple[Likelihood, float | np.ndarray] | None:
        """Return the best likelihood and latent value of a model without inputs, or None without a closed form."""
        return None

    def indicators(self, y: np.ndarray) -> np.ndarray:
        """Return the observations on the scale of predictive means: y itself, or indicators of classes, (n, C)."""
        return y

    def in_units(self, y_scale: float) -> Self:
        """Return the likelihood of y * y_scale, for likelihoods with `standardises_target`."""
        return self

    def tilted_moments(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Moments:
        """Return the moments of p(y | f) N(f; mean, var) by quadrature around the peak of that product."""
        center, spread = self.peak(y, mean, var, size)
        f, log_weights = peaked_nodes(center, spread, np.sqrt(var))
        log_prior = -0.5 * (f - mean[:, None]) ** 2 / var[:, None] - 0.5 * np.log(2.0 * np.pi * var[:, None])
        with np.errstate(over="ignore"):  # far from the peak of a wide product the density is 0
            log_terms = self.log_density(y[:, None], f, size[:, None]) + log_prior + log_weights
        largest = log_terms.max(axis=1)
        terms = np.exp(log_terms - largest[:, None])
        total = terms.sum(axis=1)
        first = (terms * (f - center[:, None])).sum(axis=1) / total
        second = (terms * (f - center[:, None] - first[:, None]) ** 2).sum(axis=1) / total
        return Moments(np.log(total) + largest, center + first, second)

    def expected(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> Expected:
        """Average log p(y | f) and its derivatives over f ~ N(mean, var), by quadrature."""
        sd = np.sqrt(var)
        log_density, first, curvature = np.empty((3, *mean.shape))
        for rows, t, weights in normal_blocks(sd):
            f, wide = mean[rows, None] + sd[rows, None] * t, sd[rows] > SMALL_SD
            slope, second, _ = self.derivatives(y[rows, None], f, size[rows, None])
            log_density[rows] = self.log_density(y[rows, None], f, size[rows, None]) @ weights
            first[rows] = slope @ weights
            # E second = E (t slope) / sd. With the same nodes, the right side is exactly twice the derivative of the
            # average of log p with respect to the variance, and it includes curvature between nodes.
            by_slope = slope @ (weights * t) / np.where(wide, sd[rows], 1.0)
            curvature[rows] = np.maximum(-np.where(wide, by_slope, second @ weights), 0.0)
        return Expected(log_density, first, curvature)

    def expected_param_slopes(
        self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray
    ) -> list[np.ndarray]:
        """Average over f ~ N(mean, var) the derivatives of log p(y | f) by the logarithm of each of `params`."""
        sd, found = np.sqrt(var), [np.empty(mean.shape) for _ in self.params]
        if not self.params:
            return found
        for rows, t, weights in normal_blocks(sd):
            f = mean[rows, None] + sd[rows, None] * t
            slopes = self.log_param_derivatives(y[rows, None], f, size[rows, None])
            for entry, slope in zip(found, slopes, strict=True):
                entry[rows] = slope.log_density @ weights
        return found

    def peak(self, y: np.ndarray, mean: np.ndarray, var: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Find the mode of p(y | f) N(f; mean, var) by Newton's method, and the width from the curvature at it."""
        f = np.clip(mean, -LARGEST_LATENT, LARGEST_LATENT)
        low, high, sd = np.full_like(f, -LARGEST_LATENT), np.full_like(f, LARGEST_LATENT), np.sqrt(var)
        for _ in range(MAX_NEWTON_STEPS):
            first, second, _ = self.derivatives(y, f, size)
            slope = first - (f - mean) / var
            low, high = np.where(slope > 0, f, low), np.where(slope < 0, f, high)
            step = np.clip(slope / (1.0 / var + np.maximum(-second, 0.0)), -5.0 * sd, 5.0 * sd)
            if np.all(np.abs(step) < 1e-6 * sd):
                break
            # Newton's method can alternate for ever between two values; bisect the interval that holds the peak.
            inside = (low < f + step) & (f + step < high)
            f = np.where(inside | (np.abs(step) < 1e-6 * sd), f + step, 0.5 * (low + high))
        _, second, _ = self.derivatives(y, f, size)
        return f, 1.0 / np.sqrt(1.0 / var + np.maximum(-second, 0.0))
