"""Models of GPy: `models.py` reads them, `kernels.py` their kernels."""

from gpsift.adapters.gpy.models import reference_of

__all__ = ["reference_of"]
