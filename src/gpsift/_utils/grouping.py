"""Features that belong together: reading the user's groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Integral
from typing import Any

import numpy as np

from gpsift._utils.words import listed


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
        return tuple(feature_names), tuple((j,) for j in range(len(feature_names)))
    if not isinstance(groups, Mapping):
        raise TypeError(
            f'`groups` must be a mapping such as {{"place": ["lat", "lon"]}}, from names to features, got '
            f"{type(groups).__name__}."
        )
    owner: dict[int, str] = {}
    places = {feature: j for j, feature in reversed(list(enumerate(feature_names)))}
    units: list[tuple[tuple[int, ...], str]] = []
    for name, members in groups.items():
        columns = _read_members(name, members, feature_names, places)
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


def number_of(feature: Any, names: Sequence[str]) -> int | None:
    """The number of a feature that is named, or numbered from 0; None where there is no such feature.

    >>> number_of("age", ["dose", "age"]), number_of(0, ["dose", "age"]), number_of(2, ["dose", "age"])
    (1, 0, None)
    """
    if feature in names:
        return list(names).index(feature)
    is_number = isinstance(feature, Integral) and not isinstance(feature, bool | np.bool_)
    return int(feature) if is_number and 0 <= feature < len(names) else None


def _read_members(name: Any, members: Any, feature_names: Sequence[str], places: Mapping[str, int]) -> tuple[int, ...]:
    if not isinstance(name, str):
        raise TypeError(f"Names of groups must be text, got {name!r}.")
    if isinstance(members, str) or not isinstance(members, Iterable):
        raise TypeError(f"Group {name!r} must list its features, such as [{members!r}], got {members!r} itself.")
    columns = sorted(_column(name, member, feature_names, places) for member in members)
    if not columns:
        raise ValueError(f"Group {name!r} is empty.")
    repeated = next((j for j, following in pairwise(columns) if j == following), None)
    if repeated is not None:
        raise ValueError(f"Group {name!r} lists feature {feature_names[repeated]!r} twice.")
    return tuple(columns)


def _column(name: str, member: Any, feature_names: Sequence[str], places: Mapping[str, int]) -> int:
    if isinstance(member, str):
        if member in places:
            return places[member]
    elif isinstance(member, int | np.integer) and not isinstance(member, bool):
        if 0 <= member < len(feature_names):
            return int(member)
    else:
        raise TypeError(f"Group {name!r} must list names or indices of features, got {member!r}.")
    raise ValueError(
        f"Group {name!r} lists {member!r}, but the {len(feature_names)} features are {listed(feature_names)}."
    )
