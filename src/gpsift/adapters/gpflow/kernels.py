"""GPflow's kernels as ours, where we have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
from gpflow import kernels as gk

from gpsift.adapters.terms import Term, White, added_up, linear, product, radial, reader_of
from gpsift.kernels import Constant, Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential


def converted(kernel: gk.Kernel, n_features: int) -> tuple[Kernel, float]:
    """The same covariance function as a sum of our kernels, and the variance of the white noise in it.

    Products are multiplied out: constants are factors, and the product of two squared exponentials is one. Raises
    `NoClosedForm` for what is left.
    """
    return added_up(terms_of(kernel, n_features), type(kernel).__name__)


def terms_of(kernel: gk.Kernel, n_features: int) -> list[Term]:
    """Terms whose sum the kernel is."""
    return reader_of(kernel, READERS)(kernel, n_features)


def number(parameter: Any) -> float:
    """The value of a parameter that is one number."""
    return float(np.squeeze(np.asarray(parameter)))


def _columns(kernel: gk.Kernel, n_features: int) -> np.ndarray:
    """The columns of X that a kernel looks at."""
    return np.arange(n_features)[kernel.active_dims]


def _radial(kind: Any, kernel: Any, n_features: int) -> list[Term]:
    own = {"shape": number(kernel.alpha)} if kind is RationalQuadratic else {}
    lengthscale, columns = np.asarray(kernel.lengthscales), _columns(kernel, n_features)
    return [radial(kind, lengthscale, columns, n_features, signal_var=number(kernel.variance), **own)]


READERS: dict[type, Callable[[Any, int], list[Term]]] = {
    # Parts of a sum or product choose columns of X themselves.
    gk.Sum: lambda kernel, n: [term for part in kernel.kernels for term in terms_of(part, n)],
    gk.Product: lambda kernel, n: reduce(product, [terms_of(part, n) for part in kernel.kernels]),
    gk.SquaredExponential: partial(_radial, SquaredExponential),
    gk.Matern32: partial(_radial, Matern32),
    gk.Matern52: partial(_radial, Matern52),
    gk.RationalQuadratic: partial(_radial, RationalQuadratic),
    gk.Linear: lambda kernel, n: [linear(np.asarray(kernel.variance), _columns(kernel, n), n)],
    gk.Constant: lambda kernel, n: [Constant(number(kernel.variance))],
    gk.White: lambda kernel, n: [White(number(kernel.variance))],
}


def white_of(kernel: gk.Kernel) -> float:
    """The variance of white noise that is added to a kernel, which need not have a closed form here.

    Noise that is multiplied with another kernel is not found; it counts as part of the function.
    """
    parts = kernel.kernels if type(kernel) is gk.Sum else [kernel]
    return sum(number(part.variance) for part in parts if type(part) is gk.White)
