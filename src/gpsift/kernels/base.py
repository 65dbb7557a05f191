"""The interface of a kernel, its hyperparameters, and sums of kernels."""

from __future__ import annotations

import functools
import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np

from gpsift._utils.arrays import Array, namespace
from gpsift._utils.parameter import Parameter, Parameterized
from gpsift.kernels.products import ProductTerm


class Pairs(ABC):
    """A kernel evaluated between the rows of X (n, p) and of Z (m, p).

    Derivatives with respect to x are contracted with coefficients C: a vector (m,), the same for every row of X, or a
    matrix (n, m). A Gaussian process needs no more, and the cost is one matrix product for all features.
    """

    K: Array

    @property
    def xp(self) -> Any:
        """The array library."""
        return namespace(self.K)

    @abstractmethod
    def log_gradient(self, G: Array) -> np.ndarray:
        """Return sum_ik G_ik dK_ik / d log(parameter), one number for each hyperparameter."""

    @abstractmethod
    def input_gradient(self, C: Array) -> Array:
        """Return sum_k C_ik dk(x_i, z_k) / dx_ij, an (n, p) array."""

    @abstractmethod
    def input_jacobian(self, j: int) -> Array:
        """Return dk(x_i, z_k) / dx_ij for one feature j, an (n, m) array."""

    @abstractmethod
    def input_hessian(self, C: Array) -> Array:
        """Return sum_k C_ik d2k(x_i, z_k) / dx_ij dx_il, an (n, p, p) array."""

    @abstractmethod
    def step(self, j: int, delta: float) -> Array:
        """Return k(x_i + delta e_j, z_k) - k(x_i, z_k), an (n, m) array, without subtracting two kernel values."""

    @abstractmethod
    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        """Return sum_k w_k k(x_i, z_k) with feature j of x_i set to base_i + offset_q, an (n, q) array."""

    def input_gradients(self, V: Array) -> Array:
        """Return `input_gradient` of each of the columns of V (m, F), an (n, p, F) array."""
        return self.xp.stack([self.input_gradient(V[:, f]) for f in range(V.shape[1])], axis=2)

    def sections(self, V: Array, j: int, base: Array, offset: Array) -> Array:
        """Return `section` of each of the columns of V (m, F), an (n, q, F) array."""
        return self.xp.stack([self.section(V[:, f], j, base, offset) for f in range(V.shape[1])], axis=2)


