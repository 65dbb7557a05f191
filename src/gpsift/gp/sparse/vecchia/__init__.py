"""Inference by neighbours, for many rows with Gaussian noise: exact inference on the rows near each block of rows.

`blocks.py` cuts rows into blocks of those that are near one another, `near.py` finds the rows that are near a block.
`vecchia.py` is the evidence, `block_posterior.py` the posterior (with `visits.py`, points block by block, and
`moved.py`, points that leave theirs), and `block_inference.py` makes it and leaves rows out. Read them in this order.
"""

import lazy_loader

# The names are listed in `__init__.pyi`; each loads its file when it is first asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
