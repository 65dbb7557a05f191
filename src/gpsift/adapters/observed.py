"""What is observed of a normal latent value, in the terms of our families and likelihoods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpsift.likelihoods import Likelihood
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions import Distribution
from gpsift.reference.inputs import Inputs
from gpsift.reference.response import Predictive


@dataclass(frozen=True)
class NormalNoise:
    """A new observation of a normal latent value: the same with the variance of the noise added."""

    var: float

    def __call__(self, latent_mean: np.ndarray, latent_var: np.ndarray) -> Distribution:
        return families.Gaussian(latent_mean, latent_var + self.var)


@dataclass(frozen=True)
class Observed:
    """The same by a likelihood, which sees the latent value with the white noise of its kernel added."""

    likelihood: Likelihood
    white_var: float = 0.0

    def __call__(self, latent_mean: np.ndarray, latent_var: np.ndarray) -> Distribution:
        return self.likelihood.predictive(latent_mean, latent_var + self.white_var, np.ones_like(latent_mean))


class Noise(NamedTuple):
    """What is observed of a latent function, as soon as the variance of the kernel's white noise is known."""

    predictive: Callable[[float], Predictive]
    mean_of: str = "the target"
    notices: tuple[str, ...] = ()

    @classmethod
    def normal(cls, var: float, given: float | None, notices: tuple[str, ...] = ()) -> Noise:
        """Normal noise: that of the model, to which white noise is added, or the variance that the user gave."""
        return cls(lambda white: NormalNoise(var + white if given is None else float(given)), notices=notices)

    def fields(self, inputs: Inputs, white_var: float) -> dict[str, Any]:
        """The fields of a reference with these inputs."""
        predictive = self.predictive(white_var)
        return {"predictive": predictive, "inputs": inputs, "mean_of": self.mean_of, "notices": self.notices}
