r"""New rows like those of a table: a smoothed bootstrap among normal scores.

Copies of rows will not do: a held-out row would have its copy among those that the model was fitted to, and what is
predicted there would be known too well. A row is therefore drawn from the table and its normal scores z are moved,

.. math:: z' = \frac{z + h e}{\sqrt{1 + h^2}}, \qquad e \sim N(0, S),

with S the covariance of the scores, so that this stays the covariance of the new ones, and curved dependence between
columns is kept as far as the bandwidth h resolves it. Columns of few values, and those that code a category, are taken
from the drawn row as they are; what they explain of the other columns is not moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpsift.gp.hyperparameters.score_tests import normal_scores
from gpsift.selection.conditional_test.axes import MOST_LEVELS, quantiles

# With fewer rows for each column of few values nothing is said to be explained by these.
ROWS_FOR_A_LEVEL = 4


@dataclass(frozen=True, eq=False)
class LikeRows:
    """The distribution of the rows of a table (N, p)."""

    X: np.ndarray

    @cached_property
    def moved(self) -> np.ndarray:
        """The columns of many values."""
        return np.flatnonzero([np.unique(column).size > MOST_LEVELS for column in self.X.T])

    @cached_property
    def _explained(self) -> np.ndarray:
        """What columns of few values say about the scores of the others, (N, k)."""
        levels = np.delete(self.X, self.moved, axis=1)
        if len(levels) < ROWS_FOR_A_LEVEL * levels.shape[1]:
            levels = levels[:, :0]
        design = np.column_stack([np.ones(len(levels)), levels])
        return design @ np.linalg.lstsq(design, self._scores, rcond=None)[0]

    @cached_property
    def _scores(self) -> np.ndarray:
        return normal_scores(self.X[:, self.moved])

    @property
    def bandwidth(self) -> float:
        """Of a normal kernel in as many dimensions as columns are moved (Silverman 1986, equation 4.14)."""
        d = self.moved.size
        return float((4.0 / (d + 2.0)) ** (1.0 / (d + 4.0)) * len(self.X) ** (-1.0 / (d + 4.0)))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """New rows (n, p), and the numbers of those that they come from."""
        rows = rng.integers(len(self.X), size=n)
        X = self.X[rows]
        scores = self._explained[rows] + self._shaken(rows, rng)
        for place, j in enumerate(self.moved):
            X[:, j] = quantiles(self.X[:, j], scores[:, place])
        return X, rows

    def _shaken(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        left, h = self._scores - self._explained, self.bandwidth
        # Random combinations of all rows have the covariance of the rows, which need not have a root.
        noise = rng.standard_normal((rows.size, len(left))) @ left / np.sqrt(len(left))
        return (left[rows] + h * noise) / np.sqrt(1.0 + h**2)
