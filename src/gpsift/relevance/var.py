r"""The VAR measure: how much the latent mean varies along a feature, given the others (the paper's equation 5).

.. math::
    \mathrm{VAR}_{ij} = \mathrm{Var}_{t \sim N(m_{ij}, s_j^2)} \, \mathrm{mean}(x_i \text{ with } x_{ij} := t)

by Gauss-Hermite quadrature. A model with a latent function for each of several classes has the sum of their variances;
what all classes share changes no prediction, and is not in their means. The nodes are m_ij + sqrt(2) s_j t_q with the
same offsets for every row, which lets the squared exponential kernel take all of them from one matrix
(`kernels.profiles`).
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from gpsift.reference import Reference
from gpsift.relevance.conditionals import COVARIANCES, Covariance, fit_conditionals
from gpsift.relevance.measure import Measure, Relevance


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

    def relevance(self, reference: Reference, X: np.ndarray, rows: np.ndarray | None) -> Relevance:
        response = reference.at(X, rows)
        conditionals = fit_conditionals(X if reference.X_train is None else reference.X_train, self.covariance)
        base = conditionals.mean(X if rows is None else X[rows])
        nodes, weights = gauss_hermite(self.n_nodes)
        values = np.zeros(base.shape)
        for j, sd in enumerate(conditionals.sd):
            if sd > 0:
                section = response.section(j, base[:, j], sd * nodes)
                # Several latent functions, one for each class: (n, q, C). Their variances add up.
                by_class = np.moveaxis(section, 2, 0) if section.ndim == 3 else section[None]
                values[:, j] = sum(weighted_variance(means, weights) for means in by_class)
        return Relevance(values, f"in squared units of {reference.mean_of}", details=conditionals.details)


def gauss_hermite(n_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the expectation under a standard normal distribution."""
    nodes, weights = np.polynomial.hermite.hermgauss(n_nodes)
    return np.sqrt(2.0) * nodes, weights / np.sqrt(np.pi)


def weighted_variance(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Variance along the last axis, around the mean: E[f^2] - E[f]^2 would cancel where f is nearly constant."""
    deviation = values - (values @ weights)[:, None]
    return deviation**2 @ weights
