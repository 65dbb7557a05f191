"""Points that are visited block by block, and what is found there put back into their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from gpsift._utils.arrays import Array, namespace, take_rows
from gpsift._utils.rows import map_chunks

# A block's number, and those of the points in it.
Visit = tuple[int, np.ndarray]


def grouped(numbers: np.ndarray) -> list[Visit]:
    """Each number that occurs, with where it does."""
    order = np.argsort(numbers, kind="stable")
    occurring, starts = np.unique(numbers[order], return_index=True)
    return list(zip(occurring.tolist(), np.split(order, starts[1:]), strict=True))


def in_blocks(of: Callable[[int, np.ndarray], Iterable[Array]], visits: list[Visit], X: Array) -> list[Array]:
    """What `of` finds for the points of each visit, given the block's number and theirs, in the order of the points."""
    found = map_chunks(lambda visit: of(*visit), visits, X)
    back = np.argsort(np.concatenate([rows for _, rows in visits]))
    return [take_rows(namespace(X).concat(pieces), back) for pieces in zip(*found, strict=True)]
