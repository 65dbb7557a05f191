"""Models of BoTorch: `models.py` reads them, `parts.py` each of their outputs, `transforms.py` what is around those."""

from gpsift.adapters.botorch.models import reference_of

__all__ = ["reference_of"]
