r"""Nodes and weights of numerical integrals and averages.

There are three families of rules. Gauss rules with n nodes are exact for polynomials of degree 2 n - 1
(`gauss_legendre`, `gauss_legendre_log`, `gauss_hermite`, `gauss_beta`; others by `gauss_from_recurrence`). The
trapezoidal rule converges exponentially for averages over a normal variable: with step h it errs by exp(-2 pi^2 / h^2)
because of the normal density, and by exp(-2 pi d / h) because of a pole of the averaged function at distance d from the
real axis (`normal_trapezoid`, `normal_blocks`, `peaked_nodes`, `lattice`; `gamma_nodes`). A fixed scrambled Sobol
sequence replaces a lattice of several dimensions that would be too large.

Weights of averages over a normal variable add up to 1.

References
----------
Golub and Welsch (1969), Mathematics of Computation 23, 221-230. Trefethen and Weideman (2014), SIAM Review 56, 385-458.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, lru_cache, reduce
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammainccinv, gammaincinv, gammaln, ndtri

# Step and reach of the trapezoidal rule for averages of log p(y | f) over a normal f. Log densities have singularities
# at a distance of pi (logistic) or 2.8 (probit) in f, so the step is bounded in f and the number of nodes doubles with
# the standard deviation. Averages of log p and of its derivatives are right to 1e-9 for standard deviations up to 16.
# Beyond that the number of nodes is constant, and errors grow to 1e-4 at 100. A Gauss-Hermite rule needs fewer nodes
# below sd = 1, and above it a number that grows with the square: at sd = 4 it errs by 5e-6 with 64 nodes, the
# trapezoidal rule by 1e-8 with 80.
LATENT_STEP = 0.6
LATENT_REACH = 7.2
MOST_DOUBLINGS = 4
# Rows are taken in blocks, so that a (row, node) array stays below this many numbers.
BLOCK = 200_000
# Given an observation, the latent value is nearly normal around its peak, with tails no heavier than the prior's: nodes
# at peak + width BEND sinh(u / BEND), even near the peak and far apart in the tails, up to PEAK_REACH standard
# deviations of the prior.
N_PEAKED = 101
PEAK_REACH = 8.5
BEND = 3.0
# Lattices, fine and coarse: the step for spreads of at most 1, and the radius of the ball. The fine one errs by about
# 1e-11. The coarse one errs by 1e-6, and is used where the fine one would have too many nodes.
LATTICES = ((0.65, 7.2), (1.1, 5.4))
LARGEST_LATTICE = 2**14
# Averages of a softmax over 4 to 9 dimensions by 2^LOG2_SOBOL points are right to 2e-5 for standard deviations of 0.5,
# to 5e-4 for 2, and to 3e-3 for 10.
LOG2_SOBOL = 13
# Nodes of each search for the interval where a log-concave integrand matters, and the number of searches.
INTERVAL_NODES = 65
INTERVAL_SEARCHES = 2
# The error of `gamma_nodes` divided by exp(-pi^2 / step), measured for Matérn and rational quadratic kernels.
GAMMA_ERROR = 30.0


@cache
def gauss_legendre(n_nodes: int, low: float = -1.0, high: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the integral over [low, high]."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    half = 0.5 * (high - low)
    return _freeze(0.5 * (low + high) + half * nodes, half * weights)


def gauss_legendre_log(n_nodes: int, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights (n, n_nodes) of integrals from exp(start) to exp(stop), Gauss rules in the logarithm."""
    t, weights = gauss_legendre(n_nodes)
    half = 0.5 * (stop - start)[:, None]
    nodes = np.exp(start[:, None] + half * (t + 1.0))
    return nodes, half * weights * nodes


