"""Libraries' likelihoods as ours: what is observed of a normal latent value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift.families import Family
from gpsift.likelihoods import Likelihood


@dataclass(frozen=True)
class Observed:
    """From a normal latent value, the white noise of its kernel added, to a new observation.

    Parameters
    ----------
    likelihood : Likelihood
    white_var : float
        Noise that the kernel adds before the likelihood sees the latent value.
    """

    likelihood: Likelihood
    white_var: float = 0.0

    def __call__(self, latent_mean: np.ndarray, latent_var: np.ndarray) -> Family:
        return self.likelihood.predictive(latent_mean, latent_var + self.white_var, np.ones_like(latent_mean))
