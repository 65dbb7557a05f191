"""Declarations of hyperparameters: their units, limits, priors and steps of a search.

Kernels and likelihoods declare their hyperparameters in `PARAMS`. Searches, priors, samplers and projections read these
declarations, so that a new kernel or likelihood needs no change anywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from gpsift._utils.priors import HalfT, Prior

Unit = Literal["none", "input", "target", "target**2", "level**2", "target**2/input**2"]
# A hyperparameter is proportional to these powers of the standard deviations of the target and of its input.
TARGET_POWERS = {"target": 1.0, "target**2": 2.0, "level**2": 2.0, "target**2/input**2": 2.0}
INPUT_POWERS = {"input": 1.0, "target**2/input**2": -2.0}


@dataclass(frozen=True)
class Parameter:
    """A positive hyperparameter of a kernel or a likelihood.

    Limits and the prior refer to inputs and a target of unit scale.

    Parameters
    ----------
    name : str
        The name of its field in the kernel or likelihood.
    unit : str
        One of "none", "input", "target", "target**2", "level**2" and "target**2/input**2", where the level is the root
        mean square of the target.
    limits : (float, float)
        The range of a search, within which computations are numerically stable.
    prior : Prior
        The default prior. For a variance it is a prior of the standard deviation.
    prior_argument : str, optional
        The argument of `MAP` that replaces this prior.
    per_feature : bool
        Whether it may have a value for each feature.
    absent : float, optional
        The value, 0 or infinity, at which the feature or the term has no effect. A hyperparameter in the unit "input"
        whose absent value is infinity is a length-scale, which can switch features off.
    search_step : float
        The first step of a search along its logarithm, relative to that of a length-scale.
    short_start : float
        The factor on its initial value in the second start of a search, which has short length-scales and little noise.
    posterior_sd : float
        The typical standard deviation of its posterior, in the coordinates of `LaplaceApproximation`.
    projection_step : float
        The first step along its logarithm when a submodel is projected.
    """

    name: str
    unit: Unit = "none"
    limits: tuple[float, float] = (1e-30, 1e30)
    prior: Prior = HalfT(4.0, 1.0)
    prior_argument: str | None = None
    per_feature: bool = False
    absent: float | None = None
    search_step: float = 2.0
    short_start: float = 1.0
    posterior_sd: float = 1.0
    projection_step: float = 2.0

    @property
    def target_power(self) -> float:
        """The power of the target's scale to which it is proportional."""
        return TARGET_POWERS.get(self.unit, 0.0)

    @property
    def input_power(self) -> float:
        """The power of its input's scale to which it is proportional."""
        return INPUT_POWERS.get(self.unit, 0.0)

    @property
    def is_variance(self) -> bool:
        return self.target_power == 2.0

    @property
    def is_lengthscale(self) -> bool:
        return self.unit == "input" and self.absent == math.inf

    @property
    def prior_power(self) -> float:
        """The power of the hyperparameter whose density the prior is: 1/2 for a variance."""
        return 0.5 if self.is_variance else 1.0


@dataclass(frozen=True)
class Parameterized:
    """A kernel or likelihood with declared hyperparameters, each a field; searches use their logarithms.

    Attributes
    ----------
    PARAMS : tuple of Parameter
        The declaration of each hyperparameter. A name alone means the declaration of a base class, or
        `Parameter(name)` without one.
    """

    PARAMS: ClassVar[tuple[Parameter, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        known = {
            parameter.name: parameter
            for base in reversed(cls.__mro__[1:])
            for parameter in vars(base).get("PARAMS", ())
        }
        cls.PARAMS = tuple(known.get(p, Parameter(p)) if isinstance(p, str) else p for p in cls.PARAMS)

    @property
    def values(self) -> dict[str, Any]:
        """The hyperparameters that a search estimates, by name: a number, or one number for each feature."""
        return {parameter.name: getattr(self, parameter.name) for parameter in self.PARAMS}

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The declaration of each entry of `log_params`."""
        values = self.values
        known = [parameter for parameter in self.PARAMS if parameter.name in values]
        return tuple(parameter for parameter in known for _ in range(np.size(values[parameter.name])))

    @property
    def log_params(self) -> np.ndarray:
        """Logarithms of all hyperparameters as one vector."""
        with np.errstate(divide="ignore"):  # a variance of 0 switches a feature off
            return np.log(np.concatenate([np.empty(0), *map(np.ravel, self.values.values())]))

    def with_log_params(self, log_params: np.ndarray) -> Self:
        """Return the kernel or likelihood with other values of its hyperparameters."""
        values, taken = self.values, 0
        for name, own in self.values.items():
            value = np.exp(log_params[taken : taken + np.size(own)])
            values[name] = value if np.ndim(own) else float(value[0])
            taken += value.size
        return replace(self, **values)


def positions(parameters: Iterable[Parameter]) -> list[tuple[Parameter, np.ndarray]]:
    """Return each distinct parameter, in the order of its first position, with its positions."""
    found: list[tuple[Parameter, list[int]]] = []
    for i, parameter in enumerate(parameters):
        known = next((where for other, where in found if other is parameter or other == parameter), None)
        if known is None:
            found.append((parameter, [i]))
        else:
            known.append(i)
    return [(parameter, np.array(where)) for parameter, where in found]
