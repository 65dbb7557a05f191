"""From a kernel, a likelihood and data to the latent posterior and its evidence, with a matrix of all rows.

`exact.py` serves Gaussian noise (with `inplace.py`, its fast twin for the default model), `ep.py` and `laplace.py` any
other likelihood (with `settled.py`, for sweeps of `ep.py` that go astray), `multiclass.py`, `contrasts.py` and
`coupled.py` a latent function for each of several classes; `conjugate.py` finds the steps of Newton's method.
`engine.py` has the questions that are put to all of them, `exact_engine.py` and `iterated_engine.py` the answers;
`memory.py` says what they need. Read `exact.py` first. Too many rows for that are in the room `sparse`.
"""

from typing import TYPE_CHECKING

from gpsift.inference.engine import DenseEngine, Engine, Inferred, Slope
from gpsift.inference.exact import Evidence
from gpsift.inference.exact_engine import ExactEngine
from gpsift.on_demand import on_demand

if TYPE_CHECKING:
    from gpsift.inference.coupled import CoupledAt, CoupledPosterior
    from gpsift.inference.iterated_engine import EPEngine, LaplaceEngine, MulticlassEngine

__all__ = [
    "CoupledAt",
    "CoupledPosterior",
    "DenseEngine",
    "EPEngine",
    "Engine",
    "Evidence",
    "ExactEngine",
    "Inferred",
    "LaplaceEngine",
    "MulticlassEngine",
    "Slope",
]

if not TYPE_CHECKING:  # what iterates when noise is not Gaussian
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "CoupledAt": "gpsift.inference.coupled",
            "CoupledPosterior": "gpsift.inference.coupled",
            "EPEngine": "gpsift.inference.iterated_engine",
            "LaplaceEngine": "gpsift.inference.iterated_engine",
            "MulticlassEngine": "gpsift.inference.iterated_engine",
        },
    )
