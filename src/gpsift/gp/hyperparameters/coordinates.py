r"""Coordinates for searching and sampling hyperparameters.

**Search.** With :math:`H = L L^T` the second derivatives of the objective, parameters :math:`x = x_0 + c L^{-T} u` have
coordinates u with the same curvature in all directions. L-BFGS begins with a step of length 1; with c the length of the
gradient by :math:`L^{-T} u`, that is the step of Newton's method.

**Sampling.** The logarithms of hyperparameters have long tails: that of a length-scale whose feature does nothing
follows its prior to infinity, and that of a variance that is not needed follows it to zero. In a coordinate z whose
prior is standard normal both tails are short. With s(z) the logarithm of a parameter, the density of z is

.. math:: \log p(z) = \log p(s(z)) + \sum_i \log s_i'(z_i) ,

for any increasing s: the quantile function of the prior, from a table, is a choice and no approximation. The posterior
is far from isotropic in z, as data determine some parameters better than others. With the curvature
:math:`H = V \mathrm{diag}(h) V^T` at its mode it is nearly isotropic in w,
:math:`z = z_0 + V \mathrm{diag}(h)^{-1/2} w`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtri

Density = Callable[[np.ndarray], tuple[float, np.ndarray]]  # a point -> log density and its gradient
Drawn = Callable[[np.ndarray], np.ndarray]  # a draw of coordinates -> log parameters
LogPrior = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]

# Logarithms between which a prior is looked for, and where it is left out: this many nats below its maximum.
FARTHEST = 300
DEPTH = 16.0
# Points at which the density of a prior is known, and quantiles at which its coordinate is.
N_POINTS = 600
KNOTS = np.linspace(-4.0, 4.0, 33)
# Steps of differences, in logarithms, and at most in z.
STEP = 0.1
LARGEST_STEP = 0.3
# A curvature below this counts as this: the prior alone has 1.
LEAST_PRIOR_CURVATURE = 0.3
MOST_ITERATIONS = 40


def quantiles(log_density: Callable[[float], float]) -> np.ndarray:
    """The logarithms at the standard normal `KNOTS`, of a log density of the logarithm."""
    coarse = np.arange(-FARTHEST, FARTHEST + 1.0)
    heights = np.array([log_density(s) for s in coarse])
    within = np.flatnonzero(heights > np.nanmax(heights) - DEPTH)
    fine = np.linspace(coarse[within[0]] - 1.0, coarse[within[-1]] + 1.0, N_POINTS)
    heights = np.array([log_density(s) for s in fine])
    mass = np.exp(heights - np.nanmax(heights))
    between = 0.5 * (mass[1:] + mass[:-1])
    below = (np.cumsum(between) - 0.5 * between) / between.sum()
    middle = 0.5 * (fine[1:] + fine[:-1])
    return np.interp(KNOTS, ndtri(below), middle)


@dataclass(frozen=True, eq=False)
class ByPrior:
    """Log parameters as increasing functions s(z) of coordinates with a standard normal prior, from their quantiles."""

    at_knots: np.ndarray  # (knot, parameter)

    @classmethod
    def of(cls, log_prior: LogPrior, kinds: np.ndarray, log_units: np.ndarray) -> Self:
        """For a prior of the logarithms of each kind of parameter, in its units."""

        def alone(kind: str, s: float) -> float:
            with np.errstate(all="ignore"):
                return log_prior(np.array([kind]), np.array([s]))[0]

        known = {kind: quantiles(partial(alone, kind)) for kind in dict.fromkeys(kinds.tolist())}
        return cls(np.column_stack([known[kind] for kind in kinds]) + log_units)

    @cached_property
    def _pieces(self) -> np.ndarray:
        """Coefficients of the cubics between the knots, piece after piece with all parameters of each: (power, both).

        Straight where a cubic would fall.
        """
        from scipy.interpolate import CubicSpline  # only here: it would be loaded with the package

        spline = CubicSpline(KNOTS, self.at_knots, bc_type="natural")
        rises = (spline(np.linspace(KNOTS[0], KNOTS[-1], 8 * KNOTS.size), 1) > 0).all(axis=0)
        line = np.linspace(self.at_knots[0], self.at_knots[-1], KNOTS.size)
        cubics = CubicSpline(KNOTS, np.where(rises, self.at_knots, line), bc_type="natural").c
        return cubics.reshape(len(cubics), -1)

    @cached_property
    def _columns(self) -> np.ndarray:
        return np.arange(self.at_knots.shape[1])

    def __call__(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """s, s' and s'' at z; straight beyond the knots."""
        within = np.minimum(np.maximum(z, KNOTS[0]), KNOTS[-1])
        piece = np.minimum(((within - KNOTS[0]) / (KNOTS[1] - KNOTS[0])).astype(int), KNOTS.size - 2)
        c3, c2, c1, c0 = self._pieces.take(piece * z.size + self._columns, axis=1)
        t = within - KNOTS[piece]
        slope = c1 + t * (2.0 * c2 + 3.0 * t * c3)
        value = c0 + t * (c1 + t * (c2 + t * c3)) + slope * (z - within)
        return value, slope, np.where(z == within, 2.0 * c2 + 6.0 * t * c3, 0.0)

    def inverse(self, log_params: np.ndarray) -> np.ndarray:
        """z of log parameters, to a tenth of a knot's distance; the last knot for those beyond."""
        fine = np.linspace(KNOTS[0], KNOTS[-1], 10 * KNOTS.size)
        table = np.array([self(np.full(log_params.size, z))[0] for z in fine])
        return np.array([np.interp(value, column, fine) for value, column in zip(log_params, table.T, strict=True)])

    def density(self, of_log_params: Density) -> Density:
        """The density of z, and its gradient."""

        def density(z: np.ndarray) -> tuple[float, np.ndarray]:
            s, slope, bend = self(z)
            value, gradient = of_log_params(s)
            return value + float(np.log(slope).sum()), gradient * slope + bend / slope

        return density


