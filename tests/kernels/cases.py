"""The kernels that every kernel test runs over."""

import numpy as np
import pytest

from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential

N_FEATURES = 3
LENGTHSCALE = np.array([1.0, 0.5, 2.0])

KERNELS = {
    "squared exponential": SquaredExponential(LENGTHSCALE, 1.7),
    "squared exponential, shared": SquaredExponential(1.3, 0.6, shared=True),
    "matern 3/2": Matern32(LENGTHSCALE, 1.7),
    "matern 3/2, shared": Matern32(0.8, 1.7, shared=True),
    "matern 5/2": Matern52(LENGTHSCALE, 1.7),
    "rational quadratic": RationalQuadratic(LENGTHSCALE, 1.7, shape=0.7),
    "constant": Constant(2.0),
    "linear": Linear(1.3),
    "linear, a variance each": Linear(np.array([1.0, 2.0, 0.3])),
    "sum": SquaredExponential(LENGTHSCALE, 1.7) + Linear(0.7) + Constant(0.4),
    "two radial terms": Matern52(LENGTHSCALE, 1.1) + RationalQuadratic(2.0, 0.5, shape=2.0),
}


def each(kernels):
    return pytest.mark.parametrize(
        "kernel", [pytest.param(kernel.for_features(N_FEATURES), id=name) for name, kernel in kernels.items()]
    )


def points(seed=1):
    """X and Z; the first row of Z is that of X, where a careless derivative of a distance is NaN."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(6, N_FEATURES)), rng.normal(size=(5, N_FEATURES))
    Z[0] = X[0]
    return X, Z


def unit_vectors():
    return np.eye(N_FEATURES)
