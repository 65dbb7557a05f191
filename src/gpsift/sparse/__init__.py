"""Many rows: inducing points stand for them, or `gpsift.neighbours` do, and the search says which.

`choice.py` is the choice `Sparse`. `inducing.py` picks the points, `sites.py` is what a bound makes of the rows
(`gpsift.rows`): `bound.py` for Gaussian noise, `variational.py` for other likelihoods (with `natural.py`, the steps
towards its optimum). `engine.py`, `bound_engine.py` and `variational_engine.py` are the engines, `search.py` and
`bound_search.py` find the hyperparameters, with `sifted.py` where a sift has left features off; `other_way.py` is what
they leave of the way that was not taken, `around.py` is for intervals. Read `sites.py` and `bound.py` first.
"""

from typing import TYPE_CHECKING

from gpsift.on_demand import on_demand
from gpsift.sparse.choice import Sparse

if TYPE_CHECKING:
    from gpsift.sparse.around import AroundEngine
    from gpsift.sparse.bound_engine import BoundEngine
    from gpsift.sparse.bound_search import search_for
    from gpsift.sparse.engine import SparseEngine, local_rows
    from gpsift.sparse.other_way import OtherWay
    from gpsift.sparse.variational_engine import VariationalEngine

__all__ = [
    "AroundEngine",
    "BoundEngine",
    "OtherWay",
    "Sparse",
    "SparseEngine",
    "VariationalEngine",
    "local_rows",
    "search_for",
]

if not TYPE_CHECKING:  # inference itself when there are many rows
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "AroundEngine": "gpsift.sparse.around",
            "BoundEngine": "gpsift.sparse.bound_engine",
            "OtherWay": "gpsift.sparse.other_way",
            "SparseEngine": "gpsift.sparse.engine",
            "VariationalEngine": "gpsift.sparse.variational_engine",
            "local_rows": "gpsift.sparse.engine",
            "search_for": "gpsift.sparse.bound_search",
        },
    )
