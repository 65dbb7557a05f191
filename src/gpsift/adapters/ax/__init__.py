"""Experiments of Ax: `models.py` reads their surrogate model, in the units of the search space."""

from gpsift.adapters.ax.models import reference_of

__all__ = ["reference_of"]
