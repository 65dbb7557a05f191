"""Write a file so that it is complete or does not exist."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path for the file, which is renamed to `path` at the end, or removed if the writing fails.

    A link stays a link. The temporary name has the same suffix, by which some libraries choose a format.
    """
    target = Path(os.path.realpath(path))
    # It is in the same folder, because only there a file system renames in one step. The caller opens it like any file,
    # so it has the permissions of the user's files.
    part = target.with_name(f".{os.urandom(8).hex()}.part{target.suffix}")
    try:
        yield part
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
