r"""This module writes a latent posterior as sums of products over units, and averages it over their margins.

With kappa_kj(x) the factor of unit j between x and support point k, and independent units with margins mu_j, let

.. math::
    a_{kj} = \int \kappa_{kj} \, d\mu_j , \qquad d_{kj}(x) = \kappa_{kj}(x) - a_{kj} .

Every part of the function is a sum over products of these. Both are computed from kappa - 1, which is accurate also
where length-scales are long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Self

import numpy as np

from gpsift._utils.arrays import like, to_numpy
from gpsift.decomposition.margins import Margin
from gpsift.kernels.products import ProductTerm
from gpsift.reference.base import MissingCapability, PlacedPosterior
from gpsift.reference.posterior import Posterior


@dataclass(frozen=True, eq=False)
class ProductTriple:
    """A posterior whose kernel is a sum of products over features: support points, weights and matrix in NumPy."""

    posterior: Posterior
    terms: tuple[ProductTerm, ...]  # of the kernel, those that vary
    constant_var: float  # the sum of the constant terms
    slope_var: np.ndarray  # prior variances of the slopes of linear terms, (p,)

    @classmethod
    def of(cls, posterior: Posterior) -> Self:
        """Make the triple of a posterior; kernels that are no sums of products are refused."""
        n_features = posterior.Z.shape[1]
        terms = posterior.kernel.product_terms(n_features)
        if terms is None:
            raise MissingCapability(
                f"A kernel such as {posterior.kernel.title} is no sum of products over features; squared "
                "exponentials, Matern and rational quadratic kernels, linear terms and constants are."
            )
        varying = tuple(term for term in terms if np.isfinite(term.lengthscale).any())
        constant_var = sum(term.variance for term in terms if not np.isfinite(term.lengthscale).any())
        return cls(posterior, varying, constant_var, posterior.kernel.slope_vars(n_features))

    @cached_property
    def Z(self) -> np.ndarray:
        """The support points, (m, p)."""
        return to_numpy(self.posterior.Z)

    @cached_property
    def weights(self) -> np.ndarray:
        """The weights of the support points, (m,)."""
        return to_numpy(self.posterior.weights)

    @cached_property
    def M(self) -> np.ndarray:
        """The matrix of the triple, (m, m)."""
        return reduce(add, (to_numpy(factor.matrix()) for factor in self.posterior.factors))

    @cached_property
    def slopes(self) -> np.ndarray:
        """Slopes of the linear function that linear terms of the kernel add to the mean, (p,)."""
        return self.slope_var * (self.weights @ self.Z)

    @property
    def constant(self) -> float:
        """The number that constant terms of the kernel add to the mean."""
        return self.constant_var * float(self.weights.sum())

    def varies_with(self, columns: Sequence[int]) -> bool:
        """Whether the function depends on any of these features."""
        return bool(self.slope_var[list(columns)].any()) or any(term.varies_with(columns) for term in self.terms)

    def explained_variance(self, Q: np.ndarray) -> np.ndarray:
        """Return q M q^T for each row q of Q (n, m): the reduction of the prior variance by the data."""
        return reduce(add, (sign * np.sum(root * root, axis=0) for sign, root in self._roots(Q)))

    def explained_covariance(self, Q: np.ndarray) -> np.ndarray:
        """Return Q M Q^T, (n, n): the reduction of the prior covariance by the data."""
        return reduce(add, (sign * (root.T @ root) for sign, root in self._roots(Q)))

    def _roots(self, Q: np.ndarray) -> list[tuple[float, np.ndarray]]:
        """Return signs and R Q^T of the factors of M, which are more accurate than M itself."""
        B = like(self.posterior.weights, Q).T
        return [(factor.sign, to_numpy(factor.root(B))) for factor in self.posterior.factors]


@dataclass(frozen=True, eq=False)
class AveragedFactor:
    """The factor kappa of a unit in a term, between support points and the nodes of the unit's margin."""

    excess: np.ndarray  # kappa - 1, (m, q)
    weights: np.ndarray  # of the nodes, (q,)
    own_excess: float  # the average of kappa - 1 between two independent values of the unit

    @classmethod
    def of(cls, term: ProductTerm, Z: np.ndarray, own: tuple[int, ...], margin: Margin) -> Self:
        own_excess = margin.weights @ term.excess(own, margin.nodes, margin.nodes) @ margin.weights
        return cls(term.excess(own, Z[:, list(own)], margin.nodes), margin.weights, float(own_excess))

    @cached_property
    def mean_excess(self) -> np.ndarray:
        """The average a less 1, (m,)."""
        return self.excess @ self.weights

    @cached_property
    def deviation(self) -> np.ndarray:
        """The deviation d at the nodes, times the roots of their weights, (m, q)."""
        return (self.excess - self.mean_excess[:, None]) * np.sqrt(self.weights)

    @cached_property
    def value(self) -> np.ndarray:
        """The factor kappa at the nodes, times the roots of their weights, (m, q)."""
        return (1.0 + self.excess) * np.sqrt(self.weights)


