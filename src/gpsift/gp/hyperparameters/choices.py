"""How hyperparameters are found: by maximum likelihood, by maximum a posteriori, or given."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from gpsift.gp.hyperparameters.optimize import Estimate, LogPrior, maximise
from gpsift.gp.hyperparameters.priors import GammaPrior, HalfT, InverseGamma, OnLogScale, Prior
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.subsampling import begins_on_few
from gpsift.kernels import Kernel
from gpsift.likelihoods import Likelihood

# Of each start of a search, unless the user says otherwise.
MAX_ITERATIONS = 1000
# The data pull a length-scale away from its prior where that resists by more than this many nats for a factor of e.
PULLED = 1.0
# Hyperparameters that may have a value for each feature.
PER_FEATURE = ("lengthscale", "linear_var")


class Hyper(ABC):
    """A way to find hyperparameters."""

    searches: ClassVar[bool] = False  # whether it maximises an objective, from as many starts as it has
    switches: ClassVar[bool] = False  # whether it leaves features switched off

    @property
    def samples(self) -> bool:
        """Whether it draws from their posterior."""
        return False

    def with_one_start(self) -> Hyper:
        """The choice for a search that goes on from a known place, if it searches."""
        return self

    def for_chosen_features(self) -> Hyper:
        """What takes its place in a submodel, whose features are chosen already."""
        return self

    def with_groups(self, groups: Mapping[str, Sequence[str | int]]) -> Hyper:
        """The choice for features of which some belong together, if that is anything to it and has not been said."""
        return self

    def prepare(self, kernel: Kernel, likelihood: Likelihood) -> tuple[Kernel, Likelihood]:
        """Kernel and likelihood with what is known beforehand."""
        return kernel, likelihood

    @abstractmethod
    def estimate(self, problem: Problem) -> Estimate:
        """The hyperparameters of the problem's model."""


