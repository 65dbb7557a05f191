"""From a kernel, a likelihood and data to the latent posterior and its evidence, with a matrix of all rows.

`exact.py` serves Gaussian noise (with `inplace.py`, its fast twin for the default model), `ep.py` and `laplace.py` any
other likelihood (with `settled.py`, for sweeps of `ep.py` that go astray), `multiclass.py`, `contrasts.py` and
`coupled.py` a latent function for each of several classes; `conjugate.py` finds the steps of Newton's method.
`engine.py` has the questions that are put to all of them, `exact_engine.py` and `iterated_engine.py` the answers;
`memory.py` says what they need. Read `exact.py` first. Too many rows for that are in the room `sparse`.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