@dataclass(frozen=True, eq=False)
class Round:
    """Coordinates w, z = centre + axes w, in which a density is round around its mode."""

    by_prior: ByPrior
    centre: np.ndarray
    axes: np.ndarray

    @classmethod
    def around(cls, by_prior: ByPrior, of_log_params: Density, start: np.ndarray) -> Self:
        """Around the mode that is found from log parameters."""
        density = by_prior.density(of_log_params)
        return cls.at(by_prior, density, highest(density, by_prior.inverse(start)))

    @classmethod
    def at(cls, by_prior: ByPrior, density: Density, mode: np.ndarray) -> Self:
        """Around a mode of a density of z."""
        steps = np.minimum(STEP / by_prior(mode)[1], LARGEST_STEP)
        moves = steps[:, None] * np.eye(mode.size)
        H = np.array([density(mode - move)[1] - density(mode + move)[1] for move in moves]) / (2.0 * steps[:, None])
        h, V = np.linalg.eigh(0.5 * (H + H.T))
        return cls(by_prior, mode, V / np.sqrt(np.maximum(h, LEAST_PRIOR_CURVATURE)))

    def log_params(self, w: np.ndarray) -> np.ndarray:
        return self.by_prior(self.centre + self.axes @ w)[0]

    def drawn(self, _of_log_params: Density, _rng: np.random.Generator) -> Drawn:
        return self.log_params

    def start(self, starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """w of one of several log parameters, about."""
        return self.inverse(rng.choice(starts))

    def inverse(self, log_params: np.ndarray) -> np.ndarray:
        """w of log parameters, about."""
        return np.linalg.solve(self.axes, self.by_prior.inverse(log_params) - self.centre)

    def density(self, of_log_params: Density) -> Density:
        """The density of w up to a constant, and its gradient."""
        of_z = self.by_prior.density(of_log_params)

        def density(w: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = of_z(self.centre + self.axes @ w)
            return value, gradient @ self.axes

        return density


class Coordinates(Protocol):
    """What a sampler moves in: w, with the density there, where a chain starts, and log parameters of a draw."""

    def density(self, of_log_params: Density) -> Density: ...

    def start(self, starts: np.ndarray, rng: np.random.Generator) -> np.ndarray: ...

    def drawn(self, of_log_params: Density, rng: np.random.Generator) -> Drawn: ...


def highest(density: Density, start: np.ndarray, most_iterations: int = MOST_ITERATIONS) -> np.ndarray:
    """Where a density is largest, searched from a start."""

    def negative(z: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = density(z)
        return -value, -gradient

    found = minimize(negative, start, jac=True, method="L-BFGS-B", options={"maxiter": most_iterations})
    return np.asarray(found.x) if np.isfinite(found.fun) else start


# A step of differences, in logarithms.
DIFFERENCE = 1e-3
# Curvatures count as at least this, in nats for a factor of e: where it is flat, steps stay sensible.
LEAST_CURVATURE = 0.1
# Nats that a search may leave, by the curvature: half the squared length of the gradient in its coordinates.
LEFT = 1e-4
# Where no curvature is known, the largest slope that ends a search.
LEAST_SLOPE = 1e-5

Gradient = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Steps:
    """Coordinates that are parameters in units of typical steps."""

    steps: np.ndarray
    least_slope: float = LEAST_SLOPE  # the search ends where all slopes are smaller

    def start(self, params: np.ndarray) -> np.ndarray:
        return params / self.steps

    def params(self, u: np.ndarray) -> np.ndarray:
        return u * self.steps

    def gradient(self, by_params: np.ndarray) -> np.ndarray:
        return by_params * self.steps

    def curvature(self, inverse: np.ndarray) -> np.ndarray:
        """Of the parameters, from the inverse of the curvature of the coordinates."""
        return at_least(np.linalg.inv(inverse) / np.outer(self.steps, self.steps), LEAST_CURVATURE)


@dataclass(frozen=True, eq=False)
class Newton:
    """Coordinates around a place, in which a known curvature is the same in all directions."""

    place: np.ndarray
    T: np.ndarray
    least_slope: float  # the search ends where all slopes are smaller

    @classmethod
    def around(cls, place: np.ndarray, curvature: np.ndarray, gradient: np.ndarray) -> Newton:
        L = np.linalg.cholesky(curvature)
        T = solve_triangular(L, np.eye(len(L)), lower=True).T
        least = math.sqrt(2.0 * LEFT)
        length = max(float(np.linalg.norm(gradient @ T)), least)
        return cls(place, length * T, length * least / math.sqrt(len(L)))

    def start(self, params: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.T, params - self.place)

    def params(self, u: np.ndarray) -> np.ndarray:
        return self.place + self.T @ u

    def gradient(self, by_params: np.ndarray) -> np.ndarray:
        return by_params @ self.T

    def curvature(self, inverse: np.ndarray) -> np.ndarray:
        """Of the parameters, from the inverse of the curvature of the coordinates."""
        return at_least(np.linalg.inv(self.T @ inverse @ self.T.T), LEAST_CURVATURE)


def curvature_by_differences(gradient: Gradient, place: np.ndarray) -> np.ndarray:
    """Second derivatives of a function around its minimum, from its gradient, made positive definite."""
    steps = DIFFERENCE * np.eye(place.size)
    here = gradient(place)
    rows = np.array([gradient(place + step) - here for step in steps]) / DIFFERENCE
    return at_least(0.5 * (rows + rows.T), LEAST_CURVATURE)


def at_least(curvature: np.ndarray, least: float) -> np.ndarray:
    """A symmetric matrix whose eigenvalues have their size, and no less than this."""
    values, vectors = np.linalg.eigh(curvature)
    return (vectors * np.maximum(np.abs(values), least)) @ vectors.T
