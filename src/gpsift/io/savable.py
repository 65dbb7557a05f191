"""What can be kept in a file has a method for it."""

from __future__ import annotations

import os
from dataclasses import Field, field, fields
from typing import Any, Self

# Of fields that hold no data, and stay in this process.
NOT_KEPT = {"kept": False}


def not_kept() -> Any:
    """A field that is None by default, and after a way through a file or to another process."""
    return field(default=None, repr=False, metadata=NOT_KEPT)


def kept_fields(record: Any) -> list[Field[Any]]:
    """What a file keeps of a record or of its class."""
    return [each for each in fields(record) if each.metadata.get("kept", True)]


class Savable:
    """A model or an answer with a method `save`."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this to a file, by convention ``*.gpsift``, which `gpsift.load` reads.

        A file that is there already is replaced when the new one is complete, and not before.

        Parameters
        ----------
        path : str or path
        """
        from gpsift.io.save import save

        save(self, path)

    def to_stored(self) -> Self:
        """Return this in the form that a file keeps, with nothing of another library in it."""
        return self

    def from_stored(self) -> Self:
        """Return this as it was before `to_stored`."""
        return self
