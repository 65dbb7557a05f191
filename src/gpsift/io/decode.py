"""What `encode.py` wrote, as values and objects again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from functools import cache
from typing import Any

import numpy as np

from gpsift._utils.words import listed
from gpsift.io.archive import Damage
from gpsift.io.encode import SCALARS
from gpsift.io.registry import ANY, CLASSES, GONE, GONE_CLASSES, class_named
from gpsift.io.savable import kept_fields

NOT_FINITE: Mapping[str, float] = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
# Values within values; Python's own limit is no help, because some libraries raise it.
DEEPEST = 50
# The Python type of NumPy's numbers and text, by kind.
PLAIN: Mapping[str, type] = {"b": bool, "i": int, "u": int, "f": float, "U": str}


class Decoder:
    """Makes objects of the registered classes, one after the other; `array` gives the array of a name."""

    def __init__(self, array: Callable[[str], np.ndarray]):
        self._array = cache(array)  # one that is named twice is one array
        self._objects: list[Any] = []
        self._depth = 0
        self._by_tag: dict[str, Callable[[Any], Any]] = {
            "tuple": lambda coded: tuple(self._items(coded)),
            "mapping": self._mapping,
            "float": lambda coded: NOT_FINITE[coded],
            "numpy": self._scalar,
            "array": lambda coded: self._array(_of_type(coded, str)),
            "object": self._earlier,
        }

    def add(self, record: Any) -> Any:
        """Make the next object from its class and fields."""
        number = len(self._objects)
        name, coded = self._parts(record)
        if name in GONE_CLASSES:
            self._objects.append(None)
            return None
        if name not in CLASSES:
            raise Damage(f"object {number} is of the class {name!r}, which this gpsift does not know (a newer one may)")
        cls = class_named(name)
        known, coded = kept_fields(cls), self._without_gone(name, coded)
        unknown = coded.keys() - {f.name for f in known}
        lacking = {f.name for f in known if f.default is MISSING and f.default_factory is MISSING} - coded.keys()
        if unknown:
            raise Damage(
                f"object {number}, a {name}, has fields that this gpsift does not know (a newer one may): "
                f"{listed(sorted(unknown), None)}"
            )
        if lacking:
            raise Damage(f"object {number}, a {name}, lacks the fields {listed(sorted(lacking), None)}")
        try:
            made = cls(**{field: self.decode(value) for field, value in coded.items()})
        except Damage:
            raise
        except Exception as error:  # classes check what they are given, each in its way; or it is nested too deeply
            raise Damage(f"object {number}, a {name}, has impossible values ({error})") from error
        self._objects.append(made)
        return made

    def decode(self, coded: Any) -> Any:
        """The value behind the JSON."""
        if isinstance(coded, list):
            return self._items(coded)
        if not isinstance(coded, dict):
            return coded
        try:
            ((tag, content),) = coded.items()
            form = self._by_tag[tag]
        except (ValueError, KeyError):
            raise Damage(f"it holds a value of an unknown form, {_shown(coded)}") from None
        if self._depth >= DEEPEST:
            raise Damage(f"it holds values nested more than {DEEPEST} deep, which is impossible for what gpsift writes")
        self._depth += 1
        try:
            return form(content)
        except Damage:
            raise
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Damage(f"it holds a damaged value, {_shown(coded)}") from error
        finally:
            self._depth -= 1

    def _parts(self, record: Any) -> tuple[str, dict[str, Any]]:
        if not isinstance(record, dict) or record.keys() != {"class", "fields"}:
            raise Damage(f"object {len(self._objects)} has no class and fields, but is {_shown(record)}")
        return str(record["class"]), _of_type(record["fields"], dict)

    def _without_gone(self, name: str, coded: dict[str, Any]) -> dict[str, Any]:
        """The fields without those that the class has no more, as far as nothing hangs on them."""
        gone = GONE.get(name, {})
        for field in gone.keys() & coded.keys():
            if gone[field] is not ANY and (value := self.decode(coded[field])) != gone[field]:
                raise Damage(
                    f"a {name} was made with {field}={_shown(value)}, which this gpsift has no more: fit it again"
                )
        return {field: value for field, value in coded.items() if field not in gone}

    def _items(self, coded: Any) -> list[Any]:
        return [self.decode(value) for value in _of_type(coded, list)]

    def _mapping(self, coded: Any) -> dict[Any, Any]:
        return {self.decode(key): self.decode(value) for key, value in _of_type(coded, list)}

    def _scalar(self, coded: Any) -> np.generic:
        name, value = coded
        scalar = SCALARS[name]
        plain = _of_type(self.decode(value), PLAIN[np.dtype(scalar).kind])
        kind: Any = np.dtype(scalar)
        if kind.kind in "iu" and not np.iinfo(kind).min <= plain <= np.iinfo(kind).max:
            raise Damage(f"{_shown(plain)} is no {name}")  # older versions of NumPy would wrap it around
        return scalar(plain)

    def _earlier(self, number: Any) -> Any:
        if number not in range(len(self._objects)):  # so that no object can contain itself
            raise Damage(f"object {len(self._objects)} refers to object {_shown(number)}, which is not before it")
        return self._objects[_of_type(number, int)]


def _of_type(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise Damage(f"{_shown(value)} stands where a {kind.__name__} is expected")
    return value


def _shown(coded: Any) -> str:
    text = repr(coded)
    return text if len(text) <= 60 else f"{text[:57]}..."
