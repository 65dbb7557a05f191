"""What all references of this room have in common."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpsift.families import Gaussian
from gpsift.reference import Reference


class Foreign(Reference):
    """A model of another library."""

    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Latent mean, latent variance and, for normal noise, its variance at the rows of X."""
        response = self.at(X)
        latent, observed = response.distribution(latent=True), response.distribution(latent=False)
        noise_var = observed.var - latent.var if isinstance(observed, Gaussian) else np.zeros_like(latent.mean)
        return latent.mean, latent.var, noise_var

    def _take_identity(self, other: Reference) -> None:
        """Have the features and training inputs of another reference; for dataclasses, which are frozen."""
        for name in ("feature_names", "has_given_names", "X_train"):
            object.__setattr__(self, name, getattr(other, name))

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.n_features} features ({self.how})"


def read_only(values: Any) -> np.ndarray:
    """Points of a model as doubles; rankings hand them out, and nobody shall write into the user's model."""
    array = np.asarray(values, dtype=float).view()
    array.flags.writeable = False
    return array
