"""Covariance functions, with their derivatives with respect to inputs and hyperparameters.

A `Kernel` is an immutable set of hyperparameters. ``kernel.between(X, Z)`` evaluates it between two sets of points and
returns `Pairs`: the matrix ``K`` and every derivative that the package needs, contracted so that no n x n x p array
is ever built. Read `base.py` first (the interface), then `radial.py`, which implements the squared exponential, Matérn
and rational quadratic kernels except for the functions of distance in `profiles.py`.
"""

from gpsift.kernels.base import Kernel, Pairs, Sum
from gpsift.kernels.linear import Constant, Linear
from gpsift.kernels.profiles import Matern32, Matern52, RationalQuadratic, SquaredExponential

__all__ = [
    "Constant",
    "Kernel",
    "Linear",
    "Matern32",
    "Matern52",
    "Pairs",
    "RationalQuadratic",
    "SquaredExponential",
    "Sum",
]
