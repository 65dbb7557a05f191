"""How rows are divided: which are asked for, and which their model may have seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

# Rows that no model is asked for where each part follows those before it: one in this many.
ONE_IN = 3


@dataclass(frozen=True, eq=False)
class Part:
    """Numbers of rows that are asked for, and of those that the model is fitted to."""

    rows: np.ndarray
    fitted: np.ndarray


@dataclass(frozen=True)
class InOrder:
    """Folds that follow each other: each is tested by a model of the rows before it, in a random order.

    A third of the rows is learnt from alone. P-values are then right for *any* model, such as one that follows the
    noise, at the price of finding less.

    Parameters
    ----------
    folds : int
    """

    folds: int = 5


def divided(n: int, folds: int | InOrder, seed: Sequence[int]) -> list[Part]:
    """The parts of n rows."""
    return growing(n, folds.folds, seed) if isinstance(folds, InOrder) else left_out(n, folds, seed)


def left_out(n: int, folds: int, seed: Sequence[int]) -> list[Part]:
    """Every row is asked for once, after a fit to all rows that are not in its part."""
    _check(n, folds, n)
    number = np.random.default_rng(seed).permutation(n) % folds
    return [Part(np.flatnonzero(number == k), np.flatnonzero(number != k)) for k in range(folds)]


def growing(n: int, folds: int, seed: Sequence[int]) -> list[Part]:
    """Every row but the first ones, in a random order, is asked for once, after a fit to rows before it.

    Then no two parts have each seen the other, and sums over parts have the variance that the parts' own add up to.
    """
    first = max(2, round(n / ONE_IN))
    _check(n - first, folds, n)
    order = np.random.default_rng(seed).permutation(n)
    edges = np.linspace(first, n, folds + 1).astype(int)
    return [Part(np.sort(order[a:b]), np.sort(order[:a])) for a, b in pairwise(edges)]


def _check(n_asked: int, folds: int, n: int) -> None:
    if folds > n_asked:
        raise ValueError(f"`folds` must be at most {n_asked} with {n} rows, got {folds}.")
