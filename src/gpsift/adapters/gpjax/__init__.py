"""Models of GPJax: `models.py` reads them, `kernels.py` their kernels."""

from gpsift.adapters.gpjax.models import reference_of

__all__ = ["reference_of"]
