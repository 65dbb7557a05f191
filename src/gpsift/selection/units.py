"""What comes and goes as one: single features, and groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from gpsift.relevance.categories import read_categories
from gpsift.relevance.groups import read_groups


@dataclass(frozen=True)
class Units:
    """Names of the units, their columns, which of them are always in, and which are categories."""

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    forced: tuple[int, ...] = ()
    groups: Mapping[str, Sequence[Any]] | None = None
    categorical: tuple[int, ...] = ()

    @classmethod
    def read(cls, names: Sequence[str], groups: Any, force: Any, categorical: Any = None) -> Self:
        """Units as users ask for them: `groups` by name, the others by the names or numbers of features or groups."""
        unit_names, columns = read_groups(groups, names)
        wanted = [force] if isinstance(force, str) else list(force)
        forced = {_find(item, names, unit_names, columns): None for item in wanted}
        return cls(
            unit_names, columns, tuple(forced), groups, read_categories(categorical or (), unit_names, columns, names)
        )

    def __len__(self) -> int:
        return len(self.names)

    def columns_of(self, units: Sequence[int]) -> list[int]:
        """All columns of some units, in the order of the table."""
        return sorted(column for unit in units for column in self.columns[unit])

    def ordered(self, scores: Sequence[float]) -> list[int]:
        """Units by falling score, the forced ones first."""
        order = sorted(range(len(self)), key=lambda unit: -scores[unit])
        return [*self.forced, *(unit for unit in order if unit not in self.forced)]


def _find(item: Any, names: Sequence[str], unit_names: Sequence[str], columns: Sequence[Sequence[int]]) -> int:
    if item in unit_names:
        return unit_names.index(item)
    column = names.index(item) if item in names else item
    for unit, members in enumerate(columns):
        if column in members and not isinstance(column, bool):
            return unit
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    raise ValueError(f"`force` names {item!r}, which is no feature; the features are {listed}.")
