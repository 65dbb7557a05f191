"""This package reads the rows of dask collections.

`rows.py` reads arrays and data frames and runs passes over all partitions, on a cluster or in this process;
`summary.py` has the sums that a fit begins with. dask is imported when a collection is read, and not before.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