@cache
def gauss_hermite(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the expectation under a standard normal distribution."""
    nodes, weights = np.polynomial.hermite.hermgauss(n_nodes)
    return _freeze(np.sqrt(2.0) * nodes, weights / np.sqrt(np.pi))


@lru_cache(maxsize=256)
def gauss_beta(n_nodes: int, alpha: float, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of the expectation under Beta(alpha, beta): a Gauss-Jacobi rule on (0, 1)."""
    a, b = alpha - 1.0, beta - 1.0  # the weight function is x^a (1 - x)^b
    s = a + b
    k = np.arange(1.0, n_nodes)
    diagonal = np.empty(n_nodes)  # written for (0, 1), so that nothing cancels
    diagonal[0] = (1.0 + a) / (2.0 + s)
    diagonal[1:] = (2.0 * k * (k + s + 1.0) + s * (1.0 + a)) / ((2.0 * k + s) * (2.0 * k + s + 2.0))
    squares = np.empty(n_nodes - 1)
    squares[0] = (1.0 + a) * (1.0 + b) / ((2.0 + s) ** 2 * (3.0 + s))
    k = k[1:]
    squares[1:] = k * (k + a) * (k + b) * (k + s) / ((2.0 * k + s) ** 2 * (2.0 * k + s + 1.0) * (2.0 * k + s - 1.0))
    nodes, weights = gauss_from_recurrence(diagonal, np.sqrt(squares))
    return _freeze(np.clip(nodes, 0.0, 1.0), weights)


def gauss_from_recurrence(diagonal: np.ndarray, off_diagonal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights, which add up to 1, from the recurrence of orthogonal polynomials (Golub and Welsch)."""
    nodes, vectors = eigh_tridiagonal(diagonal, off_diagonal)
    return nodes, vectors[0] ** 2


def _freeze(*arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    for array in arrays:
        array.flags.writeable = False
    return arrays[0], arrays[1]


def normal_weights(t: np.ndarray) -> np.ndarray:
    """Return weights of the trapezoidal rule at even nodes t for averages over a standard normal variable."""
    weights = np.exp(-0.5 * t**2)
    return weights / weights.sum()


@lru_cache(maxsize=128)
def normal_trapezoid(n_nodes: int, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Return even nodes from -reach to reach, and their weights for averages over a standard normal variable."""
    t = np.linspace(-reach, reach, n_nodes)
    return _freeze(t, normal_weights(t))


def gamma_nodes(shape: float, n_nodes: int, largest_error: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Return nodes, even in the logarithm, and weights of averages over Gamma(shape, 1); None if they are too few."""
    # The error is the mass beyond the ends, or that of the trapezoidal rule, about exp(-pi^2 / step): choose the ends
    # for which the larger of both is least.
    tails = np.logspace(-15, -3, 49)
    low, high = np.log(gammaincinv(shape, tails)), np.log(gammainccinv(shape, tails))
    errors = np.maximum(tails, GAMMA_ERROR * np.exp(-(np.pi**2) * (n_nodes - 1) / (high - low)))
    best = int(np.nanargmin(errors))
    if not errors[best] <= largest_error:
        return None
    log_g = np.linspace(low[best], high[best], n_nodes)
    weights = np.exp(shape * log_g - np.exp(log_g) - gammaln(shape))
    return np.exp(log_g), weights / weights.sum()


def normal_blocks(sd: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of rows, each with the nodes t and weights of its averages over f = mean + sd t.

    The averaged functions must be as smooth in f as a log likelihood. The nodes of a row depend on its own standard
    deviation only.
    """
    doublings = np.clip(np.ceil(np.log2(np.maximum(sd, 1.0))), 0, MOST_DOUBLINGS).astype(int)
    for doubling in np.unique(doublings):
        t, weights = normal_trapezoid(round(2.0 * LATENT_REACH / LATENT_STEP) * 2 ** int(doubling) + 1, LATENT_REACH)
        group = np.flatnonzero(doublings == doubling)
        size = BLOCK // t.size
        for start in range(0, group.size, size):
            yield group[start : start + size], t, weights


def peaked_nodes(peak: np.ndarray, width: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (m, h) and log weights for integrals of products with a normal density of standard deviation sd.

    The product has its peak at `peak`, where its curvature is that of a normal density with standard deviation `width`.
    """
    reach = np.arcsinh(PEAK_REACH * np.maximum(sd / width, 1.0) / BEND)[:, None]
    # One exponential gives sinh and cosh: on symmetric nodes its reciprocals are its values in reverse order.
    growth = np.exp(reach * np.linspace(-1.0, 1.0, N_PEAKED))
    decay = growth[:, ::-1]
    half = 0.5 * BEND * width[:, None]
    f = peak[:, None] + half * (growth - decay)
    return f, np.log(half * (2.0 * reach / (N_PEAKED - 1)) * (growth + decay))


def log_concave_interval(
    log_integrand: Callable[[np.ndarray], np.ndarray], low: float, high: float, depth: float
) -> tuple[float, float]:
    """Find a part of [low, high] outside which a log-concave integrand is `depth` nats or more below its maximum.

    By concavity the ends of the part are the nodes next to those at which the integrand is higher than that.
    """
    for _ in range(INTERVAL_SEARCHES):
        nodes = np.linspace(low, high, INTERVAL_NODES)
        heights = log_integrand(nodes)
        above = np.flatnonzero(heights > heights.max() - depth)
        low, high = nodes[max(above[0] - 1, 0)], nodes[min(above[-1] + 1, INTERVAL_NODES - 1)]
    return float(low), float(high)


class NormalNodes(NamedTuple):
    """Values of a standard normal vector, (h, d), and the logarithms of their weights, (h,), which add up to 1.

    The axes of a lattice are those of the spreads in `softmax_nodes`.
    """

    z: np.ndarray
    log_weights: np.ndarray
    is_lattice: bool


def softmax_nodes(spread: np.ndarray) -> Iterator[tuple[np.ndarray, NormalNodes]]:
    """Yield groups of rows, each with the nodes for a softmax whose arguments have these spreads (n, d) along the axes.

    A softmax has poles where two of its arguments differ by i pi. If a step of 1 along an axis changes their difference
    by `spread`, the distance to a pole is pi / spread, so the step of the nodes must shrink with 1 / spread. (With
    standard deviations of 4, 40 x 40 nodes of Gauss-Hermite rules err by 5e-3, a lattice of as many nodes by 3e-8.)
    """
    n, d = spread.shape
    levels = np.ceil(2.0 * np.log2(np.maximum(spread, 1.0))).astype(int)  # steps decrease by factors of sqrt(2)
    log_ball = 0.5 * d * np.log(np.pi) - gammaln(0.5 * d + 1.0)
    rule = np.full(n, len(LATTICES))
    for k, (step, reach) in reversed(list(enumerate(LATTICES))):
        log_size = log_ball + d * np.log(reach / step) + 0.5 * np.log(2.0) * levels.sum(axis=1)
        rule[log_size <= np.log(LARGEST_LATTICE)] = k
    levels[rule == len(LATTICES)] = 0
    kinds, members = np.unique(np.column_stack([rule, levels]), axis=0, return_inverse=True)
    for k, (chosen, *steps) in enumerate(kinds.tolist()):
        rows = np.flatnonzero(members.ravel() == k)
        if chosen < len(LATTICES):
            yield rows, lattice(*LATTICES[chosen], tuple(steps))
        else:
            z = normal_sobol(d, LOG2_SOBOL)
            yield rows, NormalNodes(z, np.full(len(z), -LOG2_SOBOL * np.log(2.0)), False)


@lru_cache(maxsize=128)
def lattice(coarsest: float, reach: float, levels: tuple[int, ...]) -> NormalNodes:
    """Make a lattice with steps of coarsest / sqrt(2)^level along each axis, within a ball."""
    axes = []
    for level in levels:
        step = coarsest * 2.0 ** (-0.5 * level)
        half = int(reach / step)
        axes.append(step * np.arange(-half, half + 1))
    z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(levels))
    squared = np.sum(z**2, axis=1)
    inside = squared <= reach**2
    z, log_weights = z[inside], -0.5 * squared[inside]
    return NormalNodes(z, log_weights - np.log(np.exp(log_weights).sum()), True)


@lru_cache(maxsize=128)
def normal_sobol(dimension: int, log2_points: int) -> np.ndarray:
    """Return 2^log2_points quasi-random draws of a standard normal vector, (q, dimension), always the same."""
    from scipy.stats import qmc

    return ndtri(qmc.Sobol(dimension, seed=0).random_base2(log2_points))


def gauss_hermite_product(dimension: int, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes (n_nodes^dimension, dimension) and weights of the expectation under independent normals."""
    nodes, weights = gauss_hermite(n_nodes)
    grid = np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
    return grid, reduce(np.multiply.outer, [weights] * dimension).ravel()
