r"""The latent posterior of a Gaussian process, one form for every inference.

A posterior is a triple: support points Z, weights w and a matrix M with

.. math::
    \mathrm{mean}(x) = k(x, Z) \, w, \qquad \mathrm{var}(x) = k(x, x) - k(x, Z) \, M \, k(Z, x) .

Exact inference, expectation propagation, Laplace's method and sparse approximations differ only in how they fill it in,
so means, variances, gradients, Hessians and sections are written here once. M is kept as triangular factors: with a
signal variance of 1e4 an explicit inverse makes the variance 1 % wrong.

At the support points themselves, when M^-1 = K + diag(D) (exact inference and EP), M K = I - M D gives

.. math::
    \mathrm{var}_i = D_i - D_i^2 M_{ii}, \qquad
    \partial \mathrm{var}_i / \partial x_j = 2 D_i \sum_k M_{ik} \, \partial k(x_i, z_k) / \partial x_j ,

which costs O(p n^2) for all points and features and keeps the digits that k(x, x) - k M k loses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gpsift._utils.arrays import Array, eye_like, namespace, take_rows
from gpsift._utils.linalg import (
    add_diagonal,
    cholesky_solve,
    inverse_from_cholesky,
    jittered_cholesky,
    row_products,
    solve_lower,
)
from gpsift._utils.rows import DOUBLE, chunk_bytes_for, row_chunks
from gpsift._utils.threads import threaded_map
from gpsift.kernels import Kernel, Pairs

# The identities at the training points divide by site precisions; below this share of the prior's they lose digits.
LEAST_PRECISION = 1e-4

# Hessians of the variance hold one n x rows matrix for each feature; rows are taken so that this many doubles suffice.
HESSIAN_BLOCK = 2**25


class Factor(ABC):
    """sign R^T R: one signed part of the matrix M."""

    sign: float

    @abstractmethod
    def root(self, B: Array) -> Array:
        """R B."""

    @abstractmethod
    def apply_transposed(self, B: Array) -> Array:
        """sign R^T B."""

    @abstractmethod
    def matrix(self) -> Array:
        """sign R^T R."""


@dataclass(frozen=True, eq=False)
class TriangularFactor(Factor):
    """R = L^-1 diag(scale), L lower triangular."""

    L: Array
    scale: Array = None
    sign: float = 1.0

    def root(self, B: Array) -> Array:
        return solve_lower(self.L, B if self.scale is None else self.scale[:, None] * B)

    def apply_transposed(self, B: Array) -> Array:
        product = solve_lower(self.L, B, transpose=True)
        return self.sign * (product if self.scale is None else self.scale[:, None] * product)

    def matrix(self) -> Array:
        inverse = inverse_from_cholesky(self.L)
        return self.sign * (inverse if self.scale is None else self.scale[:, None] * inverse * self.scale)


@dataclass(frozen=True, eq=False)
class DenseFactor(Factor):
    """R given as a matrix."""

    R: Array
    sign: float = 1.0

    def root(self, B: Array) -> Array:
        return (B.T @ self.R.T).T  # B comes as the transpose of a matrix with a row for each point, and so it goes

    def apply_transposed(self, B: Array) -> Array:
        return (self.sign * (B.T @ self.R)).T

    def matrix(self) -> Array:
        return self.sign * (self.R.T @ self.R)


class PickledByFields:
    """A dataclass that travels to another process without its cached matrices, which are made again when needed."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class Posterior(PickledByFields):
    """The triple (Z, weights, M) of a latent posterior, with M the sum of its `factors`.

    Parameters
    ----------
    kernel : Kernel
    Z : array (m, p)
        Support points.
    weights : array (m,)
    factors : tuple of Factor
    site_var : array (m,) or None
        D where M^-1 = K + diag(D) and Z are the training inputs; None where there is no such form.
    """

    kernel: Kernel
    Z: Array
    weights: Array
    factors: tuple[Factor, ...]
    site_var: Array = None

    def at(self, X: Array) -> LatentAt:
        """The posterior at the rows of X, anywhere; of many rows, part by part."""
        parts = self.parts(X.shape[0])
        return LatentInParts(self, X, parts) if len(parts) > 1 else LatentAt(self, X, self.kernel.between(X, self.Z))

    def parts(self, n: int) -> list[slice]:
        """Parts of n points at which it is evaluated one after another, so that memory does not grow with n."""
        m = self.Z.shape[0]
        # Never fewer rows than support points: matrices of that size the posterior holds anyway.
        return row_chunks(n, m, max(chunk_bytes_for(self.Z), DOUBLE * m * m))

    def at_support(self, rows: Array | None = None) -> LatentAt:
        """The posterior at its own support points, or at those with the given indices, by the identities above."""
        if self.site_var is None:
            return self.at(self.Z if rows is None else take_rows(self.Z, rows))
        latent = LatentAtSupport(self, rows)
        for name, values in self.known_at_support.items():
            latent.__dict__[name] = values if rows is None else take_rows(values, rows)
        return latent

    @cached_property
    def known_at_support(self) -> dict[str, Array]:
        """Attributes of `LatentAtSupport` that whoever made the posterior has computed, of all support points."""
        return {}

    def covariance(self, X: Array) -> Array:
        """Latent covariance between the rows of X, (n, n)."""
        K = self.kernel.between(X, self.Z).K
        roots = [(factor.sign, factor.root(K.T)) for factor in self.factors]
        return self.kernel.between(X, X).K - sum(sign * (root.T @ root) for sign, root in roots)

    @property
    def L(self) -> Array:
        """Cholesky factor of K + diag(D), where M has that one factor."""
        (factor,) = self.factors
        assert isinstance(factor, TriangularFactor)
        return factor.L

    @cached_property
    def support_pairs(self) -> Pairs:
        """The kernel between the support points."""
        return self.kernel.between(self.Z, self.Z)

    @cached_property
    def M(self) -> Array:
        """(K + diag(D))^-1 as a matrix, for the identities at the support points."""
        return self.factors[0].matrix()


