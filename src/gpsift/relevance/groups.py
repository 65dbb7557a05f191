r"""Features that are scored together: reading the user's groups, and moving along all columns of one at once.

A group moves along the columns of a root L of its covariance, Cov(x_G) = L L^T. With J_G the derivatives of the
predictive parameters along its columns and I their Fisher information, the squared rates along them add up to

.. math:: \sum_c (J_G L_c)^T I \, J_G L_c = \mathrm{trace}(\mathrm{Cov}(x_G) \, J_G^T I \, J_G) ,

which for one column is the squared rate per standard deviation, and does not depend on the basis of the group: any
invertible linear mixture of its columns has the same score.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from gpsift.input_moments import standard_units
from gpsift.inputs import Points
from gpsift.relevance.measure import Groups, Units, feature_scale
from gpsift.words import listed


def read_groups(
    groups: Mapping[str, Sequence[str | int]] | None, feature_names: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]:
    """The units that are scored, by name and by their columns: the groups, and every other feature on its own.

    Parameters
    ----------
    groups : mapping of str to sequence of names or indices, or None
        Features that belong together. No feature may be in two of them.
    feature_names : sequence of str
        All features, in order.

    Returns
    -------
    names : tuple of str
        A unit stands where the first of its columns does.
    columns : tuple of tuples of int
        The column indices of each unit, ascending.

    Examples
    --------
    >>> read_groups({"place": ["lat", "lon"]}, ["lat", "age", "lon"])
    (('place', 'age'), ((0, 2), (1,)))
    """
    if groups is None:
        groups = {}
    if not isinstance(groups, Mapping):
        raise TypeError(
            f'`groups` must be a mapping such as {{"place": ["lat", "lon"]}}, from names to features, got '
            f"{type(groups).__name__}."
        )
    owner: dict[int, str] = {}
    units: list[tuple[tuple[int, ...], str]] = []
    for name, members in groups.items():
        columns = _read_members(name, members, feature_names)
        for j in columns:
            if j in owner:
                raise ValueError(f"Feature {feature_names[j]!r} is in two groups, {owner[j]!r} and {name!r}.")
            owner[j] = name
        if name in feature_names and name not in [feature_names[j] for j in columns]:
            raise ValueError(f"Group {name!r} has the name of a feature that is not in it. Give it another name.")
        units.append((columns, name))
    units += [((j,), name) for j, name in enumerate(feature_names) if j not in owner]
    units.sort()
    return tuple(name for _, name in units), tuple(columns for columns, _ in units)


def _read_members(name: Any, members: Any, feature_names: Sequence[str]) -> tuple[int, ...]:
    if not isinstance(name, str):
        raise TypeError(f"Names of groups must be text, got {name!r}.")
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise TypeError(f"Group {name!r} must list its features, such as [{members!r}], got {members!r} itself.")
    columns = sorted(_column(name, member, feature_names) for member in members)
    if not columns:
        raise ValueError(f"Group {name!r} is empty.")
    repeated = next((j for j, following in pairwise(columns) if j == following), None)
    if repeated is not None:
        raise ValueError(f"Group {name!r} lists feature {feature_names[repeated]!r} twice.")
    return tuple(columns)


def _column(name: str, member: Any, feature_names: Sequence[str]) -> int:
    if isinstance(member, str):
        if member in feature_names:
            return list(feature_names).index(member)
    elif isinstance(member, int | np.integer) and not isinstance(member, bool):
        if 0 <= member < len(feature_names):
            return int(member)
    else:
        raise TypeError(f"Group {name!r} must list names or indices of features, got {member!r}.")
    raise ValueError(
        f"Group {name!r} lists {member!r}, but the {len(feature_names)} features are {listed(feature_names)}."
    )


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
