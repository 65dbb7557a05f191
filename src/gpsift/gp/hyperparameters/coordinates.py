r"""Coordinates in which hyperparameters are searched and sampled.

Coordinates u are mapped to log parameters x. `Coordinates.at` returns what a density needs: x, the logarithm of the
Jacobian and the gradient pulled back, so that a density of x becomes one of u (`Coordinates.density`),

.. math:: \log p(u) = \log p(x(u)) + \log |dx / du| .

The logarithms of hyperparameters have long tails: that of a length-scale whose feature has no effect follows its
prior to infinity, and that of a superfluous variance follows its prior to zero.

- `Axes` is an affine map, for searches: units of typical steps, or axes along which a known curvature is 1.
- `PriorQuantiles` has a standard normal prior, x(u) being the quantile function of the prior of log parameters. Both
  tails are short. The function is interpolated in a table, without error in the density: any increasing map is valid.
- `CubeRoots` has :math:`u = l^{-1/3}` for length-scales: under an exponential prior of 1 / l, which an inverse gamma
  prior of shape 1 is, u is nearly normal, and an infinite length-scale has the finite coordinate u = 0.

Around a mode with the curvature :math:`H = V \mathrm{diag}(h) V^T` a density is nearly isotropic in the coordinates
:math:`u = u_0 + V \mathrm{diag}(h)^{-1/2} w`, which `Whitened` composes with prior quantiles.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import ndtri

from gpsift._utils.parameter import positions
from gpsift.gp.hyperparameters.priors import Density, LogPrior

Gradient = Callable[[np.ndarray], np.ndarray]
ToParams = Callable[[np.ndarray], np.ndarray]  # a draw of coordinates -> log parameters

# Step of finite differences in searches, in logarithms.
DIFFERENCE = 1e-3
# The least curvature of a search, in nats for a factor of e; it limits steps where the objective is flat.
LEAST_CURVATURE = 0.1
# Expected gain that ends a search, in nats: half the squared norm of the gradient in coordinates of unit curvature.
LEFT = 1e-4
# Where no curvature is known, the largest slope that ends a search.
LEAST_SLOPE = 1e-5
# Range of logarithms in which a prior is evaluated, and its truncation, in nats below its maximum.
FARTHEST = 300
DEPTH = 16.0
# Points at which the density of a prior is evaluated, and standard normal quantiles of the table.
N_POINTS = 600
KNOTS = np.linspace(-4.0, 4.0, 33)
# Step of finite differences around a mode, in logarithms, and its largest size in prior quantiles.
STEP = 0.1
LARGEST_STEP = 0.3
# The least curvature in prior quantiles, in which that of the prior alone is 1.
LEAST_PRIOR_CURVATURE = 0.3
# The coordinate of a length-scale is this power of it, of at least this absolute value.
ROOT = -1.0 / 3.0
SMALLEST_ROOT = 1e-4


class Mapped(NamedTuple):
    """The log parameters at a point, log |d params / du|, and the map from gradients by them to gradients by u."""

    params: np.ndarray
    log_jacobian: float
    pull_back: Gradient


class Coordinates(ABC):
    """An invertible map from coordinates to log parameters."""

    @abstractmethod
    def at(self, u: np.ndarray) -> Mapped:
        """Map a point to log parameters."""

    @abstractmethod
    def of(self, log_params: np.ndarray) -> np.ndarray:
        """Return the coordinates of log parameters."""

    def density(self, of_params: Density) -> Density:
        """Return the density of coordinates, up to a constant, of a density of log parameters."""

        def density(u: np.ndarray) -> tuple[float, np.ndarray]:
            params, log_jacobian, pull_back = self.at(u)
            value, gradient = of_params(params)
            return value + log_jacobian, pull_back(gradient)

        return density

    # Methods for samplers only.

    def start(self, starts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the coordinates of one of several log parameters, drawn at random."""
        return self.of(rng.choice(starts))

    def to_params(self, _of_params: Density, _rng: np.random.Generator) -> ToParams:
        """Return the map from draws to log parameters."""
        return lambda u: self.at(u).params


