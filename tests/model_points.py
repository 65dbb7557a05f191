"""The responses of a reference at the rows of a table."""

import numpy as np

from gpsift.likelihoods.distributions import Gaussian
from gpsift.reference.base import Response


def at(reference, X, rows=None):
    return reference.at(reference.inputs.points(X, rows))


def joint(reference, X, rows=None):
    return reference.joint(reference.inputs.points(X, rows))


def moments(reference, X):
    """Mean, latent variance and, for normal noise, its variance."""
    response = at(reference, X)
    latent, observed = response.distribution(latent=True), response.distribution(latent=False)
    noise_var = observed.var - latent.var if isinstance(observed, Gaussian) else np.zeros_like(latent.mean)
    return latent.mean, latent.var, noise_var


class PartialResponse(Response):
    """A response with methods that a test overrides where a measure needs them."""

    def distribution(self, *, latent):
        raise NotImplementedError

    def gradients(self):
        raise NotImplementedError

    def step(self, j, delta):
        raise NotImplementedError

    def section(self, j, base, offset):
        raise NotImplementedError
