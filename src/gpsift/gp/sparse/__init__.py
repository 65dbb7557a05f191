"""Many rows: inducing points stand for them, or `gpsift.gp.sparse.vecchia` do, and the search says which.

`choice.py` is the choice `Sparse`. `inducing.py` picks the points, `sites.py` is what a bound makes of the rows
(`gpsift._utils.rows`): `bound.py` for Gaussian noise, `variational.py` for other likelihoods (with `natural.py`, the
steps towards its optimum). `engine.py`, `bound_engine.py` and `variational_engine.py` are the engines, `search.py` and
`bound_search.py` find the hyperparameters, with `sifted.py` where a sift has left features off;
`around.py` is for intervals. Read `sites.py` and `bound.py` first.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
