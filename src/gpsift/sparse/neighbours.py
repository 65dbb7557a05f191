"""Which rows are near a block of rows, in units of the kernel's length-scales.

Two questions are asked. A posterior wants the rows that are nearest to each block, its own last. A likelihood takes
blocks one after another and wants, for each, the nearest among the rows that came before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpsift.kernels import Kernel
from gpsift.sparse.blocks import Blocks, cut_into_blocks, nearness


class GivenBlock(NamedTuple):
    """Row numbers of a block, and of the earlier rows that it is seen given."""

    rows: np.ndarray
    given: np.ndarray


def nearest_rows(X: np.ndarray, blocks: Blocks, kernel: Kernel, k: int) -> np.ndarray:
    """Numbers of the k rows that are nearest to the centre of each block, its own rows last, (n_blocks, k).

    Rows are in the order of blocks. There are fewer than k where there are fewer rows.
    """
    from scipy.spatial import KDTree

    places, k = X * nearness(kernel, X.shape[1]), min(k, len(X))
    centres = np.stack([places[rows].mean(axis=0) for rows in blocks.slices])
    _, near = KDTree(places).query(centres, k=np.arange(1, k + 1), workers=-1)
    for number, own in enumerate(blocks.slices):
        others = near[number][(near[number] < own.start) | (near[number] >= own.stop)]
        near[number] = np.concatenate([others[: k - own.stop + own.start][::-1], np.arange(own.start, own.stop)])
    return near


def given_blocks(X: np.ndarray, kernel: Kernel, most: int, k: int, seed: int) -> list[GivenBlock]:
    """Blocks of at most `most` rows in random order, each with the k nearest of the rows that came before."""
    blocks, order = cut_into_blocks(X, kernel, most)
    places = X * nearness(kernel, X.shape[1])
    rng, found, earlier = np.random.default_rng(seed), list[GivenBlock](), np.empty(0, dtype=int)
    for number in rng.permutation(blocks.n):
        rows = order[blocks.rows(number)]
        far = ((places[earlier] - places[rows].mean(axis=0)) ** 2).sum(axis=1)
        near = earlier if len(earlier) <= k else earlier[np.argpartition(far, k - 1)[:k]]
        found.append(GivenBlock(rows, near))
        earlier = np.concatenate([earlier, rows])
    return found
