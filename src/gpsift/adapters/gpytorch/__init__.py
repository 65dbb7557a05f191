"""Models of GPyTorch: `models.py` reads them, `prior.py`, `kernels.py` and `posterior.py` their parts."""

from gpsift.adapters.gpytorch.models import reference_of

__all__ = ["reference_of"]
