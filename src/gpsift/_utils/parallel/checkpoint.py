"""A file that keeps the finished results of long work.

It is an SQLite database. Every result is one transaction, so that a process killed at any moment leaves a file with all
results but perhaps the last. Values are JSON, whose decimal floats come back bit for bit.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

FORMAT = "2"


class CheckpointMismatch(ValueError):
    """A checkpoint belongs to other data or settings, or is no checkpoint."""


class Checkpoint:
    """Results by key, in a file that is made if it does not exist.

    `identity` names what the results depend on, in words or as a `fingerprint`. A file with another identity is
    refused.
    """

    def __init__(self, path: str | os.PathLike[str], identity: Mapping[str, str]):
        self.path = Path(path)
        if not self.path.parent.is_dir():
            raise FileNotFoundError(f"The folder of the checkpoint does not exist: {self.path.parent}")
        try:
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=1.0)
            try:
                self._claim({"format": FORMAT, **identity})
            except Exception:
                self._connection.close()  # no caller gets this checkpoint to close it
                raise
        except sqlite3.OperationalError as error:
            raise OSError(
                f"The checkpoint {self.path} cannot be used: {error}. Is another process using it?"
            ) from error
        except sqlite3.DatabaseError as error:
            raise CheckpointMismatch(f"{self.path} is not a checkpoint ({error}). Give another path.") from error

    def get(self, key: str) -> Any:
        """Return the result under `key`, or None."""
        row = self._connection.execute("SELECT value FROM result WHERE key = ?", (key,)).fetchone()
        return None if row is None else json.loads(row[0])

    def put(self, key: str, result: Any) -> None:
        """Keep a result under `key`; it is on the disk when this returns."""
        self._connection.execute("INSERT OR REPLACE INTO result VALUES (?, ?)", (key, as_json(result)))

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM result").fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def _claim(self, identity: Mapping[str, str]) -> None:
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # two processes would do the same work twice
        self._connection.execute("BEGIN EXCLUSIVE")
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables <= {"identity", "result"}:
            raise sqlite3.DatabaseError("a database with other tables")
        self._connection.execute("CREATE TABLE IF NOT EXISTS identity (name TEXT PRIMARY KEY, value TEXT)")
        self._connection.execute("CREATE TABLE IF NOT EXISTS result (key TEXT PRIMARY KEY, value TEXT)")
        known = dict(self._connection.execute("SELECT name, value FROM identity"))
        if not known:
            self._connection.executemany("INSERT INTO identity VALUES (?, ?)", identity.items())
        self._connection.execute("COMMIT")
        if known and known != dict(identity):
            raise CheckpointMismatch(
                f"The checkpoint {self.path} belongs to other work: {_differences(known, identity)}. Delete the file, "
                "or give another path."
            )


def _differences(known: Mapping[str, str], wanted: Mapping[str, str]) -> str:
    names = [name for name in {**known, **wanted} if known.get(name) != wanted.get(name)]
    return "; ".join(f"{name} was {known.get(name, 'not set')}, is {wanted.get(name, 'not set')}" for name in names)


def as_json(result: Any) -> str:
    """Write a result as JSON, arrays as lists and records as mappings."""
    return json.dumps(result, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    kinds = "numbers, text, lists, mappings, arrays and records of them"
    raise TypeError(f"A result may hold {kinds}, not {type(value).__name__}.")


def fingerprint(*parts: Any) -> str:
    """Return a short digest of arrays and of other objects by their `repr`."""
    digest = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(f"{part.dtype.str}{part.shape}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(repr(part).encode())
        digest.update(b"\0")
    return digest.hexdigest()[:16]
