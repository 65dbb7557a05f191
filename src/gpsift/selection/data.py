"""Read the data of a search: a table with its target, and the units that submodels are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self, TypedDict

import numpy as np

from gpsift._utils.parallel import fingerprint
from gpsift._utils.text import join_names
from gpsift._utils.validation import CheckedTable, default_names, feature_index, read_features, read_groups, read_target
from gpsift.relevance.feature_groups import read_categories


def is_whole(number: Any, least: float = -np.inf) -> bool:
    """Whether a user's value is a whole number of at least `least`."""
    return isinstance(number, Integral) and not isinstance(number, bool) and int(number) >= least


class ObservationOptions(TypedDict, total=False):
    """Further known numbers of each observation: arrays (n,) or numbers, under the names that `GP.fit` has."""

    noise_var: Any
    exposure: Any
    trials: Any


@dataclass(frozen=True, eq=False)
class Data:
    """A table: inputs (n, p), target (n,), names of the columns, and further known numbers of each observation."""

    X: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    extras: Mapping[str, np.ndarray]

    @classmethod
    def read(cls, X: Any, y: Any, observed: Mapping[str, Any], *, where: str = "") -> Self:
        """Read a user's data; `where`, such as "_test", follows the names of arguments in messages."""
        known = tuple(ObservationOptions.__annotations__)
        unknown = [name for name in observed if name not in known]
        if unknown:
            raise TypeError(f"There is no option `{unknown[0]}`; observations may bring along {', '.join(known)}.")
        values, names = read_features(X, name=f"X{where}")
        n = values.shape[0]
        extras = {
            name: read_target(np.full(n, value) if np.ndim(value) == 0 else value, n, name=f"{name}{where}")
            for name in known
            if (value := observed.get(name)) is not None
        }
        labels = default_names(values.shape[1]) if names is None else names
        return cls(values, read_target(y, n, name=f"y{where}"), labels, extras)

    def take(self, rows: np.ndarray) -> Data:
        """Return some of the rows."""
        extras = {name: values[rows] for name, values in self.extras.items()}
        return Data(self.X[rows], self.y[rows], self.names, extras)

    def table(self, columns: Sequence[int]) -> CheckedTable:
        """Return some of the columns, with their names."""
        chosen = list(columns)
        return CheckedTable(np.ascontiguousarray(self.X[:, chosen]), tuple(self.names[j] for j in chosen))

    @property
    def prediction_options(self) -> Mapping[str, np.ndarray]:
        """The extras without the noise, which is unknown for new observations: arguments of `predict`."""
        return {name: values for name, values in self.extras.items() if name != "noise_var"}

    @property
    def size(self) -> np.ndarray:
        """The exposure or the number of trials of each observation, (n,); 1 where it has neither."""
        return next(iter(self.prediction_options.values()), np.ones(self.y.size))

    @property
    def fingerprint(self) -> str:
        """A digest of the data, for a checkpoint."""
        return fingerprint(self.X, self.y, self.names, *sorted(self.extras), *self.extras.values())


@dataclass(frozen=True)
class Features:
    """A choice of how features are treated: groups, categories, and features that are in every submodel.

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
        """Return the choice for a table in which each of the groups codes one category."""
        return cls(groups=groups, categorical=list(groups))

    def units(self, names: Sequence[str]) -> Units:
        """Make the units of a table with these columns."""
        unit_names, columns = read_groups(self.groups, names)
        forced: list[int] = []
        for item in [self.force] if isinstance(self.force, str) else self.force:
            column = feature_index(item, names)
            holding = [unit for unit, members in enumerate(columns) if column in members]
            if item in unit_names:
                holding = [unit_names.index(item)]
            if not holding:
                raise ValueError(f"`force` names {item!r}, which is no feature; the features are {join_names(names)}.")
            forced += [unit for unit in holding if unit not in forced]
        categories = read_categories(self.categorical or (), unit_names, columns, names)
        return Units(unit_names, columns, tuple(forced), self.groups, categories)


@dataclass(frozen=True)
class Units:
    """Units: features, or groups of features. `forced` and `categorical` are indices of units."""

    names: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    forced: tuple[int, ...] = ()
    groups: Mapping[str, Sequence[Any]] | None = None
    categorical: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def all_columns(self) -> list[int]:
        """Columns of all units, in the order of the table."""
        return self.columns_of(range(len(self)))

    @property
    def forced_names(self) -> list[str]:
        """Names of the units that are in every submodel."""
        return [self.names[unit] for unit in self.forced]

    @property
    def identity(self) -> str:
        """The units as text, for a checkpoint."""
        return f"{self.columns}, forced {self.forced}, categories {self.categorical}"

    def columns_of(self, units: Sequence[int]) -> list[int]:
        """Return columns of some units, in the order of the table."""
        return sorted(column for unit in units for column in self.columns[unit])

    def put_forced_first(self, order: Iterable[int]) -> list[int]:
        """Move the forced units of an order to its front."""
        return [*self.forced, *(int(unit) for unit in order if unit not in self.forced)]

    def active(self, columns: Iterable[int]) -> list[int]:
        """Return indices of the units that have one of the active columns, or are forced."""
        wanted = set(columns)
        return [unit for unit, own in enumerate(self.columns) if unit in self.forced or wanted.intersection(own)]

    def subset(self, kept: Sequence[int]) -> Units:
        """Return some of the units, none forced, for a table of their columns only."""
        place = {column: number for number, column in enumerate(self.columns_of(kept))}
        members = tuple(tuple(place[column] for column in self.columns[unit]) for unit in kept)
        names = tuple(self.names[unit] for unit in kept)
        groups = None
        if self.groups is not None:
            groups = {name: list(where) for name, where in zip(names, members, strict=True) if name in self.groups}
        categorical = tuple(number for number, unit in enumerate(kept) if unit in self.categorical)
        return Units(names, members, groups=groups, categorical=categorical)