@dataclass(frozen=True)
class Kernel(Parameterized, ABC):
    """A covariance function, whose hyperparameters are positive.

    A kernel with the same prior variance everywhere inherits `Stationary`, which defines the methods `diag...`.
    """

    TITLE: ClassVar[str]

    @property
    def title(self) -> str:
        """The name of the kernel, such as "squared exponential + constant"."""
        return self.TITLE

    def with_values(self, values: Mapping[str, Any]) -> Self:
        """Return the kernel with the named hyperparameters replaced; names that it does not have are ignored."""
        return replace(self, **{name: values[name] for name in self.values if name in values})

    def param_labels(self, names: Sequence[str]) -> list[tuple[str, str | None]]:
        """Return (name, feature) of each entry of `log_params`; the feature is None for a shared hyperparameter."""
        labels: list[tuple[str, str | None]] = []
        for name, value in self.values.items():
            labels.extend((name, feature) for feature in (names if np.ndim(value) else (None,)))
        return labels

    def for_features(self, n_features: int) -> Self:
        """Return the kernel for this number of features, with checked values and defaults for the missing ones."""
        values = {name: np.asarray(own, dtype=float) for name, own in self.values.items()}
        for name, value in values.items():
            if not np.all(np.isfinite(value) & (value > 0)):
                raise ValueError(f"`{name}` of {type(self).__name__} must be positive and finite, got {value}.")
            if value.ndim > 0 and value.shape != (n_features,):
                raise ValueError(
                    f"`{name}` of {type(self).__name__} has shape {value.shape} but the data have {n_features} "
                    f"features. Give one number, or one for each feature."
                )
        return replace(self, **{name: value if value.ndim else float(value) for name, value in values.items()})

    def for_columns(self, columns: Sequence[int]) -> Self:
        """Return the kernel of some features only, with their entries of hyperparameters that each feature has."""
        per_feature = {name: np.asarray(value)[list(columns)] for name, value in self.values.items() if np.ndim(value)}
        return replace(self, **per_feature)

    @property
    def parts(self) -> tuple[Kernel, ...]:
        """The terms whose sum is the kernel."""
        return (self,)

    @property
    def lengthscales(self) -> list[np.ndarray]:
        """One vector of length-scales for each radial term."""
        return []

    @property
    def switches_features(self) -> bool:
        """Whether each feature has its own hyperparameters, so that one feature can be switched off."""
        return True

    @property
    def has_fast_sections(self) -> bool:
        """Whether `Pairs.section` takes little longer for many offsets than for one."""
        return False

    def product_terms(self, n_features: int) -> tuple[ProductTerm, ...] | None:
        """Return products over features whose sum is the kernel without its linear terms, or None if none are known."""
        return None

    def slope_vars(self, n_features: int) -> np.ndarray:
        """Return the prior variance of the slope of each feature in linear terms, (p,)."""
        return np.zeros(n_features)

    @abstractmethod
    def between(self, X: Array, Z: Array) -> Pairs:
        """Evaluate the kernel between two sets of points; pass one array twice if they are identical."""

    @abstractmethod
    def diag(self, X: Array) -> Array:
        """Return k(x_i, x_i)."""

    @abstractmethod
    def diag_log_gradient(self, X: Array, g: Array) -> np.ndarray:
        """Return sum_i g_i dk(x_i, x_i) / d log(parameter), one number for each hyperparameter."""

    @abstractmethod
    def diag_gradient(self, X: Array) -> Array:
        """Return d k(x_i, x_i) / dx_ij, an (n, p) array."""

    @abstractmethod
    def diag_hessian(self, X: Array) -> Array:
        """Return d2 k(x_i, x_i) / dx_ij dx_il, an (n, p, p) array."""

    @abstractmethod
    def diag_step(self, X: Array, j: int, delta: float) -> Array:
        """Return k(x_i + delta e_j, x_i + delta e_j) - k(x_i, x_i)."""

    def __add__(self, other: Kernel) -> Sum:
        return Sum((self, other)) if isinstance(other, Kernel) else NotImplemented


class Stationary(Kernel, ABC):
    """A kernel with the same prior variance everywhere."""

    @property
    @abstractmethod
    def prior_var(self) -> float:
        """k(x, x)."""

    def diag(self, X: Array) -> Array:
        return namespace(X).full_like(X[:, 0], self.prior_var)

    def diag_log_gradient(self, X: Array, g: Array) -> np.ndarray:
        x, xp = X[:1, :], namespace(X, g)
        return self.between(x, x).log_gradient(xp.reshape(xp.sum(g), (1, 1)))

    def diag_gradient(self, X: Array) -> Array:
        return namespace(X).zeros_like(X)

    def diag_hessian(self, X: Array) -> Array:
        return namespace(X).zeros_like(X[:, :, None] * X[:, None, :])

    def diag_step(self, X: Array, j: int, delta: float) -> Array:
        return namespace(X).zeros_like(X[:, 0])


