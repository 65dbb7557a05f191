"""Models of BoTorch: `models.py` reads them, `outputs.py` reads each output and the transforms around it."""

from gpsift.adapters.botorch.models import reference_of

__all__ = ["reference_of"]
