"""Models of GPflow: `models.py` reads them, `kernels.py` their kernels."""

from gpsift.adapters.gpflow.models import reference_of

__all__ = ["reference_of"]
