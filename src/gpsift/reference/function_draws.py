r"""Draw functions from a latent posterior, by pathwise conditioning (Wilson et al. 2020).

A function :math:`\varphi` drawn from the prior becomes one from the posterior with support points Z, weights w and
matrix M (`gpsift.reference.posterior`) by a correction,

.. math:: f(x) = \varphi(x) + k(x, Z) \, v, \qquad v = w - M \varphi(Z) - \eta, \qquad \mathrm{Cov}(\eta) = M - M K M .

The mean of f is k(x, Z) w. Its covariance is k - 2 k M k + k M K M k + k (M - M K M) k = k - k M k, as it should be.

Functions of the prior are sums of random cosines, whose frequencies follow the spectral density of the kernel (Rahimi
and Recht 2007), and of random straight lines for linear kernels. For a kernel of unknown spectral density they are
:math:`k(x, S) \, c` with :math:`c \sim N(0, K_{SS}^{-1})`, for many points S at and around the support points.

A `DrawnFunction` has the interface of a posterior, with variance 0: a model that has it in place of its posterior is a
model that knows the function.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from gpsift._utils.arrays import Array, like, namespace, take_rows, to_numpy
from gpsift._utils.linalg import add_diagonal, jittered_cholesky, solve_lower
from gpsift._utils.rows import DOUBLE, chunk_bytes_for, map_chunks, row_chunks
from gpsift.kernels import Kernel, Pairs
from gpsift.kernels.products import ProductTerm

# The number of random cosines.
N_COSINES = 256
# For a kernel of unknown spectral density: the number of points S, at most, and how far those around the support points
# are from these, in standard deviations of each column.
MOST_POINTS = 1000
POINT_DISTANCE = 0.5
# Added to the diagonal of K_SS, as a share of the prior variance. Without it c would be so large that its products with
# the kernel had few digits.
JITTER = 1e-6


def draw_functions(posterior: Any, n: int, rng: np.random.Generator) -> list[DrawnFunction]:
    """Draw functions from a posterior; where it has several classes, one for each class together."""
    n_classes = getattr(posterior, "n_classes", None)
    prior = draw_prior(posterior.kernel, posterior.Z, n * (n_classes or 1), rng)
    whole = FunctionSums((prior, posterior.draw_corrections(prior.values(posterior.Z), rng)))
    columns = range(n) if n_classes is None else [slice(k * n_classes, (k + 1) * n_classes) for k in range(n)]
    return [DrawnFunction(posterior.kernel, posterior.Z, whole, column) for column in columns]


def draw_prior(kernel: Kernel, Z: Array, n: int, rng: np.random.Generator) -> FunctionDraws:
    """Draw functions from the prior of a kernel."""
    terms = kernel.product_terms(Z.shape[1])
    if terms is not None:
        return CosineSums.draw(terms, kernel.slope_vars(Z.shape[1]), Z, n, rng)
    near = to_numpy(Z)
    some = near[rng.permutation(len(near))[: MOST_POINTS // 2]]
    others = np.repeat(some, max(1, MOST_POINTS // len(some) - 1), axis=0)
    others = others + POINT_DISTANCE * near.std(axis=0) * rng.normal(size=others.shape)
    points = like(Z, np.concatenate([some, others])[:MOST_POINTS])
    jitter = JITTER * namespace(points).mean(kernel.diag(points))
    L, _ = jittered_cholesky(add_diagonal(kernel.between(points, points).K, jitter))
    normal = like(Z, rng.normal(size=(points.shape[0], n)))
    return KernelSums(kernel, points, solve_lower(L, normal, transpose=True))


class FunctionDraws(ABC):
    """F functions of the inputs. A method returns the results of all of them, along the last axis."""

    @abstractmethod
    def values(self, X: Array) -> Array:
        """Return the functions at the rows of X, (n, F)."""

    @abstractmethod
    def gradients(self, X: Array) -> Array:
        """Return their derivatives, (n, p, F)."""

    @abstractmethod
    def hessians(self, X: Array) -> Array:
        """Return their second derivatives, (n, p, p, F)."""

    @abstractmethod
    def steps(self, X: Array, j: int, delta: float) -> Array:
        """Return their changes when feature j moves by delta, (n, F)."""

    @abstractmethod
    def sections(self, X: Array, j: int, base: Array, offset: Array) -> Array:
        """Return them with feature j of row i set to base_i + offset_q, (n, q, F)."""

    def combine(self, columns: slice, shares: np.ndarray) -> FunctionDraws:
        """Return the one function sum_c shares_c f_c of some of the functions, those of several classes."""
        raise NotImplementedError(f"{type(self).__name__} is of one latent function")


@dataclass(frozen=True, eq=False)
class CosineSums(FunctionDraws):
    """Functions sum_r weight_r cos(frequency_r . x + phase_r) + slope . x + level; they share the frequencies."""

    frequency: Array  # (p, m)
    phase: Array  # (m,)
    weights: Array  # (m, F)
    slopes: Array  # (p, F)
    level: Array  # (F,)

    @classmethod
    def draw(
        cls, terms: Sequence[ProductTerm], slope_vars: np.ndarray, Z: Array, n: int, rng: np.random.Generator
    ) -> Self:
        """Draw n functions from the prior of a sum of products and of straight lines, in the library of Z."""
        p = Z.shape[1]
        varying = [term for term in terms if np.isfinite(term.lengthscale).any()]
        variances = np.array([term.variance for term in varying])
        m = N_COSINES if varying else 0
        lengthscales = np.array([term.lengthscale for term in varying]).reshape(len(varying), p)
        # Each term has its share of the cosines, up to rounding, and weights that make up for it.
        shares = cosine_shares(variances, lengthscales)
        chosen = np.searchsorted(np.cumsum(shares)[:-1], (np.arange(m) + rng.uniform()) / max(m, 1))
        amplitude = np.sqrt(2.0 * variances[chosen] / (m * shares[chosen]))
        level_var = sum(term.variance for term in terms if not np.isfinite(term.lengthscale).any())
        drawn = (
            rng.normal(size=(p, m)) / lengthscales[chosen].T,
            rng.uniform(0.0, 2.0 * np.pi, m),
            amplitude[:, None] * rng.normal(size=(m, n)),
            np.sqrt(slope_vars)[:, None] * rng.normal(size=(p, n)),
            np.sqrt(level_var) * rng.normal(size=n),
        )
        return cls(*(like(Z, values) for values in drawn))

    def values(self, X: Array) -> Array:
        return self._by_chunks(X, lambda waves: waves.cosine @ self.weights + self._lines(waves.X))

    def gradients(self, X: Array) -> Array:
        xp, (p, m) = namespace(X), self.frequency.shape
        products = xp.reshape(self.frequency.T[:, :, None] * self.weights[:, None, :], (m, -1))  # of all functions

        def of_chunk(waves: Waves) -> Array:
            return self.slopes - xp.reshape(waves.sine @ products, (waves.X.shape[0], p, -1))

        return self._by_chunks(X, of_chunk)

    def hessians(self, X: Array) -> Array:
        xp, (p, m) = namespace(X), self.frequency.shape
        products = xp.reshape(self.frequency[:, None, :] * self.frequency, (p * p, m))

        def of_chunk(waves: Waves) -> Array:
            return self._stack(lambda w: xp.reshape(-(waves.cosine * w) @ products.T, (-1, p, p)))

        return self._by_chunks(X, of_chunk)

    def steps(self, X: Array, j: int, delta: float) -> Array:
        xp = namespace(X)
        half = 0.5 * delta * self.frequency[j, :]

        def of_chunk(waves: Waves) -> Array:
            # cos(a + 2 h) - cos(a) = -2 sin(h) sin(a + h)
            change = -2.0 * xp.sin(half) * (waves.sine * xp.cos(half) + waves.cosine * xp.sin(half))
            return change @ self.weights + delta * self.slopes[j, :]

        return self._by_chunks(X, of_chunk)

    def sections(self, X: Array, j: int, base: Array, offset: Array) -> Array:
        xp = namespace(X)
        turn = self.frequency[j, :][:, None] * offset
        cosine_of_turn, sine_of_turn = xp.cos(turn), xp.sin(turn)
        along = offset[:, None] * self.slopes[j, :]

        def of_chunk(waves: Waves) -> Array:
            # cos(a + t) = cos(a) cos(t) - sin(a) sin(t): products of matrices in place of n q m cosines.
            sums = self._stack(lambda w: (waves.cosine * w) @ cosine_of_turn - (waves.sine * w) @ sine_of_turn)
            return sums + self._lines(waves.X)[:, None, :] + along

        return self._by_chunks(xp.concat([X[:, :j], base[:, None], X[:, j + 1 :]], axis=1), of_chunk)

    def combine(self, columns: slice, shares: np.ndarray) -> CosineSums:
        share = like(self.weights, shares)[:, None]
        weights, slopes, level = self.weights[:, columns] @ share, self.slopes[:, columns] @ share, self.level[columns]
        return replace(self, weights=weights, slopes=slopes, level=level @ share)

    def _lines(self, X: Array) -> Array:
        """Return the straight lines and levels, (n, F)."""
        return X @ self.slopes + self.level

    def _stack(self, function: Callable[[Array], Array]) -> Array:
        """Stack what `function` returns for the weights of each of the functions."""
        each = [function(self.weights[:, f]) for f in range(self.weights.shape[1])]
        return namespace(self.weights).stack(each, axis=-1)

    def _by_chunks(self, X: Array, function: Callable[[Waves], Array]) -> Array:
        """Concatenate the results of a function of the waves at some of the rows."""
        parts = row_chunks(X.shape[0], max(1, self.phase.shape[0]), chunk_bytes_for(X))
        if len(parts) == 1:
            return function(self._recall(X))
        return namespace(X).concat(map_chunks(lambda part: function(self._waves(X[part, :])), parts, X))

    def _waves(self, X: Array) -> Waves:
        # From the tangent of half the angle: NumPy computes it ten times as fast as a cosine or a sine.
        tangent = namespace(X).tan(0.5 * (X @ self.frequency + self.phase))
        square = tangent * tangent
        inverse = 1.0 / (1.0 + square)
        return Waves(X, (1.0 - square) * inverse, 2.0 * tangent * inverse)

    def _recall(self, X: Array) -> Waves:
        """Return the waves at X, from memory where X are the points that were last asked for."""
        if not self._last or self._last[0].X is not X:
            self._last[:] = [self._waves(X)]
        return self._last[0]

    @cached_property
    def _last(self) -> list[Waves]:
        """The waves at the points that were last asked for."""
        return []


def cosine_shares(variances: np.ndarray, lengthscales: np.ndarray) -> np.ndarray:
    """Return the shares (t,) of t terms, of variances (t,) and length-scales (t, p), in the cosines of their sum.

    They are between those in the variance of the function and of its slopes. A Matern kernel has terms of short
    length-scales that have little of the one and much of the other: with the first alone few draws would have them.
    """
    slope_vars = variances[:, None] / lengthscales**2
    of_slopes = (slope_vars / np.maximum(slope_vars.sum(axis=0), np.finfo(float).tiny)).sum(axis=1)
    return 0.5 * (variances / variances.sum() + of_slopes / of_slopes.sum())


class Waves(NamedTuple):
    """Rows X (n, p), and the cosines and sines of their angles, frequency . x + phase, (n, m) each."""

    X: Array
    cosine: Array
    sine: Array


class KernelSums(FunctionDraws):
    """Functions k(x, Z) v, which share the points Z (m, p); v are the columns of `weights` (m, F)."""

    def __init__(self, kernel: Kernel, Z: Array, weights: Array, support_pairs: Pairs | None = None):
        self.kernel, self.Z, self.weights = kernel, Z, weights
        self._pairs = (Z, support_pairs)  # the points at which the kernel was last evaluated, and its values

    def values(self, X: Array) -> Array:
        return self._by_chunks(X, lambda pairs: pairs.K @ self.weights)

    def gradients(self, X: Array) -> Array:
        return self._by_chunks(X, lambda pairs: pairs.input_gradients(self.weights))

    def hessians(self, X: Array) -> Array:
        def stack(pairs: Pairs) -> Array:
            each = [pairs.input_hessian(self.weights[:, f]) for f in range(self.weights.shape[1])]
            return namespace(X).stack(each, axis=-1)

        return self._by_chunks(X, stack)

    def steps(self, X: Array, j: int, delta: float) -> Array:
        return self._by_chunks(X, lambda pairs: pairs.step(j, delta) @ self.weights)

    def sections(self, X: Array, j: int, base: Array, offset: Array) -> Array:
        parts = self._parts(X)
        each = [self._at(X, part, parts).sections(self.weights, j, base[part], offset) for part in parts]
        return namespace(X).concat(each)

    def combine(self, columns: slice, shares: np.ndarray) -> KernelSums:
        weights = self.weights[:, columns] @ like(self.weights, shares)[:, None]
        return KernelSums(self.kernel, self.Z, weights, self._pairs[1])

    def _by_chunks(self, X: Array, function: Callable[[Pairs], Array]) -> Array:
        parts = self._parts(X)
        return namespace(X).concat([function(self._at(X, part, parts)) for part in parts])

    def _parts(self, X: Array) -> list[slice]:
        m = self.Z.shape[0]
        # As in `Posterior.parts`: a part has at least m rows, because the support holds matrices of that size anyway.
        return row_chunks(X.shape[0], m, max(chunk_bytes_for(self.Z), DOUBLE * m * m))

    def _at(self, X: Array, part: slice, parts: Sequence[slice]) -> Pairs:
        """Return the kernel between a part of the points and Z; it is kept where there is one part."""
        if len(parts) > 1:
            return self.kernel.between(X[part, :], self.Z)
        if self._pairs[0] is not X or self._pairs[1] is None:
            self._pairs = (X, self.kernel.between(X, self.Z))
        return self._pairs[1]  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class FunctionSums(FunctionDraws):
    """Sums of functions. Each result is kept, because the functions are asked for it one after another."""

    parts: tuple[FunctionDraws, ...]

    def values(self, X: Array) -> Array:
        return self._recall("values", X)

    def gradients(self, X: Array) -> Array:
        return self._recall("gradients", X)

    def hessians(self, X: Array) -> Array:
        return self._recall("hessians", X)

    def steps(self, X: Array, j: int, delta: float) -> Array:
        return self._recall("steps", X, j, delta)

    def sections(self, X: Array, j: int, base: Array, offset: Array) -> Array:
        return self._recall("sections", X, j, base, offset)

    def combine(self, columns: slice, shares: np.ndarray) -> FunctionSums:
        return FunctionSums(tuple(part.combine(columns, shares) for part in self.parts))

    @cached_property
    def _last(self) -> dict[tuple[str, int], tuple[tuple[Any, ...], Array]]:
        """The last arguments and result of each method, and of each feature."""
        return {}

    def _recall(self, method: str, X: Array, j: int = 0, *others: Any) -> Array:
        """Return the result of a method, from memory where its last arguments were equal."""
        known = self._last.get((method, j))
        if known is None or known[0][0] is not X or not all(map(np.array_equal, known[0][1:], others)):
            arguments = (X,) if method in ("values", "gradients", "hessians") else (X, j, *others)
            first, *rest = (getattr(part, method)(*arguments) for part in self.parts)
            known = self._last[method, j] = ((X, *others), sum(rest, start=first))
        return known[1]


@dataclass(frozen=True, eq=False)
class DrawnFunction:
    """A function drawn from a posterior, or one for each of several classes, as a posterior whose variance is 0."""

    kernel: Kernel
    Z: Array  # support points of the posterior
    draws: FunctionDraws
    column: int | slice  # of all functions that were drawn together

    @property
    def n_classes(self) -> int:
        """The number of functions, where there are several."""
        assert isinstance(self.column, slice)
        return self.column.stop - self.column.start

    def at(self, X: Array) -> DrawnFunctionAt:
        """Return the function at the rows of X."""
        return DrawnFunctionAt(self, X)

    def at_support(self, rows: np.ndarray | None = None) -> DrawnFunctionAt:
        """Return the function at the support points, or at some of them."""
        return self.at(self.Z if rows is None else take_rows(self.Z, rows))

    def parts(self, n: int) -> list[slice]:
        """Divide n points into parts that are evaluated one after another."""
        return row_chunks(n, max(N_COSINES, self.Z.shape[0]), chunk_bytes_for(self.Z))

    def combination(self, shares: np.ndarray) -> DrawnFunction:
        """Return the sum over the classes of shares_c f_c."""
        assert isinstance(self.column, slice)
        return DrawnFunction(self.kernel, self.Z, self.draws.combine(self.column, shares), 0)


class DrawnFunctionAt:
    """A drawn function at n points, with the interface of a posterior at these points.

    For C classes means are (n, C), their gradients (n, C, p), and covariances (n, C, C).
    """

    parts = ()

    def __init__(self, posterior: DrawnFunction, X: Array):
        self.posterior, self.X, self.xp = posterior, X, namespace(X)

    @cached_property
    def mean(self) -> Array:
        return self._own(self.posterior.draws.values(self.X))

    @cached_property
    def mean_gradient(self) -> Array:
        gradient = self._own(self.posterior.draws.gradients(self.X))
        return gradient if gradient.ndim == 2 else self.xp.permute_dims(gradient, (0, 2, 1))

    @cached_property
    def mean_hessian(self) -> Array:
        return self._own(self.posterior.draws.hessians(self.X))

    @property
    def var(self) -> Array:
        return self.xp.zeros_like(self.X[:, 0])

    @property
    def var_gradient(self) -> Array:
        return self.xp.zeros_like(self.X)

    @property
    def var_hessian(self) -> Array:
        return self.xp.zeros_like(self.mean_hessian)

    @property
    def cov(self) -> np.ndarray:
        """The covariance between the classes."""
        return np.zeros((len(self.X), self.posterior.n_classes, self.posterior.n_classes))

    @property
    def cov_gradient(self) -> np.ndarray:
        return np.zeros((*self.cov.shape, self.X.shape[1]))

    def step(self, j: int, delta: float) -> tuple[Array, Array]:
        """Return the changes of the function, and of its variance, when feature j moves by delta."""
        change = self._own(self.posterior.draws.steps(self.X, j, delta))
        return change, self.var if change.ndim == 1 else self.cov

    def section(self, j: int, base: Array, offset: Array) -> Array:
        """Return the function with feature j of row i set to base_i + offset_q, (n, q) or (n, q, C)."""
        return self._own(self.posterior.draws.sections(self.X, j, base, offset))

    def _own(self, values: Array) -> Array:
        return values[..., self.posterior.column]
