"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Another name in the folder of a file, to write to: the file is replaced at the end, and not if that fails.

    A link stays a link. The other name has the same ending, by which some libraries choose a format.
    """
    target = Path(os.path.realpath(path))
    # In the same folder, because a file system renames in one step. Opened like any other file by whoever writes it, so
    # that it has the permissions that the user's files have.
    part = target.with_name(f".{os.urandom(8).hex()}.part{target.suffix}")
    try:
        yield part
        os.replace(part, target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
