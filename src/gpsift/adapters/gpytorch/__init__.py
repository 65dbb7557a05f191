"""Models of GPyTorch: `models.py` reads their posterior, `prior.py` their kernel and mean function."""

from gpsift.adapters.gpytorch.models import reference_of

__all__ = ["reference_of"]
