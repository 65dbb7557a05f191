"""The triple of a posterior whose kernel is a sum of products over features, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Self

import numpy as np

from gpsift._utils.arrays import like, to_numpy
from gpsift.kernels.products import ProductTerm
from gpsift.reference.base import MissingCapability
from gpsift.reference.posterior import Posterior


@dataclass(frozen=True, eq=False)
class ProductTriple:
    """Support points, weights and matrix, and the terms of the kernel.

    Parameters
    ----------
    posterior : Posterior
    terms : tuple of ProductTerm
        Those that vary.
    constant_var : float
        The sum of the others.
    slope_var : array (p,)
        Prior variances of the slopes of linear terms.
    """

    posterior: Posterior
    terms: tuple[ProductTerm, ...]
    constant_var: float
    slope_var: np.ndarray

    @classmethod
    def of(cls, posterior: Posterior) -> Self:
        """Of a posterior with such a kernel; others are refused."""
        n_features = posterior.Z.shape[1]
        terms = posterior.kernel.product_terms(n_features)
        if terms is None:
            raise MissingCapability(
                f"A kernel such as {posterior.kernel.title} is no sum of products over features; squared "
                "exponentials, Matern and rational quadratic kernels, linear terms and constants are."
            )
        varies = [bool(np.isfinite(term.lengthscale).any()) for term in terms]
        moving = tuple(term for term, does in zip(terms, varies, strict=True) if does)
        constant_var = sum(term.variance for term, does in zip(terms, varies, strict=True) if not does)
        return cls(posterior, moving, constant_var, posterior.kernel.slope_vars(n_features))

    @cached_property
    def Z(self) -> np.ndarray:
        """The support points, (m, p)."""
        return to_numpy(self.posterior.Z)

    @cached_property
    def weights(self) -> np.ndarray:
        """Of the support points, (m,)."""
        return to_numpy(self.posterior.weights)

    @cached_property
    def M(self) -> np.ndarray:
        """The matrix of the triple, (m, m)."""
        return reduce(add, (to_numpy(factor.matrix()) for factor in self.posterior.factors))

    @cached_property
    def slopes(self) -> np.ndarray:
        """What linear terms of the kernel make of the mean: a plane with these slopes, (p,)."""
        return self.slope_var * (self.weights @ self.Z)

    def varies_with(self, columns: Sequence[int]) -> bool:
        """Whether it depends on any of these features."""
        return bool(self.slope_var[list(columns)].any()) or any(term.varies_with(columns) for term in self.terms)

    @property
    def level(self) -> float:
        """What constant terms of the kernel add to the mean."""
        return self.constant_var * float(self.weights.sum())

    def explained(self, Q: np.ndarray) -> np.ndarray:
        """q M q^T of each row of Q (n, m)."""
        return reduce(add, (sign * np.sum(root * root, axis=0) for sign, root in self._roots(Q)))

    def explained_between(self, Q: np.ndarray) -> np.ndarray:
        """Q M Q^T, (n, n)."""
        return reduce(add, (sign * (root.T @ root) for sign, root in self._roots(Q)))

    def _roots(self, Q: np.ndarray) -> list[tuple[float, np.ndarray]]:
        """Signs and R Q^T of the factors of M, which keep digits that M itself has lost."""
        B = like(self.posterior.weights, Q).T
        return [(factor.sign, to_numpy(factor.root(B))) for factor in self.posterior.factors]
