"""What all references of this room have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from gpsift.families import Gaussian
from gpsift.reference import Reference
from gpsift.tables import default_names, read_features


class Foreign(Reference):
    """A model of another library.

    Attributes
    ----------
    how : str
        How derivatives are made, in a few words.
    notices : tuple of str
        What a reader of its rankings should know.
    """

    how: str
    notices: tuple[str, ...] = ()

    def fresh(self) -> Self:
        """The same model without what it has computed and kept."""
        return self

    def moments(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Latent mean, latent variance and, for normal noise, its variance at the rows of X."""
        response = self.at(X)
        latent, observed = response.distribution(latent=True), response.distribution(latent=False)
        noise_var = observed.var - latent.var if isinstance(observed, Gaussian) else np.zeros_like(latent.mean)
        return latent.mean, latent.var, noise_var

    def __repr__(self) -> str:
        return f"{type(self).__name__} of {self.n_features} features ({self.how})"


def read_training_inputs(given: Any, n_features: int) -> np.ndarray:
    """Training inputs that the user gave, as an array."""
    values, _ = read_features(given, name="X_train")
    if values.shape[1] != n_features:
        raise ValueError(f"`X_train` has {values.shape[1]} columns but the model has {n_features} features.")
    return values


def read_names(given: Sequence[str] | None, known: Any, n_features: int) -> tuple[tuple[str, ...], bool]:
    """Names of the features, those given, those that the model knows, or x1, ...; and whether the user chose them."""
    names = given if given is not None else known
    if names is None:
        return default_names(n_features), False
    names = tuple(str(name) for name in names)
    if len(names) != n_features:
        raise ValueError(f"`feature_names` has {len(names)} names but the model has {n_features} features.")
    return names, True
