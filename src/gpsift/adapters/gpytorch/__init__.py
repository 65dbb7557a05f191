"""This package reads models of GPyTorch: `models.py` the posterior, `prior.py` the kernel and mean function."""

from gpsift.adapters.gpytorch.models import reference_of

__all__ = ["reference_of"]