@dataclass(frozen=True, eq=False)
class UnitProductTerm:
    """A term of the kernel as a product over units, by the factor of each."""

    term: ProductTerm
    factors: tuple[AveragedFactor, ...]

    @property
    def variance(self) -> float:
        return self.term.variance

    @cached_property
    def averages(self) -> np.ndarray:
        """The average a of each unit, (units, m)."""
        return np.array([1.0 + factor.mean_excess for factor in self.factors])


@dataclass(frozen=True, eq=False)
class Products:
    """A triple as products over units and their margins.

    Units that the model does not depend on are left out; `varying` has the numbers of the others.
    """

    triple: ProductTriple
    varying: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]
    margins: tuple[Margin, ...]  # in the units of the model
    terms: tuple[UnitProductTerm, ...]

    @classmethod
    def of(cls, placed: PlacedPosterior, columns: Sequence[tuple[int, ...]], margins: Sequence[Margin]) -> Self:
        """Make the products of a posterior over units, which are given by their columns of the user's table."""
        triple = ProductTriple.of(placed.posterior)
        varying, units, kept = [], [], []
        for number, (unit, margin) in enumerate(zip(columns, margins, strict=True)):
            own, nodes = placed.inputs_of(unit, margin.nodes)
            if triple.varies_with(own):
                varying.append(number)
                units.append(own)
                kept.append(Margin(nodes, margin.weights))
        pairs = list(zip(units, kept, strict=True))
        terms = [
            UnitProductTerm(term, tuple(AveragedFactor.of(term, triple.Z, own, margin) for own, margin in pairs))
            for term in triple.terms
        ]
        return cls(triple, tuple(varying), tuple(units), tuple(kept), tuple(terms))

    @property
    def average(self) -> float:
        """The mean of the function over all margins."""
        weights = self.triple.weights
        products = sum(float(term.variance * (weights @ term.averages.prod(axis=0))) for term in self.terms)
        linear = sum(
            float(margin.weights @ margin.nodes @ self.triple.slopes[list(own)])
            for own, margin in zip(self.columns, self.margins, strict=True)
        )
        return self.triple.constant + products + linear

    def subtract_average(self, unit: int, X: np.ndarray) -> np.ndarray:
        """Subtract the average of its margin from values of a unit's columns, (n, k)."""
        margin = self.margins[unit]
        return X - margin.weights @ margin.nodes

    def linear_part(self, unit: int) -> np.ndarray:
        """Return a unit's part of the linear terms, at the nodes of its margin, times the roots of their weights."""
        margin = self.margins[unit]
        values = self.subtract_average(unit, margin.nodes) @ self.triple.slopes[list(self.columns[unit])]
        return values * np.sqrt(margin.weights)