@dataclass(frozen=True, eq=False)
class Axes(Coordinates):
    """Coordinates u of parameters center + axes u; the constant Jacobian is left out."""

    center: np.ndarray
    axes: np.ndarray
    least_slope: float = LEAST_SLOPE  # a search ends where all slopes are smaller

    @classmethod
    def of_steps(cls, steps: np.ndarray) -> Axes:
        """Return parameters in units of typical steps."""
        return cls(np.zeros(steps.size), np.diag(steps))

    @classmethod
    def newton(cls, center: np.ndarray, curvature: np.ndarray, gradient: np.ndarray) -> Axes:
        """Return coordinates in which the first step of a search is that of Newton's method.

        With curvature L L^T it is 1 along the axes L^{-T}. L-BFGS begins with a step of length 1, so that the axes are
        multiplied by the norm of the gradient in these coordinates.
        """
        L = np.linalg.cholesky(curvature)
        axes = solve_triangular(L, np.eye(len(L)), lower=True).T
        least = math.sqrt(2.0 * LEFT)
        length = max(float(np.linalg.norm(gradient @ axes)), least)
        return cls(center, length * axes, length * least / math.sqrt(len(L)))

    def at(self, u: np.ndarray) -> Mapped:
        return Mapped(self.center + self.axes @ u, 0.0, lambda gradient: gradient @ self.axes)

    def of(self, log_params: np.ndarray) -> np.ndarray:
        return np.linalg.solve(self.axes, log_params - self.center)

    def curvature(self, inverse: np.ndarray) -> np.ndarray:
        """Return the curvature by parameters, given the inverse of that by coordinates."""
        return at_least(np.linalg.inv(self.axes @ inverse @ self.axes.T), LEAST_CURVATURE)