class LatentAt:
    """Mean, variance and their derivatives at the rows of X; everything is computed when first asked for."""

    def __init__(self, posterior: Posterior, X: Array, pairs: Pairs):
        self.posterior, self.X, self.pairs, self.xp = posterior, X, pairs, namespace(X)

    @cached_property
    def mean(self) -> Array:
        """(n,)"""
        return self.pairs.K @ self.posterior.weights

    @cached_property
    def var(self) -> Array:
        """(n,)"""
        roots = zip(self.posterior.factors, self._roots, strict=True)
        explained = sum(factor.sign * row_products(root.T, root.T) for factor, root in roots)
        return self.xp.clip(self.posterior.kernel.diag(self.X) - explained, 0.0, None)

    @cached_property
    def mean_gradient(self) -> Array:
        """d mean / dx_j, (n, p)."""
        return self.pairs.input_gradient(self.posterior.weights)

    @cached_property
    def var_gradient(self) -> Array:
        """d var / dx_j, (n, p)."""
        return self.posterior.kernel.diag_gradient(self.X) - 2.0 * self.pairs.input_gradient(self._solved)

    @cached_property
    def mean_hessian(self) -> Array:
        """d2 mean / dx_j dx_m, (n, p, p)."""
        return self.pairs.input_hessian(self.posterior.weights)

    @cached_property
    def var_hessian(self) -> Array:
        """d2 var / dx_j dx_m = d2 k(x, x) - 2 (dk_j^T M dk_m + k^T M d2k_jm), (n, p, p)."""
        n, p = self.X.shape
        rows = max(1, HESSIAN_BLOCK // (self.posterior.Z.shape[0] * p))
        blocks = [self._root_products(start, min(start + rows, n)) for start in range(0, n, rows)]
        second = self.pairs.input_hessian(self._solved) + self.xp.concat(blocks)
        return self.posterior.kernel.diag_hessian(self.X) - 2.0 * second

    def step(self, j: int, delta: float) -> tuple[Array, Array]:
        """Changes of mean and variance when feature j moves by delta, (n,) each.

        Never the difference of two predictions: for a step of 1e-7 that is up to 87 % wrong.
        """
        dk = self.pairs.step(j, delta)
        second = sum(factor.sign * self.xp.sum(factor.root(dk.T) ** 2, axis=0) for factor in self.posterior.factors)
        var_change = self.posterior.kernel.diag_step(self.X, j, delta) - 2.0 * self._explained_change(dk) - second
        return dk @ self.posterior.weights, var_change

    def section(self, j: int, base: Array, offset: Array) -> Array:
        """Mean with feature j of row i set to base_i + offset_q, (n, q)."""
        return self.pairs.section(self.posterior.weights, j, base, offset)

    @cached_property
    def _roots(self) -> list[Array]:
        """R k(Z, x) of each factor."""
        return [factor.root(self.pairs.K.T) for factor in self.posterior.factors]

    @cached_property
    def _solved(self) -> Array:
        """M k(Z, x_i) as rows, (n, m)."""
        roots = zip(self.posterior.factors, self._roots, strict=True)
        return sum(factor.apply_transposed(root) for factor, root in roots).T

    def _explained_change(self, dk: Array) -> Array:
        """k(x_i, Z) M dk_i."""
        return self.xp.sum(self._solved * dk, axis=1)

    def _root_products(self, start: int, stop: int) -> Array:
        """dk_j^T M dk_m of a block of rows, (stop - start, p, p)."""
        jacobians = [self.pairs.input_jacobian(j)[start:stop, :].T for j in range(self.X.shape[1])]
        total = 0.0
        for factor in self.posterior.factors:
            roots = self.xp.stack([factor.root(jacobian) for jacobian in jacobians])
            roots = self.xp.permute_dims(roots, (2, 0, 1))  # (point, feature, support)
            total = total + factor.sign * (roots @ self.xp.matrix_transpose(roots))
        return total


class LatentInParts(LatentAt):
    """The same at many points: only results are kept, matrices of a part's rows go when they have served."""

    def __init__(self, posterior: Posterior, X: Array, parts: list[slice]):
        self.posterior, self.X, self.parts, self.xp = posterior, X, parts, namespace(X)

    @cached_property
    def mean(self) -> Array:
        return self._joined("mean")["mean"]

    @cached_property
    def var(self) -> Array:
        return self._moments["var"]

    @cached_property
    def mean_gradient(self) -> Array:
        return self._moments_and_gradients["mean_gradient"]

    @cached_property
    def var_gradient(self) -> Array:
        return self._moments_and_gradients["var_gradient"]

    @cached_property
    def mean_hessian(self) -> Array:
        return self._joined("mean_hessian")["mean_hessian"]

    @cached_property
    def var_hessian(self) -> Array:
        return self._joined("var_hessian")["var_hessian"]

    def step(self, j: int, delta: float) -> tuple[Array, Array]:
        mean_change, var_change = self._joined_of(lambda latent: latent.step(j, delta))
        return mean_change, var_change

    def section(self, j: int, base: Array, offset: Array) -> Array:
        return self.xp.concat([self._part(part).section(j, base[part], offset) for part in self.parts])

    @cached_property
    def _moments(self) -> dict[str, Array]:
        known = self.__dict__.get("_moments_and_gradients")
        return self._joined("mean", "var") if known is None else known

    @cached_property
    def _moments_and_gradients(self) -> dict[str, Array]:
        # Who asks for slopes asks for moments too, and all come from the same matrices.
        found = self._joined("mean", "var", "mean_gradient", "var_gradient")
        self.__dict__["mean"] = found["mean"]
        return found

    def _joined(self, *names: str) -> dict[str, Array]:
        """These attributes for all points."""
        return dict(zip(names, self._joined_of(lambda latent: [getattr(latent, name) for name in names]), strict=True))

    def _joined_of(self, of: Callable[[LatentAt], Iterable[Array]]) -> list[Array]:
        """What `of` finds in each part, for all points."""

        def of_part(part: slice) -> Iterable[Array]:
            return of(self._part(part))

        is_numpy = isinstance(self.X, np.ndarray)
        found = threaded_map(of_part, self.parts) if is_numpy else [of_part(part) for part in self.parts]
        return [self.xp.concat(pieces) for pieces in zip(*found, strict=True)]

    def _part(self, part: slice) -> LatentAt:
        X = self.X[part, :]
        return LatentAt(self.posterior, X, self.posterior.kernel.between(X, self.posterior.Z))


class LatentAtSupport(LatentAt):
    """The same at the support points of a posterior with M^-1 = K + diag(D), where M K = I - M D."""

    def __init__(self, posterior: Posterior, rows: Array | None):
        self.posterior, self.rows, self.xp = posterior, rows, namespace(posterior.Z)
        self.X: Array = self._at_rows(posterior.Z)
        self.D: Array = self._at_rows(posterior.site_var)

    @cached_property
    def pairs(self) -> Pairs:  # type: ignore[override]  # made when it is asked for
        if self.rows is None:
            return self.posterior.support_pairs
        return self.posterior.kernel.between(self.X, self.posterior.Z)

    @cached_property
    def M(self) -> Array:
        """Rows of the posterior's own."""
        return self._at_rows(self.posterior.M)

    @cached_property
    def var(self) -> Array:
        # Rounding can take it below zero where the data leave nothing unknown.
        return self.xp.maximum(self.D - self.D**2 * self._own(self.M), self.xp.finfo(self.D.dtype).eps * self.D)

    @cached_property
    def var_gradient(self) -> Array:
        return 2.0 * self.D[:, None] * self.pairs.input_gradient(self.M)

    @cached_property
    def _solved(self) -> Array:
        return self._identity() - self.D[:, None] * self.M

    def _explained_change(self, dk: Array) -> Array:
        return self._own(dk) - self.D * self.xp.sum(self.M * dk, axis=1)

    def _at_rows(self, A: Array) -> Array:
        return A if self.rows is None else take_rows(A, self.rows)

    def _own(self, A: Array) -> Array:
        """A_ik where k is the support point that row i is."""
        if self.rows is None:
            return self.xp.linalg.diagonal(A)
        return self.xp.sum(self._identity() * A, axis=1)

    def _identity(self) -> Array:
        return self._at_rows(eye_like(self.X, self.posterior.Z.shape[0]))


def exact_posterior(kernel: Kernel, X: Array, y: Array, noise_var: Array) -> tuple[Posterior, float]:
    """Return the posterior given Gaussian observations, and the jitter that it needed.

    `noise_var` has one entry for each point.
    """
    pairs = kernel.between(X, X)
    L, jitter = jittered_cholesky(add_diagonal(pairs.K, noise_var))
    posterior = Posterior(kernel, X, cholesky_solve(L, y), (TriangularFactor(L),), noise_var + jitter)
    posterior.__dict__["support_pairs"] = pairs  # fills the cache: the same matrix need not be made again
    return posterior, jitter