@dataclass(frozen=True)
class Sum(Kernel):
    """The sum of kernels, written ``k_1 + k_2``."""

    terms: tuple[Kernel, ...]

    def __post_init__(self) -> None:
        flat: list[Kernel] = []
        for term in self.terms:
            flat.extend(term.terms if isinstance(term, Sum) else (term,))
        object.__setattr__(self, "terms", tuple(flat))

    @property
    def parts(self) -> tuple[Kernel, ...]:
        return self.terms

    @property
    def title(self) -> str:
        return " + ".join(term.title for term in self.terms)

    @property
    def log_params(self) -> np.ndarray:
        return np.concatenate([term.log_params for term in self.terms])

    def with_log_params(self, log_params: np.ndarray) -> Self:
        ends = list(accumulate(term.log_params.size for term in self.terms))
        pieces = zip(self.terms, [0, *ends], ends, strict=False)
        return replace(self, terms=tuple(term.with_log_params(log_params[start:end]) for term, start, end in pieces))

    def param_labels(self, names: Sequence[str]) -> list[tuple[str, str | None]]:
        return [label for term in self.terms for label in term.param_labels(names)]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(parameter for term in self.terms for parameter in term.parameters)

    def with_values(self, values: Mapping[str, Any]) -> Self:
        return replace(self, terms=tuple(term.with_values(values) for term in self.terms))

    def for_features(self, n_features: int) -> Self:
        return replace(self, terms=tuple(term.for_features(n_features) for term in self.terms))

    def for_columns(self, columns: Sequence[int]) -> Self:
        return replace(self, terms=tuple(term.for_columns(columns) for term in self.terms))

    @property
    def lengthscales(self) -> list[np.ndarray]:
        return [lengthscale for term in self.terms for lengthscale in term.lengthscales]

    @property
    def switches_features(self) -> bool:
        return all(term.switches_features for term in self.terms)

    @property
    def has_fast_sections(self) -> bool:
        return all(term.has_fast_sections for term in self.terms)

    def product_terms(self, n_features: int) -> tuple[ProductTerm, ...] | None:
        parts = [term.product_terms(n_features) for term in self.terms]
        known = [part for part in parts if part is not None]
        return tuple(term for part in known for term in part) if len(known) == len(parts) else None

    def slope_vars(self, n_features: int) -> np.ndarray:
        return np.sum([term.slope_vars(n_features) for term in self.terms], axis=0)

    def between(self, X: Array, Z: Array) -> Pairs:
        return SumPairs([term.between(X, Z) for term in self.terms])

    def diag(self, X: Array) -> Array:
        return _total(term.diag(X) for term in self.terms)

    def diag_log_gradient(self, X: Array, g: Array) -> np.ndarray:
        return np.concatenate([term.diag_log_gradient(X, g) for term in self.terms])

    def diag_gradient(self, X: Array) -> Array:
        return _total(term.diag_gradient(X) for term in self.terms)

    def diag_hessian(self, X: Array) -> Array:
        return _total(term.diag_hessian(X) for term in self.terms)

    def diag_step(self, X: Array, j: int, delta: float) -> Array:
        return _total(term.diag_step(X, j, delta) for term in self.terms)


class SumPairs(Pairs):
    """A sum of kernels between two sets of points; each derivative is the sum of the derivatives."""

    def __init__(self, parts: Sequence[Pairs]):
        self.parts = parts

    @cached_property
    def K(self) -> Array:
        return _total(part.K for part in self.parts)

    def log_gradient(self, G: Array) -> np.ndarray:
        return np.concatenate([part.log_gradient(G) for part in self.parts])

    def input_gradient(self, C: Array) -> Array:
        return _total(part.input_gradient(C) for part in self.parts)

    def input_jacobian(self, j: int) -> Array:
        return _total(part.input_jacobian(j) for part in self.parts)

    def input_hessian(self, C: Array) -> Array:
        return _total(part.input_hessian(C) for part in self.parts)

    def step(self, j: int, delta: float) -> Array:
        return _total(part.step(j, delta) for part in self.parts)

    def section(self, w: Array, j: int, base: Array, offset: Array) -> Array:
        return _total(part.section(w, j, base, offset) for part in self.parts)

    def input_gradients(self, V: Array) -> Array:
        return _total(part.input_gradients(V) for part in self.parts)

    def sections(self, V: Array, j: int, base: Array, offset: Array) -> Array:
        return _total(part.sections(V, j, base, offset) for part in self.parts)


def _total(arrays: Iterable[Array]) -> Array:
    return functools.reduce(operator.add, arrays)
