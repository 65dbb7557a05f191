r"""This module computes the latent posterior of a Gaussian process, in one form for every method of inference.

A posterior is a triple: support points Z, weights w and a matrix M with

.. math::
    \mathrm{mean}(x) = k(x, Z) \, w, \qquad \mathrm{var}(x) = k(x, x) - k(x, Z) \, M \, k(Z, x) .

Exact inference, expectation propagation, Laplace's method and sparse approximations each return such a `Posterior`.
Means, variances, gradients, Hessians and sections follow from it (`LatentAt`). M is stored as triangular factors
(`Factor`): with a signal variance of 1e4 an explicit inverse makes the variance 1 % wrong.

At the support points themselves, when M^-1 = K + diag(D) (exact inference and EP), M K = I - M D gives

.. math::
    \mathrm{var}_i = D_i - D_i^2 M_{ii}, \qquad
    \partial \mathrm{var}_i / \partial x_j = 2 D_i \sum_k M_{ik} \, \partial k(x_i, z_k) / \partial x_j ,

which costs O(p n^2) for all points and features and avoids the cancellation in k(x, x) - k M k (`LatentAtSupport`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gpsift._utils.arrays import Array, eye_like, like, namespace, take_rows
from gpsift._utils.linalg import (
    add_diagonal,
    cholesky_solve,
    inverse_from_cholesky,
    jittered_cholesky,
    row_products,
    solve_lower,
)
from gpsift._utils.rows import DOUBLE, chunk_bytes_for, map_chunks, row_chunks
from gpsift.kernels import Kernel, Pairs
from gpsift.reference.function_draws import KernelSums

# The identities at the training points divide by site precisions; below this share of the prior's they are inaccurate.
LEAST_PRECISION = 1e-4

# Hessians of the variance need one matrix for each feature; blocks of rows limit them to this many doubles.
HESSIAN_BLOCK = 2**25

# Noise with which drawn values at the support points are fitted, as a share of the prior variance.
VALUE_NOISE = 1e-6


class PickledByFields:
    """A dataclass that is pickled without its cached matrices, which are recomputed when needed."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, eq=False)
class Posterior(PickledByFields):
    """The triple (Z, weights, M) of a latent posterior, with M the sum of its `factors`."""

    kernel: Kernel
    Z: Array  # support points, (m, p)
    weights: Array  # (m,)
    factors: tuple[Factor, ...]
    site_var: Array = None  # D (m,) where M^-1 = K + diag(D) and Z are the training inputs, or None

    def at(self, X: Array) -> LatentAt:
        """Return the posterior at the rows of X; many rows are evaluated in parts."""
        parts = self.parts(X.shape[0])
        return LatentAt(self, X, parts if len(parts) > 1 else ())

    def parts(self, n: int) -> list[slice]:
        """Divide n points into parts that are evaluated one after another, so that memory does not grow with n."""
        m = self.Z.shape[0]
        # A part has at least m rows: the posterior holds matrices of that size in any case.
        return row_chunks(n, m, max(chunk_bytes_for(self.Z), DOUBLE * m * m))

    def at_support(self, rows: Array | None = None) -> LatentAt:
        """Return the posterior at its support points, or at some of them, by the identities of this module."""
        if self.site_var is None:
            return self.at(self.Z if rows is None else take_rows(self.Z, rows))
        return LatentAtSupport(self, rows)

    def draw_corrections(self, prior_values: Array, rng: np.random.Generator) -> KernelSums:
        """Return k(x, Z) v for F functions drawn from the prior, of which the values (m, F) at Z are given.

        See `gpsift.reference.function_draws`. Where observations have normal noise of variance D, eta is M e with e
        from N(0, D). Where M = S B^-1 S with B = I + S K S, it is S B^-1 z with standard normal z. Otherwise values at
        Z are drawn from the posterior, and fitted with a little noise.
        """
        first, *others = self.factors
        normal = like(self.Z, rng.normal(size=prior_values.shape))
        if not others and self.site_var is not None:
            noise = namespace(normal).sqrt(self.site_var)[:, None] * normal
            v = self.weights[:, None] - first.apply_transposed(first.root(prior_values + noise))
        elif not others and isinstance(first, TriangularFactor) and first.scale is not None:
            eta = first.scale[:, None] * cholesky_solve(first.L, normal)
            v = self.weights[:, None] - first.apply_transposed(first.root(prior_values)) - eta
        else:
            v = self.weights[:, None] + self._weights_of_values(normal, prior_values, rng)
        return KernelSums(self.kernel, self.Z, v, self.support_pairs)

    def _weights_of_values(self, normal: Array, prior_values: Array, rng: np.random.Generator) -> Array:
        """Return weights that turn draws from the prior into deviations from the posterior mean, at the points Z."""
        xp = namespace(normal)
        variances, directions = xp.linalg.eigh(self.covariance(self.Z))
        values = directions @ (xp.sqrt(xp.clip(variances, 0.0, None))[:, None] * normal)
        noise_var = VALUE_NOISE * xp.mean(self.kernel.diag(self.Z))
        noise = xp.sqrt(noise_var) * like(self.Z, rng.normal(size=prior_values.shape))
        L, _ = jittered_cholesky(add_diagonal(self.support_pairs.K, noise_var + xp.zeros_like(self.weights)))
        return cholesky_solve(L, values - prior_values - noise)

    def covariance(self, X: Array) -> Array:
        """Return the latent covariance between the rows of X, (n, n)."""
        K = self.kernel.between(X, self.Z).K
        roots = [(factor.sign, factor.root(K.T)) for factor in self.factors]
        return self.kernel.between(X, X).K - sum(sign * (root.T @ root) for sign, root in roots)

    @property
    def L(self) -> Array:
        """Cholesky factor of K + diag(D), where this is the only factor of M."""
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