@dataclass(frozen=True, eq=False)
class PriorQuantiles(Coordinates):
    """Coordinates z of log parameters s(z), increasing functions, with a standard normal prior."""

    at_knots: np.ndarray  # s at `KNOTS`, (knot, parameter)

    @classmethod
    def of_prior(cls, log_prior: LogPrior, parameters: np.ndarray, log_units: np.ndarray) -> Self:
        """Return the coordinates of a prior of the logarithms of parameters, in their units."""
        at_knots = np.empty((KNOTS.size, parameters.size))
        for _, where in positions(parameters):
            at_knots[:, where] = quantiles(log_prior(parameters[where[:1]]))[:, None]
        return cls(at_knots + log_units)

    @cached_property
    def _pieces(self) -> np.ndarray:
        """Coefficients of the cubic splines, (power, pieces of all parameters); linear where a cubic would decrease."""
        from scipy.interpolate import CubicSpline  # imported late, because it is slow to load

        spline = CubicSpline(KNOTS, self.at_knots, bc_type="natural")
        rises = (spline(np.linspace(KNOTS[0], KNOTS[-1], 8 * KNOTS.size), 1) > 0).all(axis=0)
        line = np.linspace(self.at_knots[0], self.at_knots[-1], KNOTS.size)
        cubics = CubicSpline(KNOTS, np.where(rises, self.at_knots, line), bc_type="natural").c
        return cubics.reshape(len(cubics), -1)

    def __call__(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return s, s' and s'' at z; s is linear beyond the knots."""
        within = np.minimum(np.maximum(z, KNOTS[0]), KNOTS[-1])
        piece = np.minimum(((within - KNOTS[0]) / (KNOTS[1] - KNOTS[0])).astype(int), KNOTS.size - 2)
        c3, c2, c1, c0 = self._pieces.take(piece * z.size + np.arange(z.size), axis=1)
        t = within - KNOTS[piece]
        slope = c1 + t * (2.0 * c2 + 3.0 * t * c3)
        value = c0 + t * (c1 + t * (c2 + t * c3)) + slope * (z - within)
        return value, slope, np.where(z == within, 2.0 * c2 + 6.0 * t * c3, 0.0)

    def at(self, z: np.ndarray) -> Mapped:
        s, slope, second = self(z)
        return Mapped(s, float(np.log(slope).sum()), lambda gradient: gradient * slope + second / slope)

    def of(self, log_params: np.ndarray) -> np.ndarray:
        """Return z of log parameters, to a tenth of a knot's distance; the last knot for those beyond."""
        fine = np.linspace(KNOTS[0], KNOTS[-1], 10 * KNOTS.size)
        table = np.array([self(np.full(log_params.size, z))[0] for z in fine])
        return np.array([np.interp(value, column, fine) for value, column in zip(log_params, table.T, strict=True)])


def quantiles(log_prior: Density) -> np.ndarray:
    """Return the logarithms at the standard normal `KNOTS`, from a log prior density of one logarithm."""

    def values(logarithms: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.array([log_prior(np.array([s]))[0] for s in logarithms])

    coarse = np.arange(-FARTHEST, FARTHEST + 1.0)
    heights = values(coarse)
    within = np.flatnonzero(heights > np.nanmax(heights) - DEPTH)
    fine = np.linspace(coarse[within[0]] - 1.0, coarse[within[-1]] + 1.0, N_POINTS)
    heights = values(fine)
    mass = np.exp(heights - np.nanmax(heights))
    between = 0.5 * (mass[1:] + mass[:-1])
    below = (np.cumsum(between) - 0.5 * between) / between.sum()
    middle = 0.5 * (fine[1:] + fine[:-1])
    return np.interp(KNOTS, ndtri(below), middle)


@dataclass(frozen=True, eq=False)
class Whitened(Coordinates):
    """Coordinates w of prior quantiles center + axes w, in which a density is nearly isotropic around its mode."""

    prior_quantiles: PriorQuantiles
    affine: Axes

    @classmethod
    def around_mode(cls, prior_quantiles: PriorQuantiles, of_params: Density, start: np.ndarray) -> Self:
        """Return coordinates around the mode that is found from log parameters."""
        density = prior_quantiles.density(of_params)
        return cls.at_mode(prior_quantiles, density, find_mode(density, prior_quantiles.of(start)))

    @classmethod
    def at_mode(cls, prior_quantiles: PriorQuantiles, density: Density, mode: np.ndarray) -> Self:
        """Return coordinates around a mode of a density of prior quantiles."""
        steps = np.minimum(STEP / prior_quantiles(mode)[1], LARGEST_STEP)
        values, vectors = np.linalg.eigh(-hessian_by_differences(lambda z: density(z)[1], mode, steps))
        return cls(prior_quantiles, Axes(mode, vectors / np.sqrt(np.maximum(values, LEAST_PRIOR_CURVATURE))))

    def at(self, w: np.ndarray) -> Mapped:
        z, _, to_w = self.affine.at(w)
        params, log_jacobian, to_z = self.prior_quantiles.at(z)
        return Mapped(params, log_jacobian, lambda gradient: to_w(to_z(gradient)))

    def of(self, log_params: np.ndarray) -> np.ndarray:
        return self.affine.of(self.prior_quantiles.of(log_params))


@dataclass(frozen=True, eq=False)
class CubeRoots(Coordinates):
    """Coordinates that are powers of length-scales, and logarithms of other parameters."""

    is_root: np.ndarray
    log_units: np.ndarray

    def at(self, u: np.ndarray) -> Mapped:
        is_root = self.is_root
        roots = np.copysign(np.maximum(np.abs(u[is_root]), SMALLEST_ROOT), u[is_root])  # of any sign in a search
        log_roots, scaled = np.log(np.abs(roots)), u.copy()
        scaled[is_root] = log_roots / ROOT

        def pull_back(gradient: np.ndarray) -> np.ndarray:
            slopes = np.array(gradient)
            slopes[is_root] = (gradient[is_root] / ROOT - 1.0) / roots
            return slopes

        return Mapped(scaled + self.log_units, float(np.sum(-np.log(-ROOT) - log_roots)), pull_back)

    def of(self, log_params: np.ndarray) -> np.ndarray:
        scaled = log_params - self.log_units
        return np.where(self.is_root, np.exp(ROOT * scaled), scaled)

    def fold(self, u: np.ndarray) -> np.ndarray:
        """Return the point with positive roots that has the same parameters."""
        return np.where(self.is_root, np.abs(u), u)


def find_mode(
    density: Density,
    start: np.ndarray,
    widths: np.ndarray | float = 1.0,
    is_known: Callable[[np.ndarray], bool] | None = None,
    **options: Any,
) -> np.ndarray:
    """Return where a density is largest, searched from a start in units of typical widths.

    The search ends early at a point that `is_known`; `options` are those of SciPy's L-BFGS-B.
    """

    def negative(steps: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = density(steps * widths)
        return -value, -gradient * widths

    def stop_if_known(steps: np.ndarray) -> None:
        if is_known is not None and is_known(steps * widths):
            raise StopIteration

    options = {"maxiter": 40, **options}
    found = minimize(negative, start / widths, jac=True, method="L-BFGS-B", callback=stop_if_known, options=options)
    return np.asarray(found.x) * widths if np.isfinite(found.fun) else start


def hessian_by_differences(
    gradient: Gradient, point: np.ndarray, steps: np.ndarray, at_point: np.ndarray | None = None
) -> np.ndarray:
    """Return second derivatives by central differences of the gradient, or by forward ones if it is known at the point.

    Forward differences take half of the evaluations and need exact gradients.
    """
    moves = np.diag(steps)
    if at_point is None:
        rows = np.array([(gradient(point + move) - gradient(point - move)) / 2.0 for move in moves])
    else:
        rows = np.array([gradient(point + move) - at_point for move in moves])
    rows /= steps[:, None]
    return 0.5 * (rows + rows.T)


def curvature_by_differences(gradient: Gradient, point: np.ndarray) -> np.ndarray:
    """Return the Hessian of a function around its minimum by differences, made positive definite."""
    here = gradient(point)
    steps = np.full(point.size, DIFFERENCE)
    return at_least(hessian_by_differences(gradient, point, steps, here), LEAST_CURVATURE)


def at_least(curvature: np.ndarray, least: float) -> np.ndarray:
    """Replace the eigenvalues of a symmetric matrix by their absolute values, or by `least` if that is larger."""
    values, vectors = np.linalg.eigh(curvature)
    return (vectors * np.maximum(np.abs(values), least)) @ vectors.T
