"""scikit-learn's kernels as ours, where we have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sk

from gpsift.adapters.terms import NoClosedForm, White, reader_of
from gpsift.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern32,
    Matern52,
    RationalQuadratic,
    SquaredExponential,
    Sum,
)
from gpsift.kernels.radial import Radial

MATERN: dict[float, Callable[..., Radial]] = {1.5: Matern32, 2.5: Matern52, np.inf: SquaredExponential}


Term = Kernel | White


def converted(kernel: sk.Kernel, n_features: int) -> tuple[Kernel, float]:
    """The same covariance function as a sum of our kernels, and the variance of the white noise in it.

    Products are multiplied out: constants are factors, and the product of two squared exponentials is one. Raises
    `NoClosedForm` for what is left.
    """
    terms = [term for term in terms_of(kernel) if _factor(term) != 0.0]
    noise_var = sum(term.variance for term in terms if isinstance(term, White))
    functions = tuple(term for term in terms if isinstance(term, Kernel))
    if not functions:
        raise NoClosedForm(f"{kernel} has no part that depends on X")
    total = functions[0] if len(functions) == 1 else Sum(functions)
    return total.for_features(n_features), float(noise_var)


def terms_of(kernel: sk.Kernel) -> list[Term]:
    """Terms whose sum the kernel is."""
    return reader_of(kernel, READERS)(kernel)


def _radial(kind: Callable[..., Radial], length_scale: Any, **parameters: float) -> Radial:
    value = np.squeeze(np.asarray(length_scale, dtype=float))
    return kind(float(value), shared=True, **parameters) if value.ndim == 0 else kind(value, **parameters)


def _matern(kernel: sk.Matern) -> list[Term]:
    if kernel.nu not in MATERN:
        raise NoClosedForm(f"Matern(nu={kernel.nu:g})")
    return [_radial(MATERN[kernel.nu], kernel.length_scale)]


def _product(kernel: sk.Product) -> list[Term]:
    return [product_of(a, b) for a in terms_of(kernel.k1) for b in terms_of(kernel.k2)]


def _power(kernel: sk.Exponentiation) -> list[Term]:
    terms, power = terms_of(kernel.kernel), kernel.exponent
    if len(terms) != 1 or not isinstance(terms[0], Constant | SquaredExponential | RationalQuadratic):
        raise NoClosedForm(f"{type(kernel).__name__} of {type(kernel.kernel).__name__}")
    term = _scaled(terms[0], _factor(terms[0]) ** (power - 1.0))
    if isinstance(term, Radial):
        term = replace(term, lengthscale=term.lengthscale / np.sqrt(power))
    return [replace(term, shape=term.shape * power) if isinstance(term, RationalQuadratic) else term]


READERS: dict[type, Callable[[Any], list[Term]]] = {
    sk.Sum: lambda kernel: terms_of(kernel.k1) + terms_of(kernel.k2),
    sk.Product: _product,
    sk.Exponentiation: _power,
    sk.ConstantKernel: lambda kernel: [Constant(float(kernel.constant_value))],
    sk.WhiteKernel: lambda kernel: [White(float(kernel.noise_level))],
    sk.RBF: lambda kernel: [_radial(SquaredExponential, kernel.length_scale)],
    sk.Matern: _matern,
    sk.RationalQuadratic: lambda kernel: [
        _radial(RationalQuadratic, kernel.length_scale, shape=float(kernel.alpha)),
    ],
    sk.DotProduct: lambda kernel: [Constant(float(kernel.sigma_0) ** 2), Linear(1.0)],
}


def product_of(a: Term, b: Term) -> Term:
    """The product of two terms, where it is a term."""
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Constant):
            return _scaled(other, one.constant_var)
        if isinstance(one, White) and isinstance(other, White | Radial):
            return White(one.variance * _factor(other))
    if isinstance(a, SquaredExponential) and isinstance(b, SquaredExponential):
        lengthscale = 1.0 / np.sqrt(1.0 / np.square(a.lengthscale) + 1.0 / np.square(b.lengthscale))
        return _radial(SquaredExponential, lengthscale, signal_var=a.signal_var * b.signal_var)
    raise NoClosedForm(f"a product of {type(a).__name__} and {type(b).__name__}")


# What multiplies a term.
FACTORS = {White: "variance", Constant: "constant_var", Linear: "linear_var"}


def _factor(term: Term) -> float:
    return getattr(term, FACTORS.get(type(term), "signal_var"))


def _scaled(term: Term, factor: float) -> Term:
    return replace(term, **{FACTORS.get(type(term), "signal_var"): factor * _factor(term)})  # type: ignore[type-var]


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
