"""Values and objects as JSON.

None, truth values, text, whole and finite numbers stand for themselves, and lists for lists. Everything else is a JSON
object with one key, which says what it is::

    {"tuple": [...]}   {"mapping": [[key, value], ...]}   {"float": "nan"}   {"numpy": ["float32", 0.5]}
    {"array": "arrays/3.npy"}   {"object": 3}

Objects lie in a list of their own, each after those that it refers to; one that is met twice is written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gpsift._utils.arrays import is_foreign_array, to_numpy
from gpsift.io.archive import is_storable
from gpsift.io.registry import name_of
from gpsift.io.savable import kept_fields

WHOLE = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
# Numbers and text of NumPy, in files by the names that it has for them: "bool", "int8", ..., "float64", "str".
SCALARS: Mapping[str, type[np.generic]] = {
    np.dtype(scalar).name: scalar for scalar in (np.bool_, *WHOLE, np.float32, np.float64, np.str_)
}


class Encoder:
    """Collects what a value consists of: class and fields of each object, and arrays by the names of their members."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        # By address, with the thing itself: while it is held here, no other can get its address.
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._by_type: dict[type, Callable[[Any, str], Any]] = {
            **dict.fromkeys((type(None), bool, int, str), lambda value, _: value),
            float: lambda value, _: value if math.isfinite(value) else {"float": repr(value)},
            list: self._items,
            tuple: lambda value, where: {"tuple": self._items(value, where)},
            dict: self._mapping,
            np.ndarray: self._array,
            **{scalar: self._scalar(name) for name, scalar in SCALARS.items()},
        }

    def encode(self, value: Any, where: str) -> Any:
        """The value as JSON; `where` is its place, for messages."""
        kind = type(value)  # not isinstance: a subclass would come back as its base
        if kind in self._by_type:
            return self._by_type[kind](value, where)
        if name_of(kind) is not None:
            return self._object(value, where)
        if is_foreign_array(value):  # of a model on a device; it comes back in NumPy
            return self._array(to_numpy(value), where)
        raise TypeError(
            f"{where} is of type {kind.__module__}.{kind.__qualname__}, which cannot be saved. "
            "Models and answers with gpsift's own kernels and likelihoods can, and in them numbers, text, lists, "
            "tuples, dicts and NumPy arrays."
        )

    def _items(self, values: Any, where: str) -> list[Any]:
        return [self.encode(value, f"{where}[{i}]") for i, value in enumerate(values)]

    def _mapping(self, mapping: dict[Any, Any], where: str) -> dict[str, Any]:
        pairs = [[self.encode(key, where), self.encode(value, f"{where}[{key!r}]")] for key, value in mapping.items()]
        return {"mapping": pairs}

    def _scalar(self, name: str) -> Callable[[Any, str], Any]:
        return lambda value, where: {"numpy": [name, self.encode(value.item(), where)]}

    def _array(self, array: np.ndarray, where: str) -> dict[str, Any]:
        if not is_storable(array.dtype):
            raise TypeError(f"{where} is an array of {array.dtype}; arrays of numbers, truth values and text are kept.")
        if id(array) not in self._known:
            name = f"arrays/{len(self.arrays)}.npy"
            self.arrays[name] = array
            self._known[id(array)] = array, {"array": name}
        return self._known[id(array)][1]

    def _object(self, thing: Any, where: str) -> dict[str, Any]:
        if id(thing) not in self._known:
            name = name_of(type(thing))
            values = {f.name: self.encode(getattr(thing, f.name), f"{where}.{f.name}") for f in kept_fields(thing)}
            self.objects.append({"class": name, "fields": values})
            self._known[id(thing)] = thing, {"object": len(self.objects) - 1}
        return self._known[id(thing)][1]
