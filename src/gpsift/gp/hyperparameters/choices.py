"""Choices of hyperparameters: maximum likelihood, maximum a posteriori, or given values."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from gpsift._utils.parameter import Parameter, positions
from gpsift._utils.priors import GammaPrior, InverseGamma, OnLogScale, Prior
from gpsift.gp.hyperparameters.optimize import Estimate, maximise
from gpsift.gp.hyperparameters.priors import Density, LogPrior, PriorTerm, sum_of_log_priors
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.subsampling import SubsampledSearch, uses_subsampling
from gpsift.kernels import Kernel
from gpsift.kernels.linear import CONSTANT_VAR, LINEAR_VAR
from gpsift.kernels.profiles import SHAPE
from gpsift.kernels.radial import LENGTHSCALE, SIGNAL_VAR
from gpsift.likelihoods import Likelihood
from gpsift.likelihoods.gaussian import NOISE_VAR
from gpsift.likelihoods.log_link import CONCENTRATION, GAMMA_SHAPE
from gpsift.likelihoods.student_t import DF

# Default of the iterations of each start, at most.
MAX_ITERATIONS = 1000
# The data have moved a length-scale away from its prior if the slope of the log prior is more than this, in nats for a
# factor of e.
PULLED = 1.0
# Names of the hyperparameters that may have a value for each feature.
PER_FEATURE = tuple(parameter.name for parameter in (LENGTHSCALE, LINEAR_VAR))


def check_whole_numbers(choice: Any, **least: int) -> None:
    """Raise an error for fields of a choice that are no whole numbers, or below their least values."""
    for name, lowest in least.items():
        value = getattr(choice, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < lowest:
            raise ValueError(f"`{name}` must be a whole number of at least {lowest}, got {value!r}.")


class Hyper(ABC):
    """A way to find hyperparameters."""

    searches: ClassVar[bool] = False  # whether it maximises an objective
    switches: ClassVar[bool] = False  # whether features may be inactive in the end

    @property
    def samples(self) -> bool:
        """Whether it draws from their posterior."""
        return False

    def with_one_start(self) -> Hyper:
        """Return the choice with a search from a single, known start."""
        return self

    def for_chosen_features(self) -> Hyper:
        """Return the choice for a submodel, whose features are chosen already."""
        return self

    def with_groups(self, groups: Mapping[str, Sequence[str | int]]) -> Hyper:
        """Return the choice with these groups of features, unless it has groups or does not use them."""
        return self

    def prepare(self, kernel: Kernel, likelihood: Likelihood) -> tuple[Kernel, Likelihood]:
        """Return kernel and likelihood with the hyperparameters that are given."""
        return kernel, likelihood

    @abstractmethod
    def estimate(self, problem: Problem) -> Estimate:
        """Find the hyperparameters of the problem's model."""


class MultiStart(Hyper):
    """A search from several starts; subclasses are dataclasses with these fields."""

    searches: ClassVar[bool] = True
    # Whether the search begins on a sample of many rows. Without a prior the sample would be overfitted.
    subsamples_rows: ClassVar[bool] = False
    starts: int
    seed: int
    max_iterations: int

    def __post_init__(self) -> None:
        check_whole_numbers(self, starts=1, max_iterations=1)

    def with_one_start(self) -> Self:
        return replace(self, starts=1)  # type: ignore[type-var]

    def search(self, problem: Problem, log_prior: LogPrior, ceiling: float = np.inf) -> Estimate:
        """Return the best estimate over all starts."""
        options = {"n_starts": self.starts, "seed": self.seed, "max_iterations": self.max_iterations}
        if self.subsamples_rows and uses_subsampling(problem) and problem.curvature is None:
            return SubsampledSearch(problem, log_prior, **options).run()
        return maximise(problem, log_prior, **options, ceiling=ceiling)


@dataclass(frozen=True)
class ML2(MultiStart):
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
        return self.search(problem, _flat_prior, problem.ceiling)


