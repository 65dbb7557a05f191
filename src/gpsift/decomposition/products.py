"""The triple of a posterior whose kernel is a sum of products over features, as NumPy arrays."""

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


@dataclass(frozen=True, eq=False)
class AveragedFactor:
    """The factor of a unit in a term, between support points and the nodes of the unit's margin.

    Parameters
    ----------
    excess : array (m, q)
        kappa - 1.
    weights : array (q,)
        Of the nodes.
    own_excess : float
        The average of kappa - 1 between two independent values of the unit.
    """

    excess: np.ndarray
    weights: np.ndarray
    own_excess: float

    @cached_property
    def mean_excess(self) -> np.ndarray:
        """a - 1, (m,)."""
        return self.excess @ self.weights

    @property
    def average(self) -> np.ndarray:
        """a, (m,)."""
        return 1.0 + self.mean_excess

    @cached_property
    def deviation(self) -> np.ndarray:
        """d at the nodes, times the roots of their weights, (m, q)."""
        return (self.excess - self.mean_excess[:, None]) * np.sqrt(self.weights)

    @cached_property
    def value(self) -> np.ndarray:
        """kappa at the nodes, times the roots of their weights, (m, q)."""
        return (1.0 + self.excess) * np.sqrt(self.weights)


@dataclass(frozen=True, eq=False)
class ProductTermOfUnits:
    """One term of the kernel over the units, in the units of the model."""

    term: ProductTerm
    columns: tuple[tuple[int, ...], ...]
    nodes: tuple[np.ndarray, ...]
    factors: tuple[AveragedFactor, ...]

    @property
    def variance(self) -> float:
        return self.term.variance

    @cached_property
    def averages(self) -> np.ndarray:
        """a of each unit, (units, m)."""
        return np.array([factor.average for factor in self.factors])

    @property
    def level(self) -> np.ndarray:
        """The product of all averages, (m,)."""
        return self.averages.prod(axis=0)

    def between(self, unit: int, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """kappa - 1 of a unit between rows, of which X holds the unit's columns only and Z all, (n, m)."""
        columns = list(self.columns[unit])
        return self.term.excess(columns, X, Z[:, columns])


@dataclass(frozen=True, eq=False)
class Products:
    """A triple seen through units and their margins.

    Units that the model does not depend on are not among them: `varying` numbers those that are.
    """

    triple: ProductTriple
    varying: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]
    margins: tuple[Margin, ...]  # in the units of the model
    terms: tuple[ProductTermOfUnits, ...]

    @classmethod
    def of(cls, placed: PlacedPosterior, columns: Sequence[tuple[int, ...]], margins: Sequence[Margin]) -> Self:
        """Of units with the given columns of the user's table."""
        triple = ProductTriple.of(placed.posterior)
        seen = [_seen(placed, unit, margin) for unit, margin in zip(columns, margins, strict=True)]
        varying = tuple(number for number, (own, _) in enumerate(seen) if triple.varies_with(own))
        units, there = tuple(seen[number][0] for number in varying), tuple(seen[number][1] for number in varying)
        terms = tuple(_over(term, units, there, triple.Z) for term in triple.terms)
        return cls(triple, varying, units, there, terms)

    @property
    def weights(self) -> np.ndarray:
        """Of the support points."""
        return self.triple.weights

    @property
    def average(self) -> float:
        """The mean of the function over all margins."""
        products = sum(float(term.variance * (self.weights @ term.level)) for term in self.terms)
        planes = sum(
            float(margin.weights @ margin.nodes @ self.triple.slopes[list(own)])
            for own, margin in zip(self.columns, self.margins, strict=True)
        )
        return self.triple.level + products + planes

    def from_average(self, unit: int, X: np.ndarray) -> np.ndarray:
        """Rows less the average of the unit's margin, in its columns, (n, k)."""
        margin = self.margins[unit]
        return X - margin.weights @ margin.nodes

    def line(self, unit: int) -> np.ndarray:
        """What linear terms add to the unit's own part at the nodes of its margin, times the roots of their weights."""
        margin = self.margins[unit]
        values = self.from_average(unit, margin.nodes) @ self.triple.slopes[list(self.columns[unit])]
        return values * np.sqrt(margin.weights)


def _seen(placed: PlacedPosterior, unit: tuple[int, ...], margin: Margin) -> tuple[tuple[int, ...], Margin]:
    """Which columns of the posterior a unit has, and its margin as the posterior sees it."""
    own, nodes = placed.inputs_of(unit, margin.nodes)
    return own, Margin(nodes, margin.weights)


def _over(
    term: ProductTerm, units: tuple[tuple[int, ...], ...], margins: tuple[Margin, ...], Z: np.ndarray
) -> ProductTermOfUnits:
    factors = tuple(_averaged(term, unit, margin, Z) for unit, margin in zip(units, margins, strict=True))
    return ProductTermOfUnits(term, units, tuple(margin.nodes for margin in margins), factors)


def _averaged(term: ProductTerm, unit: tuple[int, ...], margin: Margin, Z: np.ndarray) -> AveragedFactor:
    own = margin.weights @ term.excess(unit, margin.nodes, margin.nodes) @ margin.weights
    return AveragedFactor(term.excess(unit, Z[:, list(unit)], margin.nodes), margin.weights, float(own))
