"""Sparse inference for many rows, by inducing points or by the rows nearest to each block of rows.

`choice.py` is the choice `Sparse`. `inducing.py` picks the inducing points. `sites.py` has the mathematics that all
likelihoods share, `bound.py` the bound for Gaussian noise and `variational.py` the one for other likelihoods, each with
its engine (`engine.py` is their base). The folder `vecchia` has inference by blocks. `search.py` finds the
hyperparameters. Read `sites.py` and `bound.py` first.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
