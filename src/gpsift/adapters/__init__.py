"""Models fitted with other libraries, as references that can be ranked.

`as_reference` in `gpsift.reference.lookup` finds the library of a model by its name, so nothing is imported that the
user has not imported. Each library has one file, or a folder whose `models.py` reads its models. All of them share
`reading.py` (options, inputs, noise) and `kernels.py` (covariance functions as sums of ours). A Gaussian process whose
kernel is known becomes a `gpsift.reference.posterior.Posterior` and gets every closed form. Anything else is
differentiated by its own library (`torch_autograd.py`, `jax_autodiff.py`) or, if it only predicts, numerically
(`gpsift.reference.finite_differences`, `functions.py`). Models that see transformed inputs, several outputs or several
classes are put together by `gpsift.reference.wrappers`.

To add a library: a file with a ``reference_of(model, **options)``, a line in `gpsift.reference.lookup.LIBRARIES`, and a
list of cases for the contract in ``tests/adapters/contract.py``.
"""

from gpsift.reference.lookup import as_reference

__all__ = ["as_reference"]
