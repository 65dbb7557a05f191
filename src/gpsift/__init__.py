"""gpsift sifts the inputs of a Gaussian process: which features matter, where, and how sure that is.

>>> import gpsift as gs
>>> from sklearn.datasets import load_diabetes
>>> X, y = load_diabetes(return_X_y=True, as_frame=True)
>>> gp = gs.GP().fit(X, y)
>>> ranking = gs.rank(gp, X, measure=gs.KL())
>>> [ranking.names[j] for j in ranking.order[:3]]
['s5', 'bmi', 'bp']
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
