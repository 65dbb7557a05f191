"""Dataclasses that hold the content of ArviZ's InferenceData: groups of variables with named axes."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np


@dataclass(frozen=True, eq=False)
class Variable:
    """An array whose axes have names, or a tuple of labels."""

    dims: tuple[str, ...]
    values: np.ndarray | tuple[str, ...]
    attrs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_xarray(cls, variable: Any) -> Self:
        """Read an xarray Variable or DataArray."""
        values = np.asarray(variable.values)
        # Labels are strings in an array of objects, which cannot be stored.
        is_labels = values.dtype.hasobject and values.ndim == 1
        dims = tuple(map(str, variable.dims))
        return cls(dims, tuple(map(str, values)) if is_labels else values, dict(variable.attrs))

    def to_xarray(self) -> tuple[Any, ...]:
        """Return the arguments of an xarray Variable: names of axes, values and attributes."""
        labels = isinstance(self.values, tuple)
        return self.dims, np.array(self.values, dtype=object) if labels else self.values, self.attrs


@dataclass(frozen=True, eq=False)
class Group:
    """A data set: coordinates and variables by name."""

    coords: dict[str, Variable]
    variables: dict[str, Variable]
    attrs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_xarray(cls, dataset: Any) -> Self:
        """Read an xarray Dataset."""
        return cls(
            {str(name): Variable.from_xarray(each) for name, each in dataset.coords.items()},
            {str(name): Variable.from_xarray(each) for name, each in dataset.data_vars.items()},
            dict(dataset.attrs),
        )

    def to_xarray(self) -> Any:
        """Return this group as an xarray Dataset."""
        import xarray

        variables = {name: each.to_xarray() for name, each in self.variables.items()}
        coords = {name: each.to_xarray() for name, each in self.coords.items()}
        return xarray.Dataset(variables, coords, self.attrs)


@dataclass(frozen=True, eq=False)
class Trace:
    """The groups of an InferenceData, such as ``posterior`` and ``sample_stats``."""

    groups: dict[str, Group]
    attrs: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def from_arviz(cls, inference_data: Any) -> Self:
        """Read ArviZ's InferenceData."""
        groups = {name: Group.from_xarray(inference_data[name]) for name in inference_data.groups()}
        return cls(groups, dict(inference_data.attrs))

    def to_arviz(self) -> Any:
        """Return the draws as ArviZ's InferenceData, or None where ArviZ is not installed."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # ArviZ warns of its coming versions
                import arviz
        except ImportError:
            return None
        return arviz.InferenceData(attrs=self.attrs, **{name: each.to_xarray() for name, each in self.groups.items()})
