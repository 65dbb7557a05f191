"""Our models: data in, a fitted Gaussian process out.

`model.py` is the front (`GP`) and the recipe of a fit, `fitted.py` what it returns, `multiclass.py` the same for
several classes, `drawn.py` for drawn hyperparameters. The recipe asks the rows through `data.py`, or `cluster_data.py`
if they are in dask collections (with `last_pass.py`); `checks.py` refuses what cannot be fitted, `choosing.py` chooses
the inference (by `speed.py`), `scaling.py` the units. `quality.py` is the leave-one-out sheet, `fitreport.py` how a fit
went. How hyperparameters are found is in the room `hyper`, the mathematics of posteriors in `inference` and `sparse`.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
