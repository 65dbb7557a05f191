r"""The RATE measure is the change of all other linear effects if the effect of a feature is known.

The effect-size analogue of a function f at the points is its least-squares coefficients, beta = X^+ f with centred and
standardised columns; given the posterior of f they are normal, with mean mu and covariance Omega = Lambda^-1. The
centrality of a feature is the change of the other coefficients' posterior if its own is zero,

.. math:: \mathrm{KLD}_j = \mathrm{KL}(p(\beta_{-j}) \,\|\, p(\beta_{-j} \mid \beta_j = 0))
          = \tfrac12 [t_j - \log(1 + t_j) + z_j^2 \, t_j], \qquad
          t_j = \lambda_{jj} \, \omega_{jj} - 1, \quad z_j = \mu_j / \sqrt{\omega_{jj}} ,

and RATE is its share of the total. For a group G of features, t is a matrix:

.. math:: \mathrm{KLD}_G = \tfrac12 [\mathrm{tr}(T) - \log\det(I + T) + z^T T z], \qquad
          T = C^T \Lambda_{GG} C - I, \quad z = C^{-1} \mu_G, \quad \Omega_{GG} = C C^T .

Omega is singular where columns are linearly dependent, or where the data determine a coefficient exactly. The formulas
then apply within its range: "beta_j = 0" means the projection of e_j onto the range, and "the others" are all
directions orthogonal to it. With independent columns this is the formula above. Two equal columns each have the
score of one of them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse.csgraph import connected_components

from gpsift._utils.linalg import solve_lower
from gpsift._utils.validation import constant_columns
from gpsift.likelihoods.distributions import log1p_excess
from gpsift.reference.base import Reference
from gpsift.reference.inputs import Points
from gpsift.relevance.feature_groups import Groups, feature_scale
from gpsift.relevance.measure import Measure, Relevance

# Singular values of the standardised columns below this share of the largest are linear dependence: a correlation
# matrix with a condition number of 1e12 has no usable inverse.
DEPENDENT = 1e-6
# Columns with smaller coefficients in all linear dependences are not named as dependent.
NAMEABLE = 1e-4
# Directions in which the variance of f is below this share of the largest count as known: rounding alone leaves 1e-8 of
# the variance where the signal variance is a million times the noise.
KNOWN = 1e-8
# Correlations between coefficients below this are rounding.
UNCORRELATED = float(np.sqrt(np.finfo(float).eps))
LISTED = 8


@dataclass(frozen=True)
class RATE(Measure):
    """The relative centrality of the features' linear effects (RelATive cEntrality).

    The function is projected onto the columns of X at the points, which gives one coefficient for each feature with a
    joint posterior. A feature is central if fixing its coefficient at zero changes the posterior of all others.
    Scores are shares that add up to 1; under equal relevance each would be 1 / p.

    RATE needs a model with a joint posterior at several points. It scores the linear part of effects only. Coefficients
    of correlated columns are correlated, so these score high together, the more the closer they are to each other:
    look at the correlations first, and score such columns as one with `groups`. Columns that are exact combinations
    of others (all of them, with no more points than features) are scored within the range of the covariance, whose
    pseudo-inverse takes the place of the inverse; copies of a column score alike. They are named in `details` and in a
    warning. A column that does not vary scores 0.

    Examples
    --------
    >>> import numpy as np, gpsift as gs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> ranking = gs.rank(gs.GP().fit(X, y), X, measure=gs.RATE())
    >>> ranking.names[ranking.order[0]], round(float(ranking.scores.sum()), 6)
    ('x1', 1.0)

    References
    ----------
    Crawford, Flaxman, Runcie and West (2019), "Variable prioritization in nonlinear black box methods: a genetic
    association case study", Annals of Applied Statistics 13(2), 958-989.
    """

    is_joint: ClassVar[bool] = True

    @property
    def is_of_function(self) -> bool:
        return False

    def relevance(self, reference: Reference, points: Points) -> Relevance:
        return self.group_relevance(reference, points, tuple((j,) for j in range(points.inputs.n_features)))

    def group_relevance(self, reference: Reference, points: Points, groups: Groups) -> Relevance:
        if len(points) < 2:
            raise ValueError("RATE fits a line through the function at the points; it needs at least two of them.")
        varies = ~constant_columns(points.X) & (feature_scale(points, "sd") > 0)
        U, pseudo_inverse, tied = reduce_columns(points.X, varies)
        kld = centrality(*effect_sizes(U, pseudo_inverse, *reference.joint(points)), groups)
        total, rank = kld.sum(), U.shape[1]
        dependent = {block: tuple(points.inputs.names[j] for j in block) for block in tied}
        apart = [names for block, names in dependent.items() if not any(set(block) <= set(group) for group in groups)]
        notices = []
        if apart:
            notices.append(_dependence_notice(apart, rank, int(varies.sum()), len(points)))
        if not total > 0:
            notices.append("No coefficient tells RATE anything about another one: all scores are 0.")
        return Relevance(
            kld / total if total > 0 else kld,
            "share of the total",
            details={"rank": rank, "dependent": tuple(dependent.values())},
            notices=tuple(notices),
        )


def reduce_columns(X: np.ndarray, varies: np.ndarray) -> tuple[np.ndarray, np.ndarray, Groups]:
    """Decompose the centred and standardised columns, Z = U S V^T, in their range of dimension r.

    Return U (n, r), V S^-1 (p, r), with rows of zeros for columns that do not vary, and sets of linearly dependent
    columns.
    """
    Z = X[:, varies] - X[:, varies].mean(axis=0)
    # In units of their standard deviations: minimum-norm coefficients of dependent columns depend on the units.
    U, s, Vt = np.linalg.svd(Z / Z.std(axis=0), full_matrices=False)
    rank = int(np.sum(s > DEPENDENT * s[0])) if s.size else 0
    V = Vt[:rank].T
    # Tied columns are the blocks of the projection I - V V^T onto the null space.
    _, labels = connected_components(np.abs(np.eye(len(V)) - V @ V.T) > NAMEABLE, directed=False)
    blocks = [tuple(np.flatnonzero(varies)[labels == label].tolist()) for label in np.unique(labels)]
    pseudo_inverse = np.zeros((X.shape[1], rank))
    pseudo_inverse[varies] = V / s[:rank]
    return U[:, :rank], pseudo_inverse, tuple(block for block in blocks if len(block) > 1)


def effect_sizes(
    U: np.ndarray, pseudo_inverse: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the posterior mean (p,) of beta = X^+ f, and a root (p, q) of its covariance of full column rank q."""
    variances, directions = np.linalg.eigh(U.T @ covariance @ U)
    unknown = variances > KNOWN * max(variances.max(initial=0.0), 0.0)
    root = directions[:, unknown] * np.sqrt(variances[unknown])
    return pseudo_inverse @ (U.T @ mean), pseudo_inverse @ root


