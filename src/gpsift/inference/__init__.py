"""From a kernel, a likelihood and data to the latent posterior and its evidence.

`exact.py` serves Gaussian noise (with `inplace.py`, its fast twin for the default model), `ep.py` and `laplace.py` any
other likelihood. `engine.py` puts the same questions to all of them. Read `exact.py` first.
"""

from gpsift.inference.engine import Engine, EPEngine, ExactEngine, Inferred, LaplaceEngine
from gpsift.inference.exact import Evidence

__all__ = ["EPEngine", "Engine", "Evidence", "ExactEngine", "Inferred", "LaplaceEngine"]
