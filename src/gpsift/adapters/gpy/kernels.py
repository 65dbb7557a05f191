"""GPy's kernels as ours, where we have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
from GPy import kern

from gpsift.adapters.terms import Term, White, added_up, linear, product, radial, reader_of
from gpsift.kernels import Constant, Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential


def converted(kernel: kern.Kern, n_features: int) -> tuple[Kernel, float]:
    """The same covariance function as a sum of our kernels, and the variance of the white noise in it.

    Products are multiplied out: constants are factors, and the product of two squared exponentials is one. Raises
    `NoClosedForm` for what is left.
    """
    return added_up(terms_of(kernel, n_features), type(kernel).__name__)


def terms_of(kernel: kern.Kern, n_features: int) -> list[Term]:
    """Terms whose sum the kernel is."""
    return reader_of(kernel, READERS)(kernel, n_features)


def _columns(kernel: kern.Kern) -> np.ndarray:
    """The columns of X that a kernel looks at."""
    return np.asarray(kernel._all_dims_active)


def _radial(kind: Callable[..., Any], kernel: kern.Kern, n_features: int) -> list[Term]:
    lengthscale, signal_var = kernel.lengthscale.values, float(kernel.variance[0])
    return [radial(kind, lengthscale, _columns(kernel), n_features, signal_var=signal_var)]


def _rational_quadratic(kernel: kern.RatQuad, n_features: int) -> list[Term]:
    # GPy has (1 + s / 2)^-power; ours divides s by the power.
    power, signal_var = float(kernel.power[0]), float(kernel.variance[0])
    lengthscale = kernel.lengthscale.values / np.sqrt(power)
    return [radial(RationalQuadratic, lengthscale, _columns(kernel), n_features, signal_var=signal_var, shape=power)]


READERS: dict[type, Callable[[Any, int], list[Term]]] = {
    kern.Add: lambda kernel, n: [term for part in kernel.parts for term in terms_of(part, n)],
    kern.Prod: lambda kernel, n: reduce(product, [terms_of(part, n) for part in kernel.parts]),
    kern.RBF: partial(_radial, SquaredExponential),
    kern.ExpQuad: partial(_radial, SquaredExponential),
    kern.Matern32: partial(_radial, Matern32),
    kern.Matern52: partial(_radial, Matern52),
    kern.RatQuad: _rational_quadratic,
    kern.Linear: lambda kernel, n: [linear(kernel.variances.values, _columns(kernel), n)],
    kern.Bias: lambda kernel, n: [Constant(float(kernel.variance[0]))],
    kern.White: lambda kernel, n: [White(float(kernel.variance[0]))],
}


def white_of(kernel: kern.Kern) -> float:
    """The variance of white noise that is added to a kernel, which need not have a closed form here.

    Noise that is multiplied with another kernel is not found; it counts as part of the function.
    """
    parts = kernel.parts if type(kernel) is kern.Add else [kernel]
    return sum(float(part.variance[0]) for part in parts if type(part) is kern.White)
