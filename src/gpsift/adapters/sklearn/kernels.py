"""scikit-learn's kernels as ours, where we have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

from gpsift.adapters.terms import (
    NoClosedForm,
    Term,
    White,
    added_up,
    factor_of,
    linear,
    product,
    radial,
    reader_of,
    scaled,
)
from gpsift.kernels import Constant, Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.kernels.radial import Radial

MATERN: dict[float, Callable[..., Radial]] = {1.5: Matern32, 2.5: Matern52, np.inf: SquaredExponential}


def converted(kernel: sk.Kernel, n_features: int) -> tuple[Kernel, float]:
    """The same covariance function as a sum of our kernels, and the variance of the white noise in it.

    Products are multiplied out: constants are factors, and the product of two squared exponentials is one. Raises
    `NoClosedForm` for what is left.
    """
    total, noise_var = added_up(terms_of(kernel, n_features), str(kernel))
    return total.for_features(n_features), noise_var


def terms_of(kernel: sk.Kernel, n_features: int) -> list[Term]:
    """Terms whose sum the kernel is."""
    return reader_of(kernel, READERS)(kernel, n_features)


def _radial(kind: Callable[..., Radial], length_scale: Any, n_features: int, **parameters: float) -> list[Term]:
    return [radial(kind, length_scale, np.arange(n_features), n_features, **parameters)]


def _matern(kernel: sk.Matern, n_features: int) -> list[Term]:
    if kernel.nu not in MATERN:
        raise NoClosedForm(f"Matern(nu={kernel.nu:g})")
    return _radial(MATERN[kernel.nu], kernel.length_scale, n_features)


def _power(kernel: sk.Exponentiation, n_features: int) -> list[Term]:
    terms, power = terms_of(kernel.kernel, n_features), kernel.exponent
    if len(terms) != 1 or not isinstance(terms[0], Constant | SquaredExponential | RationalQuadratic):
        raise NoClosedForm(f"{type(kernel).__name__} of {type(kernel.kernel).__name__}")
    term = scaled(terms[0], factor_of(terms[0]) ** (power - 1.0))
    if isinstance(term, Radial):
        term = replace(term, lengthscale=term.lengthscale / np.sqrt(power))
    return [replace(term, shape=term.shape * power) if isinstance(term, RationalQuadratic) else term]


READERS: dict[type, Callable[[Any, int], list[Term]]] = {
    sk.Sum: lambda kernel, n: terms_of(kernel.k1, n) + terms_of(kernel.k2, n),
    sk.Product: lambda kernel, n: product(terms_of(kernel.k1, n), terms_of(kernel.k2, n)),
    sk.Exponentiation: _power,
    sk.ConstantKernel: lambda kernel, _: [Constant(float(kernel.constant_value))],
    sk.WhiteKernel: lambda kernel, _: [White(float(kernel.noise_level))],
    sk.RBF: lambda kernel, n: _radial(SquaredExponential, kernel.length_scale, n),
    sk.Matern: _matern,
    sk.RationalQuadratic: lambda kernel, n: _radial(
        RationalQuadratic, kernel.length_scale, n, shape=float(kernel.alpha)
    ),
    sk.DotProduct: lambda kernel, n: [Constant(float(kernel.sigma_0) ** 2), linear(1.0, np.arange(n), n)],
}


def white_of(kernel: sk.Kernel) -> float:
    """The variance of white noise that is added to a kernel, which need not have a closed form here.

    Noise that is multiplied with anything but constants is not found; it counts as part of the function.
    """
    if isinstance(kernel, sk.WhiteKernel):
        return float(kernel.noise_level)
    if isinstance(kernel, sk.Sum):
        return white_of(kernel.k1) + white_of(kernel.k2)
    if isinstance(kernel, sk.Product):
        for one, other in ((kernel.k1, kernel.k2), (kernel.k2, kernel.k1)):
            if isinstance(one, sk.ConstantKernel):
                return float(one.constant_value) * white_of(other)
    return 0.0
