"""Which rows are near a block of rows, in units of the kernel's length-scales.

Two questions are asked. A posterior wants the rows that are nearest to each block, its own last. A likelihood takes
blocks one after another and wants, for each, the nearest among the rows that came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpsift.kernels import Kernel
from gpsift.sparse.blocks import Blocks, cut_into_blocks, nearness


class GivenBlock(NamedTuple):
    """Row numbers of a block, and of the earlier rows that it is seen given."""

    rows: np.ndarray
    given: np.ndarray


def nearest_rows(X: np.ndarray, blocks: Blocks, kernel: Kernel, k: int, numbers: Sequence[int]) -> np.ndarray:
    """Numbers of the k rows that are nearest to the centre of each of these blocks, its own last, (n_numbers, k).

    Rows are in the order of blocks. There are fewer than k where there are fewer rows.
    """
    from scipy.spatial import KDTree

    places, k = X * nearness(kernel, X.shape[1]), min(k, len(X))
    owned = [blocks.rows(number) for number in numbers]
    centres = np.stack([places[own].mean(axis=0) for own in owned])
    _, near = KDTree(places).query(centres, k=np.arange(1, k + 1), workers=-1)
    for place, own in enumerate(owned):
        others = near[place][(near[place] < own.start) | (near[place] >= own.stop)]
        near[place] = np.concatenate([others[: k - own.stop + own.start][::-1], np.arange(own.start, own.stop)])
    return near


def given_blocks(X: np.ndarray, kernel: Kernel, most: int, near: int, far: int, seed: int) -> list[GivenBlock]:
    """Blocks of at most `most` rows in random order, each with rows that came before: the nearest, and some others.

    Those that are far are drawn. They show a block what is smooth: a trend that its neighbours alone could not tell.
    """
    blocks, order = cut_into_blocks(X, kernel, most)
    places = X * nearness(kernel, X.shape[1])
    rng, found, earlier = np.random.default_rng(seed), list[GivenBlock](), np.empty(0, dtype=int)
    for number in rng.permutation(blocks.n):
        rows, given = order[blocks.rows(number)], earlier
        if len(earlier) > near + far:
            distance = ((places[earlier] - places[rows].mean(axis=0)) ** 2).sum(axis=1)
            by_distance = earlier[np.argpartition(distance, near - 1)]
            given = np.concatenate([by_distance[:near], rng.choice(by_distance[near:], far, replace=False)])
        found.append(GivenBlock(rows, given))
        earlier = np.concatenate([earlier, rows])
    return found
