"""This package reads models of other libraries as references that can be ranked.

`as_reference` in `gpsift.reference.lookup` finds the library of a model by its name, so that only libraries which the
user has imported are imported. Each library has one file, or a folder whose `models.py` reads its models. All of them
use `reading.py` (options, inputs, noise) and `kernels.py` (covariance functions as sums of gpsift's). A Gaussian
process with a known kernel becomes a `gpsift.reference.posterior.Posterior` and has every closed form. Other models are
differentiated by their library (`torch_autograd.py`, `jax_autodiff.py`) or, if they only predict, numerically
(`gpsift.reference.finite_differences`, `functions.py`). `gpsift.reference.wrappers` handles transformed inputs, several
outputs and several classes.

To add a library: a file with a ``reference_of(model, **options)``, a line in `gpsift.reference.lookup.LIBRARIES`, and a
list of cases for the contract in ``tests/adapters/contract.py``.
"""

from gpsift.reference.lookup import as_reference

__all__ = ["as_reference"]
