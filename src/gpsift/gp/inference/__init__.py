"""Dense inference: the latent posterior and its evidence for a kernel, a likelihood and data.

`base.py` has the interface of all methods of inference. `exact.py` serves Gaussian noise (with `exact_rbf.py`, a fast
path for the default kernel), `ep.py` and `laplace.py` any other likelihood, and `softmax.py` several classes, each with
a latent function, whose posterior is in `softmax_posterior.py`. `memory.py` estimates the memory that a method
needs. All have a covariance matrix of all rows; `gpsift.gp.sparse` has none. Read `exact.py` first.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