class Searching(Hyper):
    """A search from several starts; subclasses are dataclasses with these fields."""

    searches: ClassVar[bool] = True
    # Whether many rows are searched by way of few. Without a prior these fit their noise with what they do not see.
    by_way_of_few_rows: ClassVar[bool] = False
    starts: int
    seed: int
    max_iterations: int

    def __post_init__(self) -> None:
        for name in ("starts", "max_iterations"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
                raise ValueError(f"`{name}` must be a whole number of at least 1, got {value!r}.")

    def with_one_start(self) -> Self:
        return replace(self, starts=1)  # type: ignore[type-var]

    def maximised(self, problem: Problem, log_prior: LogPrior, ceiling: float = np.inf) -> Estimate:
        """The best that the starts find."""
        options = {"n_starts": self.starts, "seed": self.seed, "max_iterations": self.max_iterations}
        if self.by_way_of_few_rows and begins_on_few(problem) and problem.curvature is None:
            from gpsift.gp.hyperparameters.subsampling import CoarseToFine  # with the first search of many rows

            return CoarseToFine(problem, log_prior, **options).run()
        return maximise(problem, log_prior, **options, ceiling=ceiling)


@dataclass(frozen=True)
class ML2(Searching):
    """Type-II maximum likelihood: the hyperparameters of largest marginal likelihood.

    Parameters
    ----------
    starts : int
        How often the search is started: the first two from fixed places, the others at random. The likelihood often
        has several optima; whether the starts agree is in the fit's report.
    seed : int
        For the random starts.
    max_iterations : int
        Of each start.
    """

    starts: int = 3
    seed: int = 0
    max_iterations: int = MAX_ITERATIONS

    def estimate(self, problem: Problem) -> Estimate:
        return self.maximised(problem, _no_prior, problem.ceiling)


@dataclass(frozen=True)
class MAP(Searching):
    """Maximum a posteriori: the marginal likelihood times a prior of the hyperparameters.

    Priors are densities of length-scales and of standard deviations ("magnitudes"), in units of the standardised
    inputs and target, whether or not the model itself is fitted in them. The defaults:

    - Magnitudes of signal, noise, level and slopes: half-t with 4 degrees of freedom and scale 1. The target has
      standard deviation 1, so none of them should be much larger, and the heavy tail lets the data disagree. That of
      the noise is by the density of the logarithm, which vanishes with the noise: a model without noise has to be
      earned.
    - Length-scales: inverse gamma with shape 1 and scale 10, by the density of the logarithm. Its mode is 10 standard
      deviations, almost linear, so that a feature has to earn a bend; its left tail is sharp, which excludes the tiny
      length-scales that fit noise; its right tail is long, so that features that do nothing can go far away. By the
      density of the length-scale itself, ``lengthscale=InverseGamma(1, 10)``, the tail costs twice as much for each
      of them: with 150 features and more, so much that the signal is given up. A prior with its mode below 1, such
      as InverseGamma(5, 5), instead holds every uninformative feature near that mode, and ARD then ranks them first.

    Parameters
    ----------
    lengthscale, signal, noise, constant, linear, shape : Prior
    df, concentration, gamma_shape : Prior
        Of the parameters of the Student-t, negative binomial and gamma likelihoods: weak, and away from the limits
        where the likelihood says nothing.
    starts, seed, max_iterations
        As in `ML2`.
    """

    by_way_of_few_rows: ClassVar[bool] = True

    lengthscale: Prior = OnLogScale(InverseGamma(1.0, 10.0))
    signal: Prior = HalfT(4.0, 1.0)
    noise: Prior = OnLogScale(HalfT(4.0, 1.0))
    constant: Prior = HalfT(4.0, 1.0)
    linear: Prior = HalfT(4.0, 1.0)
    shape: Prior = InverseGamma(2.0, 2.0)
    df: Prior = GammaPrior(2.0, 0.1)
    concentration: Prior = InverseGamma(0.4, 0.3)
    gamma_shape: Prior = InverseGamma(0.4, 0.3)
    starts: int = 3
    seed: int = 0
    max_iterations: int = MAX_ITERATIONS

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (f.name for f in fields(self) if f.name not in ("starts", "seed", "max_iterations")):
            if not isinstance(getattr(self, name), Prior):
                raise TypeError(f"`{name}` must be a prior such as HalfT(4, 1), got {getattr(self, name)!r}.")

    def log_prior(self, kinds: np.ndarray, log_params: np.ndarray) -> tuple[float, np.ndarray]:
        """Log prior density of all parameters, and its gradient with respect to their logarithms."""
        return self.log_prior_of(kinds)(log_params)

    def log_prior_of(self, kinds: np.ndarray) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """The same for parameters of these kinds, to be asked many times."""
        priors = self._by_kind
        parts = [(np.flatnonzero(kinds == kind), *prior) for kind, prior in priors.items() if kind in kinds]

        def log_prior(log_params: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = 0.0, np.zeros_like(log_params)
            for where, prior, power in parts:
                density, slope = prior.log_density(np.exp(power * log_params[where]))
                value += float(np.sum(density))
                gradient[where] = power * slope
            return value, gradient

        return log_prior

    def log_jacobian(self, kinds: np.ndarray) -> np.ndarray:
        """Slope of the log Jacobian of the logarithm: what a density of log parameters has more than `log_prior`."""
        return np.array([power * prior.power for prior, power in map(self._by_kind.__getitem__, kinds)])

    def of_logarithms(self, kinds: np.ndarray) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Log prior density of the logarithms of parameters of these kinds, and its gradient, to be asked many times.

        It does not depend on the scale that a prior is a density on. Kinds that have the same prior are asked for in
        one go, unless the prior is of several values together.
        """
        groups: list[tuple[Prior, float, list[int]]] = []
        for kind in dict.fromkeys(kinds.tolist()):
            prior, power = self._by_kind[kind]
            prior = prior.prior if isinstance(prior, OnLogScale) else prior
            places = np.flatnonzero(kinds == kind).tolist()
            alike = [found for *known, found in groups if known == [prior, power]]
            if alike and np.ndim(prior.log_density(np.ones(2))[0]) == 1:
                alike[0].extend(places)
            else:
                groups.append((prior, power, places))
        parts = [(np.array(places), prior, power, power * prior.power) for prior, power, places in groups]

        def log_prior(log_params: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = 0.0, np.empty_like(log_params)
            for where, prior, power, jacobian in parts:
                logs = log_params[where]
                density, slope = prior.log_density(np.exp(power * logs))
                value += float(np.sum(density)) + jacobian * float(logs.sum())
                gradient[where] = power * slope + jacobian
            return value, gradient

        return log_prior

    @property
    def _by_kind(self) -> Mapping[str, tuple[Prior, float]]:
        """The prior of each kind of parameter, and the power of the parameter that it is a prior of."""
        return {
            "lengthscale": (self.lengthscale, 1.0),
            "shape": (self.shape, 1.0),
            "signal_var": (self.signal, 0.5),  # a prior of the standard deviation: half the logarithm
            "noise_var": (self.noise, 0.5),
            "constant_var": (self.constant, 0.5),
            "linear_var": (self.linear, 0.5),
            "noise_scale": (self.noise, 1.0),
            "df": (self.df, 1.0),
            "concentration": (self.concentration, 1.0),
            "gamma_shape": (self.gamma_shape, 1.0),
        }

    def estimate(self, problem: Problem) -> Estimate:
        found = self.maximised(problem, self.log_prior)
        return replace(found, n_charged=self._n_charged(problem, found.log_params))

    def _n_charged(self, problem: Problem, log_params: np.ndarray) -> int:
        """Nats that the evidence has to bring: one for each parameter of the kernel, but for length-scales that the
        prior holds none, and log p + 1 for each that the data have pulled away from it, if that is less. What is
        infinite was not searched.
        """
        searched = np.isfinite(log_params)
        kinds = problem.kinds[searched]
        _, slopes = self.log_prior(kinds, (log_params - problem.log_units)[searched])
        is_lengthscale = kinds == "lengthscale"
        n_kernel, n_lengthscales = int(searched[: problem.kernel.log_params.size].sum()), int(is_lengthscale.sum())
        n_pulled = np.count_nonzero(slopes[is_lengthscale] > PULLED)
        price = n_pulled * (1.0 + math.log(max(n_lengthscales, 1)))
        return n_kernel - n_lengthscales + min(n_lengthscales, math.ceil(price))


@dataclass(frozen=True)
class Fixed(Hyper):
    """Given hyperparameters, in the units of the model: standardised, or the user's with ``GP(standardize=False)``.

    What is left None keeps the kernel's own value; `noise_var` is needed unless the noise of each point is known.

    Parameters
    ----------
    lengthscale : float or array (p,)
    signal_var, noise_var, constant_var, shape : float
    linear_var : float or array (p,)
    noise_scale, df, concentration, gamma_shape : float
        Parameters of the Student-t, negative binomial and gamma likelihoods.
    """

    lengthscale: Any = None
    signal_var: float | None = None
    noise_var: float | None = None
    constant_var: float | None = None
    linear_var: Any = None
    shape: float | None = None
    noise_scale: float | None = None
    df: float | None = None
    concentration: float | None = None
    gamma_shape: float | None = None

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            try:
                array = np.asarray(value, dtype=float)
            except (TypeError, ValueError):
                array = np.full(1, np.nan)
            if not np.all(np.isfinite(array) & (array > 0)):
                raise ValueError(f"`{name}` must be positive and finite, got {value!r}.")
            if array.ndim > (1 if name in PER_FEATURE else 0):
                kind = "one number, or one for each feature" if name in PER_FEATURE else "one number"
                raise ValueError(f"`{name}` must be {kind}, got shape {array.shape}.")

    def prepare(self, kernel: Kernel, likelihood: Likelihood) -> tuple[Kernel, Likelihood]:
        own = {name: float(self.values[name]) for name in likelihood.params if name in self.values}
        return kernel.with_values(self.values), replace(likelihood, **own)

    @property
    def values(self) -> Mapping[str, Any]:
        """The given values by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}

    def estimate(self, problem: Problem) -> Estimate:
        kinds = set(problem.kinds)
        for name in self.values:
            if name not in kinds:
                raise ValueError(f"The model has no `{name}` to fix; it has {', '.join(sorted(kinds))}.")
        if "noise_var" in kinds and self.noise_var is None:
            raise ValueError("`Fixed` needs `noise_var`, or the noise of each point as `fit(X, y, noise_var=...)`.")
        return Estimate(problem.log_params)


def _no_prior(_kinds: np.ndarray, log_params: np.ndarray) -> tuple[float, np.ndarray]:
    return 0.0, np.zeros_like(log_params)
