"""Models of toylib: `models.py` reads them."""

from toylib_adapter.models import reference_of

__all__ = ["reference_of"]
