"""The answer of `predict`: a distribution at each point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpsift._utils.notebook import words_and_table
from gpsift._utils.user_arrays import read_target
from gpsift.likelihoods.distributions import Distribution, Gaussian

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Prediction:
    """The predictive distribution at a set of points.

    Attributes
    ----------
    mean, var : array (n,)
        Moments of a new observation, noise included: of a class 1, a count, ...
    latent_mean, latent_var : array (n,)
        Moments of the noise-free function value, before any link; (n, C) with a function for each of several classes.
    family : Distribution
        The distribution of a new observation.
    latent_family : Distribution or None
        That of the noise-free function value, where it is not normal with the moments above.
    """

    family: Distribution
    latent_mean: np.ndarray
    latent_var: np.ndarray
    latent_family: Distribution | None = None

    @property
    def mean(self) -> np.ndarray:
        return self.family.mean

    @property
    def var(self) -> np.ndarray:
        return self.family.var

    def distribution(self, *, latent: bool = False) -> Distribution:
        """The distribution of an observation, or of the noise-free function value."""
        if not latent:
            return self.family
        return Gaussian(self.latent_mean, self.latent_var) if self.latent_family is None else self.latent_family

    def log_density(self, y: Any) -> np.ndarray:
        """log p(y_i) of new observations at these points."""
        return self.family.log_density(read_target(y, len(self.latent_mean)))

    def quantile(self, probability: float | Sequence[float], *, latent: bool = False) -> np.ndarray:
        """Quantiles: (n,) for one probability, (n, k) for k of them."""
        return self.distribution(latent=latent).quantile(np.asarray(probability, dtype=float))

    def interval(self, level: float = 0.95, *, latent: bool = False) -> np.ndarray:
        """Central intervals, (n, 2)."""
        if not 0 < level < 1:
            raise ValueError(f"`level` must lie between 0 and 1, got {level}.")
        return self.quantile([0.5 - level / 2, 0.5 + level / 2], latent=latent)

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row for each point: mean and standard deviation; of several classes probabilities."""
        import pandas as pd

        if self.mean.ndim == 2:
            return pd.DataFrame(self.mean, columns=[f"class {k}" for k in range(self.mean.shape[1])])
        return pd.DataFrame({"mean": self.mean, "sd": np.sqrt(self.var)})

    def _repr_html_(self) -> str:
        n = len(self.latent_mean)
        return words_and_table(f"{n} {'prediction' if n == 1 else 'predictions'} of new observations", self.to_frame())

    def sample(self, n_draws: int = 1, *, seed: int | None = 0, latent: bool = False) -> np.ndarray:
        """Draws (n_draws, n), each point on its own; `FittedGP.sample` draws whole functions."""
        return self.distribution(latent=latent).sample(n_draws, np.random.default_rng(seed))
