"""GPJax's kernels as ours, where we have them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
from gpjax import kernels as gk
from gpjax.kernels.base import Constant as GPJaxConstant
from gpjax.parameters import val

from gpsift.adapters.terms import Term, White, added_up, linear, product, radial, reader_of
from gpsift.kernels import Constant, Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential


def converted(kernel: Any, n_features: int) -> tuple[Kernel, float]:
    """The same covariance function as a sum of our kernels, and the variance of the white noise in it.

    Raises `NoClosedForm`, which names what we do not have.
    """
    return added_up(terms_of(kernel, n_features), type(kernel).__name__)


def terms_of(kernel: Any, n_features: int) -> list[Term]:
    """Terms whose sum the kernel is."""
    return reader_of(kernel, READERS)(kernel, n_features)


def number(parameter: Any) -> float:
    """The value of a parameter that is one number."""
    return float(np.squeeze(np.asarray(val(parameter))))


def _columns(kernel: Any, n_features: int) -> np.ndarray:
    return np.arange(n_features)[kernel.active_dims]


def _radial(kind: Any, kernel: Any, n_features: int) -> list[Term]:
    own = {"shape": number(kernel.alpha)} if kind is RationalQuadratic else {}
    lengthscale = np.asarray(val(kernel.lengthscale))
    columns = _columns(kernel, n_features)
    return [radial(kind, lengthscale, columns, n_features, signal_var=number(kernel.variance), **own)]


def _sum(kernel: Any, n_features: int) -> list[Term]:
    return [term for part in kernel.kernels for term in terms_of(part, n_features)]


def _product(kernel: Any, n_features: int) -> list[Term]:
    return reduce(product, (terms_of(part, n_features) for part in kernel.kernels))


READERS: dict[type, Callable[[Any, int], list[Term]]] = {
    gk.SumKernel: _sum,
    gk.ProductKernel: _product,
    GPJaxConstant: lambda kernel, n_features: [Constant(number(kernel.constant))],
    gk.White: lambda kernel, n_features: [White(number(kernel.variance))],
    gk.Linear: lambda kernel, n_features: [
        linear(val(kernel.variance), _columns(kernel, n_features), n_features),
    ],
    gk.RBF: partial(_radial, SquaredExponential),
    gk.Matern32: partial(_radial, Matern32),
    gk.Matern52: partial(_radial, Matern52),
    gk.RationalQuadratic: partial(_radial, RationalQuadratic),
}
