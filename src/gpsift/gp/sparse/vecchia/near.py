"""Which rows are near a block of rows, in units of the kernel's length-scales.

Two questions are asked. A posterior wants the rows that are nearest to each block, its own last. A likelihood takes
blocks one after another and wants, for each, the nearest among the rows that came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpsift._utils.linalg import row_products
from gpsift.gp.sparse.vecchia.blocks import Blocks, cut_into_blocks, nearness
from gpsift.kernels import Kernel


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


def given_blocks(
    X: np.ndarray, kernel: Kernel, most: int, near: int, far: int, *, seed: int, every: int = 1
) -> list[GivenBlock]:
    """Blocks of at most `most` rows in random order, each with rows that came before: the nearest, and some others.

    Those that are far are drawn. They show a block what is smooth: a trend that its neighbours alone could not tell.
    Of very many blocks one in `every` is taken, from all parts of the order.
    """
    blocks, order = cut_into_blocks(X, kernel, most)
    places, rng = X * nearness(kernel, X.shape[1]), np.random.default_rng(seed)
    in_turn = [order[blocks.rows(number)] for number in rng.permutation(blocks.n)]
    starts, all_in_turn = np.cumsum([0, *map(len, in_turn)]), np.concatenate(in_turn)
    places_in_turn = places[all_in_turn]
    found = []
    for turn in range((every - 1) // 2, len(in_turn), every):
        rows, given = in_turn[turn], all_in_turn[: starts[turn]]
        if len(given) > near + far:
            from_centre = places_in_turn[: len(given)] - places[rows].mean(axis=0)
            distance = row_products(from_centre, from_centre)
            by_distance = given[np.argpartition(distance, near - 1)]
            given = np.concatenate([by_distance[:near], rng.choice(by_distance[near:], far, replace=False)])
        found.append(GivenBlock(rows, given))
    return found
