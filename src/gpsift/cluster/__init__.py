"""Rows in dask collections, visited where they are: arrays and data frames in, a source of rows out.

`collections.py` reads what users have, `rows.py` is the source, `passes.py` runs one pass over all partitions on a
cluster or in this process, `summary.py` holds the sums that a fit begins with. dask is imported when a collection comes
in, and not before.
"""

from typing import TYPE_CHECKING

from gpsift.on_demand import on_demand

if TYPE_CHECKING:
    from gpsift.cluster.collections import read_collections
    from gpsift.cluster.rows import ClusterRows
    from gpsift.cluster.summary import NOWHERE, Cloud, Spread, Summary, cloud, missing, summarise

__all__ = ["NOWHERE", "Cloud", "ClusterRows", "Spread", "Summary", "cloud", "missing", "read_collections", "summarise"]

if not TYPE_CHECKING:  # with the first collection
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "Cloud": "gpsift.cluster.summary",
            "ClusterRows": "gpsift.cluster.rows",
            "NOWHERE": "gpsift.cluster.summary",
            "Spread": "gpsift.cluster.summary",
            "Summary": "gpsift.cluster.summary",
            "cloud": "gpsift.cluster.summary",
            "missing": "gpsift.cluster.summary",
            "read_collections": "gpsift.cluster.collections",
            "summarise": "gpsift.cluster.summary",
        },
    )
