"""PyMC's covariance functions as ours, where we have them.

Their parameters are expressions of random variables. `symbols_of` lists those expressions, so that they can be computed
for all draws by one compiled function; `converted` takes the numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
from pymc.gp import cov as pc

from gpsift._utils.arrays import Array
from gpsift.adapters.terms import NoClosedForm, Term, White, added_up, linear, product, radial
from gpsift.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern32,
    Matern52,
    Pairs,
    RationalQuadratic,
    SquaredExponential,
)
from gpsift.kernels.linear import LinearPairs

# From an expression to its value at one draw.
Values = Callable[[Any], np.ndarray]

PARAMETERS: dict[type, tuple[str, ...]] = {
    pc.ExpQuad: ("ls",),
    pc.Matern32: ("ls",),
    pc.Matern52: ("ls",),
    pc.RatQuad: ("ls", "alpha"),
    pc.Linear: ("c",),
    pc.Constant: ("c",),
    pc.WhiteNoise: ("sigma",),
}


def symbols_of(cov: Any) -> Iterator[Any]:
    """Expressions of all parameters. Raises `NoClosedForm`, which names what we do not have."""
    if type(cov) in (pc.Add, pc.Prod):
        for part in cov._factor_list:
            yield from symbols_of(part)
    elif not isinstance(cov, pc.BaseCovariance):  # a number or an expression that is added or multiplied
        yield cov
    elif type(cov) in PARAMETERS:
        yield from (getattr(cov, name) for name in PARAMETERS[type(cov)])
    else:
        raise NoClosedForm(type(cov).__name__)


def converted(cov: Any, values: Values, n_features: int) -> tuple[Kernel, float]:
    """The same covariance function as a sum of our kernels, and the variance of the white noise in it."""
    return added_up(terms_of(cov, values, n_features), type(cov).__name__)


def terms_of(cov: Any, values: Values, n_features: int) -> list[Term]:
    """Terms whose sum the covariance function is."""
    if not isinstance(cov, pc.BaseCovariance):
        return [Constant(_number(values(cov)))]
    # By the class itself, not by what it inherits: a subclass may compute something else.
    return READERS[type(cov)](cov, values, n_features)


def _number(value: np.ndarray) -> float:
    if np.size(value) != 1:
        raise NoClosedForm(f"a factor of shape {np.shape(value)}")
    return float(np.squeeze(value))


def _radial(kind: Any, cov: Any, values: Values, n_features: int) -> list[Term]:
    own = {"shape": _number(values(cov.alpha))} if kind is RationalQuadratic else {}
    return [radial(kind, values(cov.ls), np.asarray(cov.active_dims), n_features, **own)]


def _linear(cov: Any, values: Values, n_features: int) -> list[Term]:
    columns = np.asarray(cov.active_dims)
    center = np.zeros(n_features)
    center[columns] = np.squeeze(values(cov.c))
    return [CenteredLinear(linear(1.0, columns, n_features).linear_var, center)]


def _sum(cov: Any, values: Values, n_features: int) -> list[Term]:
    return [term for part in cov._factor_list for term in terms_of(part, values, n_features)]


def _product(cov: Any, values: Values, n_features: int) -> list[Term]:
    return reduce(product, (terms_of(part, values, n_features) for part in cov._factor_list))


READERS: dict[type, Callable[[Any, Values, int], list[Term]]] = {
    pc.Add: _sum,
    pc.Prod: _product,
    pc.ExpQuad: partial(_radial, SquaredExponential),
    pc.Matern32: partial(_radial, Matern32),
    pc.Matern52: partial(_radial, Matern52),
    pc.RatQuad: partial(_radial, RationalQuadratic),
    pc.Linear: _linear,
    pc.Constant: lambda cov, values, n_features: [Constant(_number(values(cov.c)))],
    pc.WhiteNoise: lambda cov, values, n_features: [White(_number(values(cov.sigma)) ** 2)],
}


@dataclass(frozen=True)
class CenteredLinear(Linear):
    """k(x, z) = sum_j linear_var_j (x_j - c_j) (z_j - c_j): lines through a point.

    Parameters
    ----------
    center : array (p,)
    """

    center: Any = 0.0

    def between(self, X: Array, Z: Array) -> Pairs:
        return CenteredLinearPairs(self, X - self.center, Z - self.center)

    def diag(self, X: Array) -> Array:
        return super().diag(X - self.center)

    def diag_log_gradient(self, X: Array, g: Array) -> np.ndarray:
        return super().diag_log_gradient(X - self.center, g)

    def diag_gradient(self, X: Array) -> Array:
        return super().diag_gradient(X - self.center)

    def diag_step(self, X: Array, j: int, delta: float) -> Array:
        return super().diag_step(X - self.center, j, delta)


class CenteredLinearPairs(LinearPairs):
    """Between points that are centred already."""

    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        center = np.broadcast_to(self.kernel.center, self.X.shape[1])[j]  # type: ignore[attr-defined]
        return super().section(w, j, base - center, offset)