def centrality(mean: np.ndarray, root: np.ndarray, groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the KLD of each group of coefficients, beta ~ N(mean, root root^T)."""
    basis, R = np.linalg.qr(root)
    kld = np.zeros(len(groups))
    for number, group in enumerate(map(list, groups)):
        # beta_G = mean_G + basis_G g, with g ~ N(0, R R^T) of full rank.
        left, cosines, right = np.linalg.svd(basis[group], full_matrices=False)
        free = cosines > DEPENDENT
        if free.sum() in (0, R.shape[0]):
            continue  # a group without variance changes no others, and one with all variance has no others
        B = right[free].T  # the directions of g that beta_G depends on
        # Q C^T = R^T B has Omega = C C^T, and R^-1 B C = Q + E with E orthogonal to Q, so that T = E^T E,
        # without the cancellation in lambda omega - 1.
        Q, C_T = np.linalg.qr(R.T @ B)
        E = solve_lower(R.T, B, transpose=True) @ C_T.T - Q
        z = solve_lower(C_T.T, (left.T @ mean[group])[free] / cosines[free])
        _, roots, axes = np.linalg.svd(E, full_matrices=False)
        t = np.where(roots > UNCORRELATED, roots, 0.0) ** 2
        kld[number] = 0.5 * (np.sum(log1p_excess(t)) + np.sum(t * (axes @ z) ** 2))
    return kld


def _dependence_notice(blocks: Sequence[Sequence[str]], rank: int, n_varying: int, n_points: int) -> str:
    listed = "; ".join(
        ", ".join(block[:LISTED]) + (f" and {len(block) - LISTED} more" if len(block) > LISTED else "")
        for block in blocks[:LISTED]
    )
    found = (
        f"Columns are linear combinations of one another ({n_varying} that vary, of rank {rank} at {n_points} points): "
        f"{listed}. RATE scores each by what the points can tell about it."
    )
    if n_points <= n_varying:
        return f"{found} Take more points than there are features."
    return f"{found} Copies score alike, and count twice in the total. Score them together with `groups`, or drop some."
