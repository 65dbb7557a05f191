"""The way to be sparse that was not taken, as far as a model needs it to be made again on the same rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpsift._utils.arrays import like
from gpsift._utils.rows import Rows
from gpsift.gp.sparse.bound_engine import BoundEngine
from gpsift.gp.sparse.choice import Sparse
from gpsift.gp.sparse.engine import local_rows


@dataclass(frozen=True, eq=False)
class OtherWay:
    """Hyperparameters and inducing points, and how many rows are near each block where it is by neighbours."""

    log_params: np.ndarray
    points: np.ndarray  # (m, p), in the units of the model
    near_rows: int  # 0 with inducing points
    n_rows: int  # on which the hyperparameters were found, 0 for all
    choice: Sparse
    by_neighbours: bool = False  # whether the hyperparameters are those of Vecchia's evidence

    def engine(self, rows: Rows) -> BoundEngine:
        """Inference by this way."""
        points = like(rows.X, self.points)
        return BoundEngine(local_rows(rows, self.choice), self.points, points, self.choice, self.near_rows)
