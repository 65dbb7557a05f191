"""Vecchia approximations for many rows with Gaussian noise: exact inference on the rows near each block of rows.

`blocks.py` cuts rows into blocks and finds the rows that are near a block. `evidence.py` is the evidence of all blocks.
`block_posterior.py` is the posterior, its inference and its leave-one-out moments. Read them in this order.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
