"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path to write to, which replaces `path` at the end, and is removed if the writing fails.

    A link stays a link. The temporary name has the same ending, by which some libraries choose a format.
    """
    target = Path(os.path.realpath(path))
    # In the same folder, because a file system renames in one step. The caller opens it like any other file, so that it
    # has the permissions that the user's files have.
    part = target.with_name(f".{os.urandom(8).hex()}.part{target.suffix}")
    try:
        yield part
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
