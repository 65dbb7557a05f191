"""This package reads models of BoTorch: `models.py` the models, `outputs.py` each output and its transforms."""

from gpsift.adapters.botorch.models import reference_of

__all__ = ["reference_of"]
