r"""The VAR measure: how much the latent mean varies along a feature, given the others (the paper's equation 5).

.. math::
    \mathrm{VAR}_{ij} = \mathrm{Var}_{t \sim N(m_{ij}, s_j^2)} \, \mathrm{mean}(x_i \text{ with } x_{ij} := t)

by Gauss-Hermite quadrature; for a group of features over their joint conditional N(m_iG, S_G). A model with a latent
function for each of several classes has the sum of their variances; what all classes share changes no prediction, and
is not in their means. The nodes of a single feature are m_ij + sqrt(2) s_j t_q with the same offsets for every row,
which lets the squared exponential kernel take all of them from one matrix (`kernels.profiles`).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from functools import partial
from numbers import Integral

import numpy as np
from scipy.special import ndtri

from gpsift.inputs import Points
from gpsift.progress import counted
from gpsift.reference import Reference
from gpsift.relevance.categories import Levels
from gpsift.relevance.conditionals import COVARIANCES, Conditionals, Covariance, fit_conditionals
from gpsift.relevance.measure import Groups, Measure, Relevance
from gpsift.threads import threaded_map

# A group's conditional is normal in several dimensions: a product rule of at most this many nodes, or this many Sobol
# points (a power of 2), of which NODE_BLOCK are predicted at once.
LARGEST_PRODUCT = 1500
SOBOL_POWER = 10
NODE_BLOCK = 2**13


@dataclass(frozen=True)
class VAR(Measure):
    """Variance of the latent mean along the conditional distribution of a feature.

    Scores are squares, in units of the target squared; their root compares with KL and with a slope.

    Parameters
    ----------
    n_nodes : int
        Gauss-Hermite nodes.
    covariance : {"auto", "sample", "ledoit-wolf", "oas", "ridge"}
        How the covariance of the inputs is estimated. "auto" takes the sample covariance, and shrinks the correlation
        matrix (Ledoit-Wolf) when it is ill-conditioned or there are no more rows than features. "ridge" adds a diagonal
        until the condition number is 100, for reproducing the paper.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> ranking = gs.rank(gs.GP().fit(X, y), X, measure=gs.VAR())
    >>> ranking.names[ranking.order[0]], ranking.details["covariance"]
    ('x1', 'sample')

    References
    ----------
    Paananen, Piironen, Andersen and Vehtari (2019), section 3.2.
    """

    n_nodes: int = 11
    covariance: Covariance = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.n_nodes, Integral) or self.n_nodes < 2:
            raise ValueError(f"`n_nodes` must be a whole number of at least 2, got {self.n_nodes!r}.")
        if self.covariance not in COVARIANCES:
            raise ValueError(f"`covariance` must be one of {', '.join(COVARIANCES)}, got {self.covariance!r}.")

    def relevance(self, reference: Reference, points: Points) -> Relevance:
        return self.group_relevance(reference, points, tuple((j,) for j in range(points.inputs.n_features)))

    def group_relevance(self, reference: Reference, points: Points, groups: Groups) -> Relevance:
        conditionals = fit_conditionals(points.inputs.moments, self.covariance)
        blocks = reference.blocks(len(points))
        if len(blocks) == 1:
            values = self._variances(reference, points, conditionals, groups)
        else:
            of_block = partial(self._variances, reference, conditionals=conditionals, groups=groups)
            values = np.concatenate(threaded_map(of_block, [points.take(block) for block in blocks]))
        return Relevance(values, f"in squared units of {reference.mean_of}", details=conditionals.details)

    def _variances(
        self, reference: Reference, points: Points, conditionals: Conditionals, groups: Groups
    ) -> np.ndarray:
        response = reference.at(points)
        base, sd = conditionals.mean(points.X), conditionals.sd
        nodes, weights = gauss_hermite(self.n_nodes)
        values = np.zeros((len(points), len(groups)))
        for k, group in counted(enumerate(groups), len(groups)):
            moving = tuple(j for j in group if sd[j] > 0)
            if len(moving) > 1:
                values[:, k] = self._joint_variance(reference, points, conditionals, moving)
            elif moving:
                (j,) = moving
                values[:, k] = variance_of_means(response.section(j, base[:, j], sd[j] * nodes), weights)
        return values

    def category_relevance(self, reference: Reference, points: Points, levels: Levels) -> Relevance:
        moved = (points.moved(X) for _, X, _ in levels.changed(points.X))
        means = np.stack([reference.at(each).latent_mean for each in moved], axis=1)
        return Relevance(variance_of_means(means, levels.shares), f"in squared units of {reference.mean_of}")

    def _joint_variance(
        self, reference: Reference, points: Points, conditionals: Conditionals, group: tuple[int, ...]
    ) -> np.ndarray:
        """Variance of the latent mean over the joint conditional of a group's columns, (n,)."""
        center, root = conditionals.of_group(points.X, group)
        nodes, weights = normal_nodes(len(group), self.n_nodes)
        offsets = nodes @ root.T
        values = np.empty(len(points))
        size = max(1, NODE_BLOCK // len(nodes))
        for start in range(0, len(points), size):
            rows = slice(start, start + size)
            moved = np.repeat(points.X[rows], len(nodes), axis=0)
            moved[:, list(group)] = (center[rows, None, :] + offsets).reshape(len(moved), -1)
            means = reference.at(points.moved(moved)).latent_mean
            values[rows] = variance_of_means(means.reshape(-1, len(nodes), *means.shape[1:]), weights)
        return values


def variance_of_means(means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Variance over the nodes of (n, q), or of (n, q, C) summed over several latent functions, one for each class."""
    by_class = np.moveaxis(means, 2, 0) if means.ndim == 3 else means[None]
    return sum((weighted_variance(each, weights) for each in by_class), np.zeros(len(means)))


def normal_nodes(dimension: int, n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes (Q, dimension) and weights of the expectation under independent standard normals.

    A product of Gauss-Hermite rules while it is small, a Sobol sequence with a fixed seed after that.
    """
    if n_nodes**dimension <= LARGEST_PRODUCT:
        nodes, weights = gauss_hermite(n_nodes)
        grid = np.stack(np.meshgrid(*[nodes] * dimension, indexing="ij"), axis=-1).reshape(-1, dimension)
        return grid, functools.reduce(np.multiply.outer, [weights] * dimension).ravel()
    from scipy.stats import qmc

    uniform = qmc.Sobol(dimension, seed=0).random_base2(SOBOL_POWER)
    return ndtri(uniform), np.full(len(uniform), 1.0 / len(uniform))


def gauss_hermite(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the expectation under a standard normal distribution."""
    nodes, weights = np.polynomial.hermite.hermgauss(n_nodes)
    return np.sqrt(2.0) * nodes, weights / np.sqrt(np.pi)


def weighted_variance(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Variance along the last axis, around the mean: E[f^2] - E[f]^2 would cancel where f is nearly constant."""
    change = values - values[:, :1]  # exactly 0 where nothing varies
    return (change - (change @ weights)[:, None]) ** 2 @ weights
