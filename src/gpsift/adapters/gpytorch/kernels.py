"""GPyTorch's kernels as ours, where we have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gpytorch import kernels as gpt

from gpsift._utils.arrays import to_numpy
from gpsift.adapters.terms import NoClosedForm, Term, added_up, linear, product, radial, reader_of, scaled
from gpsift.kernels import Constant, Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.kernels.radial import Radial

MATERN: dict[float, Callable[..., Radial]] = {1.5: Matern32, 2.5: Matern52}


def converted(kernel: gpt.Kernel, n_features: int) -> Kernel:
    """The same covariance function as a sum of our kernels, in double precision on the CPU.

    Raises `NoClosedForm` where there is none, and for kernels with a batch of hyperparameters.
    """
    if tuple(kernel.batch_shape):
        raise NoClosedForm(f"{type(kernel).__name__} with batch_shape {tuple(kernel.batch_shape)}")
    return added_up(terms_of(kernel, np.arange(n_features), n_features), type(kernel).__name__)[0]


def terms_of(kernel: gpt.Kernel, columns: np.ndarray, n_features: int) -> list[Term]:
    """Terms whose sum the kernel is, when it is called with these columns of the inputs."""
    if kernel.active_dims is not None:
        columns = columns[to_numpy(kernel.active_dims)]
    return _forward_terms(kernel, columns, n_features)


def _forward_terms(kernel: gpt.Kernel, columns: np.ndarray, n_features: int) -> list[Term]:
    """The same when its `forward` is called, which does not select columns."""
    return reader_of(kernel, READERS)(kernel, columns, n_features)


def value_of(parameter: Any) -> np.ndarray:
    """A tensor as an array of doubles."""
    return np.asarray(to_numpy(parameter), dtype=float)


def number_of(parameter: Any) -> float:
    """A tensor of one element as a number."""
    return float(value_of(parameter).reshape(()))


def _rbf(kernel: gpt.RBFKernel, columns: np.ndarray, n_features: int) -> list[Term]:
    return [radial(SquaredExponential, value_of(kernel.lengthscale), columns, n_features)]


def _matern(kernel: gpt.MaternKernel, columns: np.ndarray, n_features: int) -> list[Term]:
    if kernel.nu not in MATERN:
        raise NoClosedForm(f"{type(kernel).__name__}(nu={kernel.nu:g})")
    return [radial(MATERN[kernel.nu], value_of(kernel.lengthscale), columns, n_features)]


def _rational_quadratic(kernel: gpt.RQKernel, columns: np.ndarray, n_features: int) -> list[Term]:
    lengthscale, shape = value_of(kernel.lengthscale), number_of(kernel.alpha)
    return [radial(RationalQuadratic, lengthscale, columns, n_features, shape=shape)]


def _linear(kernel: gpt.LinearKernel, columns: np.ndarray, n_features: int) -> list[Term]:
    return [linear(value_of(kernel.variance), columns, n_features)]


def _scale(kernel: gpt.ScaleKernel, columns: np.ndarray, n_features: int) -> list[Term]:
    factor = number_of(kernel.outputscale)
    return [scaled(term, factor) for term in _forward_terms(kernel.base_kernel, columns, n_features)]


def _sum(kernel: gpt.AdditiveKernel, columns: np.ndarray, n_features: int) -> list[Term]:
    return [term for part in kernel.kernels for term in terms_of(part, columns, n_features)]


def _product(kernel: gpt.ProductKernel, columns: np.ndarray, n_features: int) -> list[Term]:
    total: list[Term] = [Constant(1.0)]
    for part in kernel.kernels:
        total = product(total, terms_of(part, columns, n_features))
    return total


READERS: dict[type, Callable[[Any, np.ndarray, int], list[Term]]] = {
    gpt.AdditiveKernel: _sum,
    gpt.ProductKernel: _product,
    gpt.ScaleKernel: _scale,
    gpt.RBFKernel: _rbf,
    gpt.MaternKernel: _matern,
    gpt.RQKernel: _rational_quadratic,
    gpt.LinearKernel: _linear,
    gpt.ConstantKernel: lambda kernel, _, __: [Constant(number_of(kernel.constant))],
}
