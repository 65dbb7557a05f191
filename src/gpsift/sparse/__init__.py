"""Many rows: inducing points stand for them, and whatever is asked of all of them is a sum over chunks.

`rows.py` says what rows are and how they are visited, `choice.py` is the choice `Sparse`. `inducing.py` picks the
points, `sites.py` is what a bound makes of the rows: `bound.py` for Gaussian noise, `variational.py` for other
likelihoods (with `natural.py`, the steps towards its optimum). By neighbours: `blocks.py` and `neighbours.py` say which
rows are near one another, `vecchia.py` is the evidence, `block_posterior.py` and `block_inference.py` the posterior.
`engine.py`, `bound_engine.py` and `variational_engine.py` are the engines, `search.py` and `bound_search.py` find the
hyperparameters, with `sifted.py` where a sift has left features off; `other_way.py` is what they leave of the way that
was not taken, `around.py` is for intervals. Read `sites.py` and `bound.py` first, then `vecchia.py`.
"""

from typing import TYPE_CHECKING

from gpsift.on_demand import on_demand
from gpsift.sparse.choice import Sparse
from gpsift.sparse.rows import LocalRows, Rows, RowSource, Totals

if TYPE_CHECKING:
    from gpsift.sparse.around import AroundEngine
    from gpsift.sparse.block_posterior import BlockPosterior
    from gpsift.sparse.bound_engine import BoundEngine
    from gpsift.sparse.bound_search import search_for
    from gpsift.sparse.engine import SparseEngine, local_rows
    from gpsift.sparse.other_way import OtherWay
    from gpsift.sparse.variational_engine import VariationalEngine

__all__ = [
    "AroundEngine",
    "BlockPosterior",
    "BoundEngine",
    "LocalRows",
    "OtherWay",
    "RowSource",
    "Rows",
    "Sparse",
    "SparseEngine",
    "Totals",
    "VariationalEngine",
    "local_rows",
    "search_for",
]

if not TYPE_CHECKING:  # inference itself when there are many rows
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "AroundEngine": "gpsift.sparse.around",
            "BlockPosterior": "gpsift.sparse.block_posterior",
            "BoundEngine": "gpsift.sparse.bound_engine",
            "OtherWay": "gpsift.sparse.other_way",
            "SparseEngine": "gpsift.sparse.engine",
            "VariationalEngine": "gpsift.sparse.variational_engine",
            "local_rows": "gpsift.sparse.engine",
            "search_for": "gpsift.sparse.bound_search",
        },
    )
