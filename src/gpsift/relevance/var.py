r"""The VAR measure is the variance of the latent mean along a feature, given the others (the paper's equation 5).

.. math::
    \mathrm{VAR}_{ij} = \mathrm{Var}_{t \sim p(x_j \mid x_{i,-j})} \, \mathrm{mean}(x_i \text{ with } x_{ij} := t)

for a group of features over their joint conditional. The values that a feature is set to, and their weights, are nodes
around its mean m_ij given the others. Under the normal conditional N(m_ij, s_j^2) of the paper they are those of a
quadrature, m_ij + s_j t_q (`NormalNodes`). They extrapolate from bounded or skewed data: the outermost of 11 nodes are
5 conditional standard deviations from the mean, the bounds of a uniform variable 1.7. Residuals of the training rows do
not extrapolate as far (`ResidualNodes`):

.. math:: m_{ij} + r_{jq} , \qquad r_{jq} \text{ the mean of the q-th of Q equal slices of the sorted } x_{ij} - m_{ij}

over the training rows i, with weights in proportion to the number of rows. The residuals of a group are those of whole
rows, so that its columns stay dependent.

For latent functions of several classes the variances are added; what all classes share changes no prediction, and is
not in their means. The nodes of a single feature are m_ij plus the same offsets for every row, so that the squared
exponential kernel computes all of them from one matrix (`kernels.profiles`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Literal, Self, get_args

import numpy as np

from gpsift._utils.progress import track
from gpsift._utils.quadrature import gauss_hermite, gauss_hermite_product, normal_sobol
from gpsift._utils.threads import threaded_map
from gpsift.reference.base import Reference
from gpsift.reference.inputs import Points
from gpsift.relevance.conditionals import COVARIANCES, Conditionals, Covariance, fit_conditionals
from gpsift.relevance.feature_groups import Groups, Levels
from gpsift.relevance.measure import Measure, Relevance

Conditional = Literal["residuals", "normal"]
CONDITIONALS: tuple[str, ...] = get_args(Conditional)
N_NODES = {"residuals": 21, "normal": 11}
# This many nodes of a group are predicted at once.
NODE_BLOCK = 2**13
# A group's conditional is normal in several dimensions: a product rule of at most this many nodes, or this many Sobol
# points (a power of 2).
LARGEST_PRODUCT = 1500
SOBOL_POWER = 10
# Residuals of a group are those of at most this many rows, as many as there are Sobol points.
MOST_RESIDUAL_ROWS = 2**SOBOL_POWER


@dataclass(frozen=True)
class VAR(Measure):
    """The variance of the latent mean along the conditional distribution of a feature.

    Scores are in units of the target squared; compare their root with KL and with a slope. Averaged over the points
    they estimate the total effect of each feature, the variance that remains when all others are known;
    `Ranking.effect_shares` has their shares.

    Parameters
    ----------
    n_nodes : int, optional
        Values that a feature is set to: by default 21 residuals, or 11 nodes of a Gauss-Hermite rule.
    covariance : {"auto", "sample", "ledoit-wolf", "oas", "ridge"}
        How the covariance of the inputs is estimated. "auto" takes the sample covariance, and shrinks the correlation
        matrix (Ledoit-Wolf) when it is ill-conditioned or there are no more rows than features. "ridge" adds a diagonal
        until the condition number is 100, for reproducing the paper.
    conditional : {"residuals", "normal"}, optional
        The distribution of a feature around its mean given the others: that of the training data ("residuals" of its
        regression on the others, sorted and averaged in as many equal slices as there are nodes), or the normal
        distribution (the paper's choice). Residuals extrapolate little, which matters for bounded or skewed inputs. By
        default residuals, but normal for a model that has only moments of its training inputs; `Ranking.details` has
        the choice.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> ranking = gs.rank(gs.GP().fit(X, y), X, measure=gs.VAR())
    >>> ranking.names[ranking.order[0]], ranking.details["conditional"], ranking.details["covariance"]
    ('x1', 'residuals', 'sample')

    References
    ----------
    Paananen, Piironen, Andersen and Vehtari (2019), section 3.2.
    """

    n_nodes: int | None = None
    covariance: Covariance = "auto"
    conditional: Conditional | None = None

    def __post_init__(self) -> None:
        if self.n_nodes is not None and (not isinstance(self.n_nodes, Integral) or self.n_nodes < 2):
            raise ValueError(f"`n_nodes` must be a whole number of at least 2, got {self.n_nodes!r}.")
        if self.covariance not in COVARIANCES:
            raise ValueError(f"`covariance` must be one of {', '.join(COVARIANCES)}, got {self.covariance!r}.")
        if self.conditional not in (None, *CONDITIONALS):
            raise ValueError(f"`conditional` must be one of {', '.join(CONDITIONALS)}, got {self.conditional!r}.")

    def relevance(self, reference: Reference, points: Points) -> Relevance:
        return self.group_relevance(reference, points, tuple((j,) for j in range(points.inputs.n_features)))

    def group_relevance(self, reference: Reference, points: Points, groups: Groups) -> Relevance:
        training = points.inputs.training_sample
        conditional = self.conditional or ("normal" if training is None else "residuals")
        conditionals = fit_conditionals(points.inputs.moments, self.covariance)
        n_nodes = N_NODES[conditional] if self.n_nodes is None else int(self.n_nodes)
        nodes: Nodes
        if conditional == "normal":
            nodes = NormalNodes(conditionals, n_nodes)
        elif training is not None:
            nodes = ResidualNodes.of(conditionals, training, n_nodes)
        else:
            raise ValueError(
                f"{self.label} takes residuals of the training inputs, and this model has their moments only: it was "
                "made from rows elsewhere by a version that kept none of them. Fit it again, or use "
                'VAR(conditional="normal").'
            )
        blocks = reference.blocks(len(points))
        if len(blocks) == 1:
            values = _variances(reference, points, nodes, groups)
        else:
            of_block = partial(_variances, reference, nodes=nodes, groups=groups)
            values = np.concatenate(threaded_map(of_block, [points.take(block) for block in blocks]))
        details = {"conditional": conditional, **conditionals.details}
        return Relevance(values, f"in squared units of {reference.mean_of}", details=details)

    def category_relevance(self, reference: Reference, points: Points, levels: Levels) -> Relevance:
        moved = (points.with_values(X) for _, X, _ in levels.replacements(points.X))
        means = np.stack([reference.at(each).latent_mean for each in moved], axis=1)
        return Relevance(variance_of_means(means, levels.shares), f"in squared units of {reference.mean_of}")


def _variances(reference: Reference, points: Points, nodes: Nodes, groups: Groups) -> np.ndarray:
    """Return the variance of the latent mean at the points as each group moves, (n, number of groups)."""
    response = reference.at(points)
    base, sd = nodes.conditionals.mean(points.X), nodes.conditionals.sd
    values = np.zeros((len(points), len(groups)))
    for k, group in track(enumerate(groups), len(groups)):
        moving = tuple(j for j in group if sd[j] > 0)
        if len(moving) > 1:
            values[:, k] = _joint_variance(reference, points, nodes, moving)
        elif moving:
            (j,) = moving
            offsets, weights = nodes.of_feature(j)
            values[:, k] = variance_of_means(response.section(j, base[:, j], offsets), weights)
    return values


def _joint_variance(reference: Reference, points: Points, nodes: Nodes, group: tuple[int, ...]) -> np.ndarray:
    """Return the variance of the latent mean over the joint conditional of a group's columns, (n,)."""
    center = nodes.conditionals.mean_of_group(points.X, group)
    offsets, weights = nodes.of_group(group)
    values = np.empty(len(points))
    size = max(1, NODE_BLOCK // len(offsets))
    for start in range(0, len(points), size):
        rows = slice(start, start + size)
        moved = np.repeat(points.X[rows], len(offsets), axis=0)
        moved[:, list(group)] = (center[rows, None, :] + offsets).reshape(len(moved), -1)
        means = reference.at(points.with_values(moved)).latent_mean
        values[rows] = variance_of_means(means.reshape(-1, len(offsets), *means.shape[1:]), weights)
    return values


def variance_of_means(means: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the variance of means (n, q) over the nodes, or of means (n, q, C) summed over the classes, (n,)."""
    by_class = np.moveaxis(means, 2, 0) if means.ndim == 3 else means[None]
    return sum((weighted_variance(each, weights) for each in by_class), np.zeros(len(means)))


def weighted_variance(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the variance along the last axis, without the cancellation in E[f^2] - E[f]^2."""
    change = values - values[:, :1]  # exactly 0 where nothing varies
    return (change - (change @ weights)[:, None]) ** 2 @ weights


@dataclass(frozen=True, eq=False)
class Nodes(ABC):
    """Nodes: offsets from the conditional means, the same for every row, and their weights."""

    conditionals: Conditionals

    @abstractmethod
    def of_feature(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets of a feature and their weights, (q,) each."""

    @abstractmethod
    def of_group(self, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets of several features that move together, (q, k), and their weights, (q,)."""


@dataclass(frozen=True, eq=False)
class NormalNodes(Nodes):
    """Nodes of Gauss-Hermite quadrature under the normal conditional."""

    n_nodes: int

    def of_feature(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        nodes, weights = gauss_hermite(self.n_nodes)
        return self.conditionals.sd[j] * nodes, weights

    def of_group(self, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        if self.n_nodes ** len(group) <= LARGEST_PRODUCT:
            nodes, weights = gauss_hermite_product(len(group), self.n_nodes)
        else:
            nodes = normal_sobol(len(group), SOBOL_POWER)
            weights = np.full(len(nodes), 1.0 / len(nodes))
        return nodes @ self.conditionals.root(group).T, weights


@dataclass(frozen=True, eq=False)
class ResidualNodes(Nodes):
    """Nodes at quantiles of a feature's residuals, given the others, in the training rows."""

    X: np.ndarray  # training inputs, (n, p)
    quantiles: np.ndarray  # (q, p)
    weights: np.ndarray  # (q,)

    @classmethod
    def of(cls, conditionals: Conditionals, X: np.ndarray, n_nodes: int) -> Self:
        """Compute the residuals at the rows of X; there are no more nodes than rows."""
        return cls(conditionals, X, *slice_means(X - conditionals.mean(X), n_nodes))

    def of_feature(self, j: int) -> tuple[np.ndarray, np.ndarray]:
        return self.quantiles[:, j], self.weights

    def of_group(self, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        residuals = self.X[:, list(group)] - self.conditionals.mean_of_group(self.X, group)
        chosen = spread_rows(residuals / self.conditionals.sd[list(group)], MOST_RESIDUAL_ROWS)
        return residuals[chosen], np.full(len(chosen), 1.0 / len(chosen))


def slice_means(values: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of equal slices of each sorted column, (q, p), and the share of the rows in each slice, (q,).

    There are `most` slices, or one for each row if these are fewer. The means keep the mean of the column, and nearly
    all of its variance. Middles of slices, and nodes scaled to restore the variance, are no better.
    """
    n = len(values)
    edges = np.rint(np.linspace(0, n, min(most, n) + 1)).astype(int)
    sizes = np.diff(edges)
    return np.add.reduceat(np.sort(values, axis=0), edges[:-1], axis=0) / sizes[:, None], sizes / n


def spread_rows(values: np.ndarray, most: int) -> np.ndarray:
    """Choose rows that represent all: each of them, or `most` evenly spaced ones along the first principal axis."""
    n = len(values)
    if n <= most:
        return np.arange(n)
    axis = np.linalg.eigh(values.T @ values)[1][:, -1]
    return np.argsort(values @ axis, kind="stable")[(2 * np.arange(most) + 1) * n // (2 * most)]
