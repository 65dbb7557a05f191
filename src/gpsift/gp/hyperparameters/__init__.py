"""How hyperparameters are found: a problem in, an estimate out.

`problem.py` states what is maximised, `choices.py` holds the choices `ML2`, `MAP` and `Fixed`, `nuts.py` the sampler
`NUTS`, `sift.py` the choice `Sift`, which switches features on one by one, with `screening.py`. `optimise.py` is the
search from several starts, `coarse.py` the same by way of few rows, `priors.py` has the priors of single values,
`saas.py` one of all length-scales together, `related.py` a start from the hyperparameters of a related model. Read
`problem.py` first. How a sparse model is searched is in the room `sparse`.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
