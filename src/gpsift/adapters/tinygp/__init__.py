"""Processes of tinygp: `models.py` reads them, `kernels.py` their kernels."""

from gpsift.adapters.tinygp.models import reference_of

__all__ = ["reference_of"]
