"""Models fitted with other libraries, as references that can be ranked.

`as_reference` in `lookup.py` is the door: it finds the library by its name, so nothing is imported that the user has
not imported. Each library has a folder of its own, whose `models.py` reads its models. What they share is here. A
Gaussian process whose kernel we have (`terms.py`) becomes the triple of `gpsift.reference.posterior` and gets every
closed form (`latent.py`). Anything else is differentiated by its own library (`graded.py`, `torch_autograd.py`,
`jax_autodiff.py`) or, if it only predicts, numerically (`gpsift.reference.finite_differences`, `functions.py`). Inputs
that the model sees transformed are taken back to the user's units by the chain rule (`mapped.py`, `coordinatewise.py`).
Several outputs or classes are put together by `outputs.py` and `onevsrest.py`.

To add a library: a folder with a ``reference_of(model, **options)``, a line in `lookup.LIBRARIES`, and a list of cases
for the contract in ``tests/adapters/contract.py``.
"""

from gpsift.reference.lookup import as_reference

__all__ = ["as_reference"]
