"""Convert values and objects to JSON (`Encoder`) and back (`Decoder`).

None, truth values, text and finite numbers are JSON already, and lists become lists. Every other value becomes a JSON
object with one key, its tag::

    {"tuple": [...]}   {"mapping": [[key, value], ...]}   {"float": "nan"}   {"numpy": ["float32", 0.5]}
    {"array": "arrays/3.npy"}   {"object": 3}

Objects are in a list of their own, each after those that it refers to, and each once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from functools import cache
from typing import Any

import numpy as np
from array_api_compat import is_torch_array

from gpsift._utils.arrays import to_numpy
from gpsift._utils.text import join_names
from gpsift.io.archive import CorruptFile, is_storable
from gpsift.io.serializable import (
    ANY,
    CLASSES,
    REMOVED_CLASSES,
    REMOVED_FIELDS,
    import_class,
    stored_fields,
    stored_name,
)

WHOLE = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
# Types of NumPy's numbers and text by their names in files, which are NumPy's: "bool", "int8", ..., "float64", "str".
SCALARS: Mapping[str, type[np.generic]] = {
    np.dtype(scalar).name: scalar for scalar in (np.bool_, *WHOLE, np.float32, np.float64, np.str_)
}


class Encoder:
    """Collects, in `objects`, class and fields of each object and, in `arrays`, arrays by their names in the file."""

    def __init__(self) -> None:
        self.objects: list[dict[str, Any]] = []
        self.arrays: dict[str, np.ndarray] = {}
        # Objects by address. Each is kept with its address, so that no other object can get that address.
        self._known: dict[int, tuple[Any, dict[str, Any]]] = {}

    def encode(self, value: Any, where: str) -> Any:
        """Return the value as JSON; `where` names the value in messages."""
        kind = type(value)  # not isinstance, because a subclass would be loaded as its base class
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind in (list, tuple):
            items = [self.encode(each, f"{where}[{i}]") for i, each in enumerate(value)]
            return items if kind is list else {"tuple": items}
        if kind is dict:
            pairs = [[self.encode(key, where), self.encode(each, f"{where}[{key!r}]")] for key, each in value.items()]
            return {"mapping": pairs}
        if kind in SCALARS.values():
            return {"numpy": [np.dtype(kind).name, self.encode(value.item(), where)]}
        if kind is np.ndarray:
            return self._encode_array(value, where)
        if stored_name(kind) is not None:
            return self._encode_object(value, where)
        if is_torch_array(value):  # which is loaded as a NumPy array
            return self._encode_array(to_numpy(value), where)
        raise TypeError(
            f"{where} is of type {kind.__module__}.{kind.__qualname__}, which cannot be saved. "
            "Models and answers with gpsift's own kernels and likelihoods can, and in them numbers, text, lists, "
            "tuples, dicts and NumPy arrays."
        )

    def _encode_array(self, array: np.ndarray, where: str) -> dict[str, Any]:
        if not is_storable(array.dtype):
            raise TypeError(f"{where} is an array of {array.dtype}; arrays of numbers, truth values and text are kept.")
        if id(array) not in self._known:
            name = f"arrays/{len(self.arrays)}.npy"
            self.arrays[name] = array
            self._known[id(array)] = array, {"array": name}
        return self._known[id(array)][1]

    def _encode_object(self, thing: Any, where: str) -> dict[str, Any]:
        if id(thing) not in self._known:
            values = {f.name: self.encode(getattr(thing, f.name), f"{where}.{f.name}") for f in stored_fields(thing)}
            self.objects.append({"class": stored_name(type(thing)), "fields": values})
            self._known[id(thing)] = thing, {"object": len(self.objects) - 1}
        return self._known[id(thing)][1]


NOT_FINITE: Mapping[str, float] = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
TAGS = frozenset({"tuple", "mapping", "float", "numpy", "array", "object"})
# The deepest nesting of values. Python's own limit does not help, because some libraries raise it.
DEEPEST = 50
# The Python type of NumPy's numbers and text, by the `kind` of their dtype.
PLAIN: Mapping[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str}


class Decoder:
    """Makes objects of storable classes, one after the other; `array` returns an array by its name in the file."""

    def __init__(self, array: Callable[[str], np.ndarray]):
        self._array = cache(array)  # so that a name that occurs twice gives one array
        self._objects: list[Any] = []
        self._depth = 0

    def add(self, record: Any) -> Any:
        """Make the next object from its class and fields."""
        number = len(self._objects)
        if not isinstance(record, dict) or record.keys() != {"class", "fields"}:
            raise CorruptFile(f"object {number} has no class and fields, but is {_shorten(record)}")
        name, coded = str(record["class"]), _check_type(record["fields"], dict)
        if name in REMOVED_CLASSES:
            self._objects.append(None)
            return None
        if name not in CLASSES:
            raise CorruptFile(
                f"object {number} is of the class {name!r}, which this gpsift does not know (a newer one may)"
            )
        cls = import_class(name)
        known, coded = stored_fields(cls), self._drop_removed(name, coded)
        unknown = coded.keys() - {f.name for f in known}
        lacking = {f.name for f in known if f.default is MISSING and f.default_factory is MISSING} - coded.keys()
        if unknown:
            raise CorruptFile(
                f"object {number}, a {name}, has fields that this gpsift does not know (a newer one may): "
                f"{join_names(sorted(unknown), None)}"
            )
        if lacking:
            raise CorruptFile(f"object {number}, a {name}, lacks the fields {join_names(sorted(lacking), None)}")
        try:
            made = cls(**{field: self.decode(value) for field, value in coded.items()})
        except CorruptFile:
            raise
        except Exception as error:  # the checks of classes raise any kind of error
            raise CorruptFile(f"object {number}, a {name}, has impossible values ({error})") from error
        self._objects.append(made)
        return made

    def decode(self, coded: Any) -> Any:
        """Convert a value from JSON."""
        if isinstance(coded, list):
            return self._decode_items(coded)
        if not isinstance(coded, dict):
            return coded
        if len(coded) != 1 or not coded.keys() <= TAGS:
            raise CorruptFile(f"it holds a value of an unknown form, {_shorten(coded)}")
        if self._depth >= DEEPEST:
            raise CorruptFile(
                f"it holds values nested more than {DEEPEST} deep, which is impossible for what gpsift writes"
            )
        self._depth += 1
        try:
            return self._decode_tagged(*next(iter(coded.items())))
        except CorruptFile:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CorruptFile(f"it holds a damaged value, {_shorten(coded)}") from error
        finally:
            self._depth -= 1

    def _decode_tagged(self, tag: str, content: Any) -> Any:
        if tag == "tuple":
            return tuple(self._decode_items(content))
        if tag == "mapping":
            return {self.decode(key): self.decode(value) for key, value in _check_type(content, list)}
        if tag == "float":
            return NOT_FINITE[content]
        if tag == "array":
            return self._array(_check_type(content, str))
        if tag == "object":
            if content not in range(len(self._objects)):  # so that no object can contain itself
                raise CorruptFile(
                    f"object {len(self._objects)} refers to object {_shorten(content)}, which is not before it"
                )
            return self._objects[_check_type(content, int)]
        name, value = content
        scalar = SCALARS[name]
        plain = _check_type(self.decode(value), PLAIN[np.dtype(scalar).kind])
        if issubclass(scalar, np.integer) and not np.iinfo(scalar).min <= plain <= np.iinfo(scalar).max:
            raise CorruptFile(f"{_shorten(plain)} is no {name}")  # older versions of NumPy would wrap it around
        return scalar(plain)

    def _decode_items(self, coded: Any) -> list[Any]:
        return [self.decode(value) for value in _check_type(coded, list)]

    def _drop_removed(self, name: str, coded: dict[str, Any]) -> dict[str, Any]:
        """Drop fields that the class has lost; refuse the file if one has a value that matters."""
        removed = REMOVED_FIELDS.get(name, {})
        for field in removed.keys() & coded.keys():
            if removed[field] is not ANY and (value := self.decode(coded[field])) != removed[field]:
                raise CorruptFile(
                    f"a {name} was made with {field}={_shorten(value)}, which this gpsift has no more: fit it again"
                )
        return {field: value for field, value in coded.items() if field not in removed}


def _check_type(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise CorruptFile(f"{_shorten(value)} stands where a {kind.__name__} is expected")
    return value


def _shorten(coded: Any) -> str:
    text = repr(coded)
    return text if len(text) <= 60 else f"{text[:57]}..."
