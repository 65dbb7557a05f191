"""Gaussian processes of PyMC: `models.py` reads them, `kernels.py` their covariance functions."""

from gpsift.adapters.pymc.models import reference_of

__all__ = ["reference_of"]
