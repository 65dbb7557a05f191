r"""Features that are scored together: moving along all columns of a group at once.

A group moves along the columns of a root L of its covariance, Cov(x_G) = L L^T. With J_G the derivatives of the
predictive parameters along its columns and I their Fisher information, the squared rates along them add up to

.. math:: \sum_c (J_G L_c)^T I \, J_G L_c = \mathrm{trace}(\mathrm{Cov}(x_G) \, J_G^T I \, J_G) ,

which for one column is the squared rate per standard deviation, and does not depend on the basis of the group: any
invertible linear mixture of its columns has the same score.
"""

from __future__ import annotations

import numpy as np

from gpsift.reference.input_moments import standard_units
from gpsift.reference.inputs import Points
from gpsift.relevance.measure import Groups, Units, feature_scale


def refuse_raw_units(measure: str, units: Units) -> None:
    """Columns of a group need a common unit, which is their standard deviation."""
    if units == "raw":
        raise ValueError(
            f'{measure} has no score of a group, whose columns share no raw unit. Use `units="sd"`, the default.'
        )


def group_directions(points: Points, groups: Groups) -> np.ndarray:
    """The directions in which each group moves, as columns: a root of its covariance, (p, number of columns).

    A group has as many of them as columns, one after another in the order of the groups; see `sum_over_groups`.
    """
    sd = feature_scale(points, "sd")
    directions = np.zeros((sd.size, sum(map(len, groups))))
    start = 0
    for group in groups:
        variances, axes = _principal_axes(points, group)
        directions[list(group), start : start + len(group)] = sd[list(group), None] * axes * np.sqrt(variances)
        start += len(group)
    return directions


def sum_over_groups(values: np.ndarray, groups: Groups) -> np.ndarray:
    """Sums over the directions of each group, (n, number of groups)."""
    starts = np.cumsum([0, *(len(group) for group in groups[:-1])])
    return np.add.reduceat(values, starts, axis=1)


def group_coordinates(points: Points, groups: Groups) -> np.ndarray:
    """One coordinate for each group at the points: the column itself, or the first principal one of several."""
    X = points.X
    if all(len(group) == 1 for group in groups):
        return X
    sd, center = feature_scale(points, "sd"), points.inputs.center
    coordinates = np.empty((len(X), len(groups)))
    for k, group in enumerate(groups):
        columns = list(group)
        if len(columns) == 1:
            coordinates[:, k] = X[:, columns[0]]
            continue
        axis = _principal_axes(points, group)[1][:, -1]
        axis = axis * np.sign(axis[np.argmax(np.abs(axis))])  # an axis has no sign; this one is as good as any
        coordinates[:, k] = standard_units(X[:, columns], center[columns], sd[columns]) @ axis
    return coordinates


def _principal_axes(points: Points, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors of the correlation matrix; a constant column correlates with nothing."""
    variances, axes = np.linalg.eigh(points.inputs.correlation_of(group))
    return np.maximum(variances, 0.0), axes
