"""tinygp's kernels as ours, where we have them.

A length-scale for each column is written as a transform there: the kernel sees coordinates z_k = a_k x_c(k). What a
kernel sees is carried down the tree as an `Inputs`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from tinygp import kernels as tk
from tinygp import transforms as tt

from gpsift.adapters.terms import NoClosedForm, Term, added_up, linear, product, radial, reader_of
from gpsift.kernels import Constant, Kernel, Matern32, Matern52, RationalQuadratic, SquaredExponential


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a kernel sees: column `columns[k]` of n_features, times `scale[k]`."""

    columns: np.ndarray
    scale: np.ndarray
    n_features: int

    def times(self, factor: np.ndarray) -> Inputs:
        """The same coordinates, multiplied."""
        return Inputs(self.columns, self.scale * factor, self.n_features)

    def at(self, axis: Any) -> Inputs:
        """Some of the coordinates."""
        return Inputs(np.atleast_1d(self.columns[axis]), np.atleast_1d(self.scale[axis]), self.n_features)


def converted(kernel: Any, n_features: int) -> Kernel:
    """The same covariance function as a sum of our kernels.

    Raises `NoClosedForm`, which names what we do not have.
    """
    inputs = Inputs(np.arange(n_features), np.ones(n_features), n_features)
    return added_up(terms_of(kernel, inputs), type(kernel).__name__)[0]


def terms_of(kernel: Any, inputs: Inputs) -> list[Term]:
    """Terms whose sum the kernel is."""
    return reader_of(kernel, READERS)(kernel, inputs)


def _radial(kind: Any, kernel: Any, inputs: Inputs) -> list[Term]:
    is_euclidean = type(kernel.distance) is tk.L2Distance or (
        type(kernel.distance) is tk.L1Distance and inputs.columns.size == 1
    )
    if not is_euclidean:
        raise NoClosedForm(f"{type(kernel).__name__} with {type(kernel.distance).__name__}")
    own = {"shape": float(kernel.alpha)} if kind is RationalQuadratic else {}
    with np.errstate(divide="ignore"):  # a coordinate that is multiplied by 0 is one that the kernel ignores
        lengthscale = float(kernel.scale) / np.abs(inputs.scale)
    shared = lengthscale[0] if np.all(lengthscale == lengthscale[0]) else lengthscale
    return [radial(kind, shared, inputs.columns, inputs.n_features, **own)]


def _scaled(kernel: tt.Linear, inputs: Inputs) -> list[Term]:
    return terms_of(kernel.kernel, inputs.times(_diagonal(kernel.scale)))


def _whitened(kernel: tt.Cholesky, inputs: Inputs) -> list[Term]:
    return terms_of(kernel.kernel, inputs.times(1.0 / _diagonal(kernel.factor)))


def _diagonal(matrix: Any) -> np.ndarray:
    values = np.asarray(matrix, dtype=float)
    if values.ndim < 2:
        return values
    if values.shape[0] != values.shape[1] or np.any(values != np.diag(np.diag(values))):
        raise NoClosedForm("a transform that mixes columns")
    return np.diag(values)


READERS: dict[type, Callable[[Any, Inputs], list[Term]]] = {
    tk.Sum: lambda kernel, inputs: terms_of(kernel.kernel1, inputs) + terms_of(kernel.kernel2, inputs),
    tk.Product: lambda kernel, inputs: product(terms_of(kernel.kernel1, inputs), terms_of(kernel.kernel2, inputs)),
    tk.Constant: lambda kernel, inputs: [Constant(float(kernel.value))],
    tk.DotProduct: lambda kernel, inputs: [linear(inputs.scale**2, inputs.columns, inputs.n_features)],
    tk.ExpSquared: partial(_radial, SquaredExponential),
    tk.Matern32: partial(_radial, Matern32),
    tk.Matern52: partial(_radial, Matern52),
    tk.RationalQuadratic: partial(_radial, RationalQuadratic),
    tt.Linear: _scaled,
    tt.Cholesky: _whitened,
    tt.Subspace: lambda kernel, inputs: terms_of(kernel.kernel, inputs.at(kernel.axis)),
}