class by_parts(cached_property[Array]):  # noqa: N801  # a decorator, as cached_property is
    """A cached attribute of `LatentAt` that is computed for one part of the points after another.

    The matrices of a part are freed after its results. Attributes that need the same matrices, named in `together`, are
    therefore computed together.
    """

    def __init__(self, *together: str):
        self.together = together

    def __call__(self, function: Callable[[Any], Array]) -> by_parts:
        super().__init__(function)
        return self

    def __get__(self, latent: Any, owner: Any = None) -> Any:
        if latent is None or not latent.parts:
            return super().__get__(latent, owner)
        assert self.attrname is not None
        names = (self.attrname, *self.together)
        values = latent.map_parts(lambda part: [getattr(part, name) for name in names])
        latent.__dict__.update(zip(names, values, strict=True))
        return latent.__dict__[self.attrname]


class LatentAt:
    """Posterior mean, variance and their derivatives at the rows of X (n, p), each computed when first accessed.

    The rows are evaluated in `parts`, or all at once without them.
    """

    def __init__(self, posterior: Posterior, X: Array, parts: Sequence[slice] = ()):
        self.posterior, self.X, self.parts, self.xp = posterior, X, parts, namespace(X)

    def map_parts(self, function: Callable[[LatentAt], Iterable[Array]]) -> list[Array]:
        """Call `function` with the posterior at each part of the points, and concatenate its arrays."""
        found = map_chunks(lambda part: function(LatentAt(self.posterior, self.X[part, :])), self.parts, self.X)
        return [self.xp.concat(pieces) for pieces in zip(*found, strict=True)]

    @cached_property
    def pairs(self) -> Pairs:
        """The kernel between the points and the support points."""
        return self.posterior.kernel.between(self.X, self.posterior.Z)

    @by_parts()
    def mean(self) -> Array:
        """k(x, Z) w, (n,)."""
        return self.pairs.K @ self.posterior.weights

    @by_parts("mean")
    def var(self) -> Array:
        """k(x, x) - k(x, Z) M k(Z, x), (n,)."""
        roots = zip(self.posterior.factors, self._roots, strict=True)
        explained = sum(factor.sign * row_products(root.T, root.T) for factor, root in roots)
        return self.xp.clip(self.posterior.kernel.diag(self.X) - explained, 0.0, None)

    @by_parts("mean", "var", "var_gradient")
    def mean_gradient(self) -> Array:
        """d mean / dx_j, (n, p)."""
        return self.pairs.input_gradient(self.posterior.weights)

    @by_parts("mean", "var", "mean_gradient")
    def var_gradient(self) -> Array:
        """d var / dx_j, (n, p)."""
        return self.posterior.kernel.diag_gradient(self.X) - 2.0 * self.pairs.input_gradient(self._solved)

    @by_parts()
    def mean_hessian(self) -> Array:
        """d2 mean / dx_j dx_m, (n, p, p)."""
        return self.pairs.input_hessian(self.posterior.weights)

    @by_parts()
    def var_hessian(self) -> Array:
        """d2 var / dx_j dx_m = d2 k(x, x) - 2 (dk_j^T M dk_m + k^T M d2k_jm), (n, p, p)."""
        n, p = self.X.shape
        n_rows = max(1, HESSIAN_BLOCK // (self.posterior.Z.shape[0] * p))
        blocks = []  # dk_j^T M dk_m of a block of rows, (n_rows, p, p)
        for rows in (slice(start, min(start + n_rows, n)) for start in range(0, n, n_rows)):
            jacobians = [self.pairs.input_jacobian(j)[rows, :].T for j in range(p)]
            total = 0.0
            for factor in self.posterior.factors:
                roots = self.xp.stack([factor.root(jacobian) for jacobian in jacobians])
                roots = self.xp.permute_dims(roots, (2, 0, 1))  # (point, feature, support)
                total = total + factor.sign * (roots @ self.xp.matrix_transpose(roots))
            blocks.append(total)
        second = self.pairs.input_hessian(self._solved) + self.xp.concat(blocks)
        return self.posterior.kernel.diag_hessian(self.X) - 2.0 * second

    def step(self, j: int, delta: float) -> tuple[Array, Array]:
        """Return the changes of mean and variance when feature j moves by delta, (n,) each.

        They are not differences of two predictions: for a step of 1e-7 these are up to 87 % wrong.
        """
        if self.parts:
            mean_change, var_change = self.map_parts(lambda part: part.step(j, delta))
            return mean_change, var_change
        dk = self.pairs.step(j, delta)
        second = sum(factor.sign * self.xp.sum(factor.root(dk.T) ** 2, axis=0) for factor in self.posterior.factors)
        var_change = self.posterior.kernel.diag_step(self.X, j, delta) - 2.0 * self._explained_change(dk) - second
        return dk @ self.posterior.weights, var_change

    def section(self, j: int, base: Array, offset: Array) -> Array:
        """Return the mean with feature j of row i set to base_i + offset_q, (n, q)."""
        if self.parts:
            at_parts = ((LatentAt(self.posterior, self.X[part, :]), base[part]) for part in self.parts)
            return self.xp.concat([latent.section(j, its_base, offset) for latent, its_base in at_parts])
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
        """Return k(x_i, Z) M dk_i, (n,)."""
        return self.xp.sum(self._solved * dk, axis=1)


class LatentAtSupport(LatentAt):
    """The posterior at its support points, or at some of them, by the identities of M^-1 = K + diag(D)."""

    def __init__(self, posterior: Posterior, rows: Array | None):
        self.rows = rows
        super().__init__(posterior, self._at_rows(posterior.Z))
        self.D: Array = self._at_rows(posterior.site_var)

    @cached_property
    def pairs(self) -> Pairs:
        return self.posterior.support_pairs if self.rows is None else super().pairs

    @cached_property
    def M(self) -> Array:
        """The rows of the posterior's M at these points."""
        return self._at_rows(self.posterior.M)

    @cached_property
    def var(self) -> Array:
        # Rounding can make it negative where the function is known exactly.
        return self.xp.maximum(self.D - self.D**2 * self._own(self.M), self.xp.finfo(self.D.dtype).eps * self.D)

    @cached_property
    def var_gradient(self) -> Array:
        return 2.0 * self.D[:, None] * self.pairs.input_gradient(self.M)

    @cached_property
    def _solved(self) -> Array:
        """M K = I - M D."""
        return self._identity() - self.D[:, None] * self.M

    def _explained_change(self, dk: Array) -> Array:
        return self._own(dk) - self.D * self.xp.sum(self.M * dk, axis=1)

    def _at_rows(self, A: Array) -> Array:
        return A if self.rows is None else take_rows(A, self.rows)

    def _own(self, A: Array) -> Array:
        """Return A_ik, where row i is support point k, (n,)."""
        if self.rows is None:
            return self.xp.linalg.diagonal(A)
        return self.xp.sum(self._identity() * A, axis=1)

    def _identity(self) -> Array:
        return self._at_rows(eye_like(self.X, self.posterior.Z.shape[0]))


class Factor(ABC):
    """One signed part of the matrix M, sign R^T R."""

    sign: float

    @abstractmethod
    def root(self, B: Array) -> Array:
        """Return R B."""

    @abstractmethod
    def apply_transposed(self, B: Array) -> Array:
        """Return sign R^T B."""

    @abstractmethod
    def matrix(self) -> Array:
        """Return sign R^T R."""


@dataclass(frozen=True, eq=False)
class TriangularFactor(Factor):
    """A factor R = L^-1 diag(scale), L lower triangular."""

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
    """A factor R that is stored as a dense matrix."""

    R: Array
    sign: float = 1.0

    def root(self, B: Array) -> Array:
        return (B.T @ self.R.T).T  # B is the transpose of a contiguous matrix with a row for each point

    def apply_transposed(self, B: Array) -> Array:
        return (self.sign * (B.T @ self.R)).T

    def matrix(self) -> Array:
        return self.sign * (self.R.T @ self.R)


def exact_posterior(kernel: Kernel, X: Array, y: Array, noise_var: Array) -> tuple[Posterior, float]:
    """Return the posterior given Gaussian observations with noise_var (n,), and the jitter that it needed."""
    pairs = kernel.between(X, X)
    L, jitter = jittered_cholesky(add_diagonal(pairs.K, noise_var))
    posterior = Posterior(kernel, X, cholesky_solve(L, y), (TriangularFactor(L),), noise_var + jitter)
    posterior.__dict__["support_pairs"] = pairs  # fills the cache with the same matrix
    return posterior, jitter
