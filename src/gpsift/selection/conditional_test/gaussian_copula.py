r"""Normal scores of a column by those of a few others, in straight lines, and whether anything bent is left.

Columns are taken one by one, each time the one that goes along best with what the others have left. Its correlation
rho to that, over n rows, raises the log evidence by about

.. math:: -\tfrac n2 \log (1 - \rho^2) - \tfrac12 \log n

(Schwarz 1978), and columns are taken as long as that pays a toll. Where some curve of a column, or a product of two,
goes along with what is left in the end more than noise would, straight lines do not describe the target.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr, ndtri

# Curves of a column are cosines of its ranks, of up to this many half waves.
HALF_WAVES = 6
# How probable it is that noise looks like any of the curves, and that it looks like any of the products.
CHANCE = 0.1
# What is left of a column that others decide, as a share of its squares.
NOTHING_LEFT = 1e-9


@dataclass(frozen=True, eq=False)
class Straight:
    """A regression of a target (n,) on a few columns, of which `basis` (n, k) is an orthonormal basis."""

    target: np.ndarray
    basis: np.ndarray

    @classmethod
    def found(cls, target: np.ndarray, others: np.ndarray, toll: float) -> Straight:
        """Of normal scores (n,) of a column on those of others, (n, p)."""
        n, p = others.shape
        basis = np.empty((n, 0))
        left, open_ = target, others - others.mean(axis=0)
        squares, least = np.sum(open_**2, axis=0), NOTHING_LEFT * float(left @ left)
        while basis.shape[1] < min(p, n - 3) and left @ left > least:
            best, share = most_alike(left, open_, NOTHING_LEFT * squares)
            if gain(share, n) <= toll:
                break
            direction = open_[:, best] / np.linalg.norm(open_[:, best])
            left, open_ = left - direction * (direction @ left), open_ - np.outer(direction, direction @ open_)
            basis = np.column_stack([basis, direction])
        return cls(target, basis)

    @cached_property
    def left(self) -> np.ndarray:
        """What the regression leaves of the target, (n,)."""
        return self.target - self.basis @ (self.basis.T @ self.target)

    @property
    def left_out(self) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances of the target, whose mean is known to be 0, (n,) each, every row left out."""
        n, k = self.basis.shape
        free = np.maximum(1.0 - np.sum(self.basis**2, axis=1), NOTHING_LEFT)
        return self.target - self.left / free, self.left @ self.left / (n - k) / free

    def misses_bends(self, others: np.ndarray) -> bool:
        """Whether curves or products of the other columns, by their normal scores, go along with what is left."""
        size = np.linalg.norm(self.left) / np.sqrt(len(self.left))
        if size <= np.sqrt(NOTHING_LEFT):
            return False
        left = self.left / size
        return any(exceeds_noise(t) for t in (along_curves(left, others), along_products(left, others)))


def most_alike(left: np.ndarray, columns: np.ndarray, least: np.ndarray) -> tuple[int, float]:
    """The column with the largest squared correlation to what is left, and this; none has less than `least` left."""
    squares = np.sum(columns**2, axis=0)
    shares = np.zeros(squares.size)
    np.divide((left @ columns) ** 2, squares * (left @ left), out=shares, where=squares > least)
    best = int(np.argmax(shares))
    return best, min(float(shares[best]), 1.0)


def gain(share: float, n: int) -> float:
    """Of log evidence, by a column that explains a share of what the others have left of n rows."""
    with np.errstate(divide="ignore"):  # all of it
        return float(-0.5 * n * np.log1p(-share) - 0.5 * np.log(n))


def exceeds_noise(t: np.ndarray) -> bool:
    """Whether the largest of some numbers is more than what that of as many standard normal ones is, nearly always."""
    return bool(t.size and np.max(np.abs(t)) > -ndtri(0.5 * CHANCE / t.size))


def along_curves(left: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """How far a vector of variance 1 goes along with cosines of the ranks of each column, in standard deviations."""
    waves = np.pi * np.arange(1, HALF_WAVES + 1)
    curves = np.cos(waves * ndtr(scores)[:, :, None]).reshape(len(left), -1)
    curves -= curves.mean(axis=0)
    return in_deviations(left @ curves, np.sum(curves**2, axis=0))


def along_products(left: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The same with products of two columns."""
    Z = scores - scores.mean(axis=0)
    squares = (Z**2).T @ Z**2 - (Z.T @ Z) ** 2 / len(Z)
    pairs = np.triu_indices(Z.shape[1], k=1)
    return in_deviations(((Z * left[:, None]).T @ Z)[pairs], squares[pairs])


def in_deviations(sums: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Sums over the square roots of sums of squares; 0 where there are none."""
    return np.divide(sums, np.sqrt(np.maximum(squares, 0.0)), out=np.zeros(sums.size), where=squares > NOTHING_LEFT)
