"""Gaussian process models of this package, from data to a fitted model.

`model.py` has `GP`, the description of a model and the steps of a fit. `fitted.py` has the result, `multiclass.py` the
result for several classes and `drawn.py` the one with drawn hyperparameters. `data.py` holds the rows of a fit (in dask
collections too), `choose_inference.py` chooses the method of inference, `quality.py` is leave-one-out cross-validation,
`smoothness.py` a check of the kernel, `fitreport.py` the report of a fit and `refit.py` infers again for a fitted
model. The folder `hyperparameters` searches and samples, `inference` has posteriors with a matrix of all rows, and
`sparse` those without. Read `model.py` first.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