@dataclass(frozen=True)
class MAP(MultiStart):
    """Maximum a posteriori: the marginal likelihood times a prior of the hyperparameters.

    Priors are densities of length-scales and of standard deviations ("magnitudes"), in units of the standardised
    inputs and target, whether or not the model itself is fitted in them. The defaults:

    - Magnitudes of signal, noise, level and slopes: half-t with 4 degrees of freedom and scale 1. The target has
      standard deviation 1, so none of them should be much larger, and the heavy tail allows exceptions. The prior
      of the noise is a density of its logarithm, which vanishes with the noise: only strong evidence leads to a model
      without noise.
    - Length-scales: inverse gamma with shape 1 and scale 10, as a density of the logarithm. Its mode is 10 standard
      deviations, where effects are almost linear, so that nonlinear effects need evidence. Its left tail is sharp,
      which excludes the tiny length-scales that fit noise. Its right tail is long, for features without effects. As a
      density of the length-scale itself, ``lengthscale=InverseGamma(1, 10)``, its tail has twice the penalty for each
      of these: from 150 features on the signal variance vanishes. A prior with its mode below 1, such as
      InverseGamma(5, 5), keeps every uninformative feature near that mode, and ARD then ranks them first.

    Parameters
    ----------
    lengthscale, signal, noise, constant, linear, shape : Prior
    df, concentration, gamma_shape : Prior
        Priors of the parameters of the Student-t, negative binomial and gamma likelihoods: weak, and small near the
        limits at which the likelihood is constant.
    starts, seed, max_iterations
        As in `ML2`.
    """

    subsamples_rows: ClassVar[bool] = True

    lengthscale: Prior = LENGTHSCALE.prior
    signal: Prior = SIGNAL_VAR.prior
    noise: Prior = NOISE_VAR.prior
    constant: Prior = CONSTANT_VAR.prior
    linear: Prior = LINEAR_VAR.prior
    shape: Prior = SHAPE.prior
    df: Prior = DF.prior
    concentration: Prior = CONCENTRATION.prior
    gamma_shape: Prior = GAMMA_SHAPE.prior
    starts: int = 3
    seed: int = 0
    max_iterations: int = MAX_ITERATIONS

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in (f.name for f in fields(self) if f.name not in ("starts", "seed", "max_iterations")):
            if not isinstance(getattr(self, name), Prior):
                raise TypeError(f"`{name}` must be a prior such as HalfT(4, 1), got {getattr(self, name)!r}.")

    def log_prior(self, parameters: Sequence[Parameter] | np.ndarray) -> Density:
        """Return the log prior density of these parameters as a function of their logarithms.

        It is summed in the order of the arguments, so that the order of the terms of a kernel does not matter.
        """
        arguments = [argument.name for argument in fields(self)]
        found = sorted(positions(parameters), key=lambda each: arguments.index(each[0].prior_argument or "starts"))
        return sum_of_log_priors([PriorTerm(where, self.prior_of(p), p.prior_power) for p, where in found])

    def log_prior_of_logarithms(self, parameters: Sequence[Parameter] | np.ndarray) -> Density:
        """Return the log prior density of the logarithms, whatever scale a prior is a density on.

        Parameters of equal priors are evaluated together, unless a prior is of several values together.
        """
        terms: list[PriorTerm] = []
        for parameter, where in positions(parameters):
            prior, power = self.prior_of(parameter), parameter.prior_power
            prior = prior.prior if isinstance(prior, OnLogScale) else prior
            equal = next((k for k, term in enumerate(terms) if (term.prior, term.power) == (prior, power)), None)
            if equal is None or np.ndim(prior.log_density(np.ones(2))[0]) == 0:
                terms.append(PriorTerm(where, prior, power, power * prior.power))
            else:
                terms[equal] = terms[equal]._replace(positions=np.append(terms[equal].positions, where))
        return sum_of_log_priors(terms)

    def prior_of(self, parameter: Parameter) -> Prior:
        """Return the prior of a parameter: the argument that replaces it, or the one that it declares."""
        return getattr(self, parameter.prior_argument) if parameter.prior_argument else parameter.prior

    def estimate(self, problem: Problem) -> Estimate:
        found = self.search(problem, self.log_prior)
        return replace(found, n_charged=self._n_charged(problem, found.log_params))

    def _n_charged(self, problem: Problem, log_params: np.ndarray) -> int:
        """Count the hyperparameters of the kernel that a penalty of the evidence counts.

        Length-scales count log p + 1 for each that the data have moved away from its prior, in all at most their
        number. Infinite ones were not searched.
        """
        searched = np.isfinite(log_params)
        _, slopes = self.log_prior(problem.parameters[searched])((log_params - problem.log_units)[searched])
        is_lengthscale = problem.is_lengthscale[searched]
        n_kernel, n_lengthscales = int(searched[: problem.kernel.log_params.size].sum()), int(is_lengthscale.sum())
        n_pulled = np.count_nonzero(slopes[is_lengthscale] > PULLED)
        price = n_pulled * (1.0 + math.log(max(n_lengthscales, 1)))
        return n_kernel - n_lengthscales + min(n_lengthscales, math.ceil(price))


def prior_of_draws() -> MAP:
    """Return the prior under which hyperparameters are drawn, by `NUTS` and for intervals of strengths.

    Intervals from draws under the prior of `MAP` itself, with length-scales of 10, hold the true strength less often. A
    search is the other way round: its mode under this prior predicts worse, and with 40 features it ranks inert ones
    first ("One prior" in benchmarks/RESULTS.md). The prior of the level, on which scores hardly depend, keeps it above
    0: near 0 its logarithm is far from normal.
    """
    return MAP(lengthscale=InverseGamma(0.75, 2.0), constant=GammaPrior(4.0, 4.0))


@dataclass(frozen=True)
class Fixed(Hyper):
    """Given hyperparameters, in the units of the model: standardised, or the user's with ``GP(standardize=False)``.

    Arguments that are None keep the value of the kernel; `noise_var` is needed unless the noise of each point is known.

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
        if problem.is_noise_var.any() and self.noise_var is None:
            raise ValueError("`Fixed` needs `noise_var`, or the noise of each point as `fit(X, y, noise_var=...)`.")
        return Estimate(problem.log_params)


def _flat_prior(_parameters: np.ndarray) -> Density:
    return lambda log_params: (0.0, np.zeros_like(log_params))
