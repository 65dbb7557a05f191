"""Models fitted with other libraries, as references that can be ranked: one file a library.

`as_reference` in `lookup.py` is the door: it finds the file by the name of the library, so nothing is imported that the
user has not imported. A Gaussian process whose kernel we have becomes the triple of `gpsift.posterior` and gets every
closed form (`latent.py`). Anything else is differentiated by its own library (`graded.py`) or, if it only predicts,
numerically (`numeric.py`). Inputs that the model sees scaled are taken back to the user's units by the chain rule
(`mapped.py`). Options that several readers take are checked in `options.py`.

To add a library: a file with ``reference_of(model, **options)``, a line in `lookup.LIBRARIES`, and a list of cases for
the contract in ``tests/adapters/contract.py``.
"""

from gpsift.adapters.lookup import as_reference

__all__ = ["as_reference"]
