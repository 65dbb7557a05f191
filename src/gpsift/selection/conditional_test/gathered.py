"""Rows of dask collections, brought here: all of them, or a sample where they are many.

A sample of rows is as good for the test as all of them, but for what it finds: p-values are right for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpsift._utils.notices import notice
from gpsift._utils.user_arrays import is_dask
from gpsift.reference.dask.rows import read_collections
from gpsift.relevance.points import KEPT_ROWS

# What observations may bring along that is no noise; a likelihood takes one of them.
SIZES = ("exposure", "trials")


def gathered(X: Any, y: Any, observed: Mapping[str, Any], seed: int) -> tuple[Any, Any, Mapping[str, Any]]:
    """What came, in memory."""
    if not is_dask(X) and not is_dask(y):
        return X, y, observed
    size_name = next((name for name in SIZES if observed.get(name) is not None), SIZES[0])
    rows = read_collections(X, y, observed.get("noise_var"), observed.get(size_name), size_name=size_name)
    here = rows.sample(KEPT_ROWS, seed)
    if len(here.X) < rows.n:
        notice(f"The test was made on {len(here.X)} of {rows.n} rows, drawn with the seed of the folds.")
    brought = {"noise_var": here.noise_var, size_name: here.size}
    return named(here.X, rows.names), here.y, {**observed, **brought}


def named(values: Any, names: tuple[str, ...] | None) -> Any:
    """A table with names, if there are any."""
    if names is None:
        return values
    import pandas as pd  # here: whoever has collections with names has it

    return pd.DataFrame(values, columns=list(names))
