"""What comes and goes as one: single features, and groups of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from gpsift._utils.grouping import read_groups
from gpsift._utils.words import listed
from gpsift.relevance.feature_groups import read_categories


@dataclass(frozen=True)
class Features:
    """How features are taken: which of them come together, which are levels, which are always in.

    Parameters
    ----------
    groups : mapping of str to names or indices, optional
        Features that come and go together, as in `rank`.
    categorical : names or indices, optional
        Features whose values are levels, and groups of columns that code one category, as in `rank`.
    force : names or indices
        Features, or groups, that are in every submodel.

    Examples
    --------
    >>> import gpsift as gs
    >>> place = gs.Features(groups={"place": ["lat", "lon"]}, force="place")
    """

    groups: Mapping[str, Sequence[str | int]] | None = None
    categorical: Iterable[str | int] | None = None
    force: Iterable[str | int] | str = ()

    @classmethod
    def with_indicators(cls, groups: Mapping[str, Sequence[str]]) -> Self:
        """Those of a table in which each of the groups codes one category."""
        return cls(groups=groups, categorical=list(groups))

    def units(self, names: Sequence[str]) -> Units:
        """The units of a table with these columns."""
        unit_names, columns = read_groups(self.groups, names)
        wanted = [self.force] if isinstance(self.force, str) else list(self.force)
        forced = {_find(item, names, unit_names, columns): None for item in wanted}
        categories = read_categories(self.categorical or (), unit_names, columns, names)
        return Units(unit_names, columns, tuple(forced), self.groups, categories)


@dataclass(frozen=True)
class Units:
    """Names of the units, their columns, which of them are always in, and which are categories."""

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    forced: tuple[int, ...] = ()
    groups: Mapping[str, Sequence[Any]] | None = None
    categorical: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def all_columns(self) -> list[int]:
        """The columns of all units, in the order of the table."""
        return self.columns_of(range(len(self)))

    @property
    def forced_names(self) -> list[str]:
        """Of the units that are always in."""
        return [self.names[unit] for unit in self.forced]

    @property
    def identity(self) -> str:
        """What tells them apart from others, for a checkpoint."""
        return f"{self.columns}, forced {self.forced}, categories {self.categorical}"

    def columns_of(self, units: Sequence[int]) -> list[int]:
        """All columns of some units, in the order of the table."""
        return sorted(column for unit in units for column in self.columns[unit])

    def forced_first(self, order: Iterable[int]) -> list[int]:
        """Units in an order, but for the forced ones, which come first."""
        return [*self.forced, *(int(unit) for unit in order if unit not in self.forced)]

    def with_some_of(self, columns: Iterable[int]) -> list[int]:
        """The units that have one of these columns, or are forced."""
        wanted = set(columns)
        return [unit for unit, own in enumerate(self.columns) if unit in self.forced or wanted.intersection(own)]

    def within(self, kept: Sequence[int]) -> Units:
        """Some of the units, none forced, as they stand in a table of their columns only."""
        place = {column: number for number, column in enumerate(self.columns_of(kept))}
        members = tuple(tuple(place[column] for column in self.columns[unit]) for unit in kept)
        names = tuple(self.names[unit] for unit in kept)
        groups = None
        if self.groups is not None:
            groups = {name: list(where) for name, where in zip(names, members, strict=True) if name in self.groups}
        categorical = tuple(number for number, unit in enumerate(kept) if unit in self.categorical)
        return Units(names, members, groups=groups, categorical=categorical)


def _find(item: Any, names: Sequence[str], unit_names: Sequence[str], columns: Sequence[Sequence[int]]) -> int:
    if item in unit_names:
        return unit_names.index(item)
    column = names.index(item) if item in names else item
    for unit, members in enumerate(columns):
        if column in members and not isinstance(column, bool):
            return unit
    raise ValueError(f"`force` names {item!r}, which is no feature; the features are {listed(names)}.")
