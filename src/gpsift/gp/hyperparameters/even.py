"""Numbers between 0 and 1 that fill a cube more evenly than independent ones: a Halton sequence with random digits.

Number i of a coordinate has the digits of i in a prime base of its own, the last one first. Every digit is shuffled by
a permutation of its own, so that each point is uniform (Owen 2017).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np

# Points are made in blocks of this size; digits tell apart this many of them.
BLOCK = 256
FARTHEST = 2.0**32


def even_shares(n_coordinates: int, seed: int) -> Iterator[np.ndarray]:
    """Blocks of points, (m, n_coordinates), without end."""
    rng = np.random.default_rng(seed)
    coordinates = [ShuffledDigits(base, rng) for base in first_primes(n_coordinates)]
    for start in count(0, BLOCK):
        numbers = np.arange(start, start + BLOCK)
        yield np.column_stack([each.shares(numbers) for each in coordinates])


class ShuffledDigits:
    """One coordinate of the sequence."""

    def __init__(self, base: int, rng: np.random.Generator):
        self.base, n_digits = base, math.ceil(math.log(FARTHEST, base))
        self.shuffled = rng.permuted(np.tile(np.arange(base), (n_digits, 1)), axis=1)
        self.rest = rng.uniform()  # of the digits that no number reaches

    def shares(self, numbers: np.ndarray) -> np.ndarray:
        """Of the points with these numbers."""
        found, unit = np.zeros(numbers.size), 1.0
        for shuffled in self.shuffled:
            unit /= self.base
            numbers, digit = np.divmod(numbers, self.base)
            found += unit * shuffled[digit]
        return found + unit * self.rest


def first_primes(n: int) -> list[int]:
    """
    >>> first_primes(5)
    [2, 3, 5, 7, 11]
    """
    found: list[int] = []
    for number in count(2):
        if len(found) == n:
            break
        if all(number % prime for prime in found):
            found.append(number)
    return found
