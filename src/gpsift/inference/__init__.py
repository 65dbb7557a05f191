"""From a kernel, a likelihood and data to the latent posterior and its evidence.

`exact.py` serves Gaussian noise (with `inplace.py`, its fast twin for the default model), `sparse.py` the same for many
rows (with `inducing.py` and `placing.py`, which choose the points that stand for them, `local.py`,
`local_posterior.py` and `cells.py`, which follow what these leave, and `sparse_engine.py`), `ep.py` and `laplace.py`
any other likelihood, `variational.py` those for many rows (with `variational_engine.py`), `multiclass.py` and
`coupled.py` a latent function for each of several classes. `engine.py` puts the same questions to all of them;
`memory.py` says what they need. Read `exact.py` first.
"""

from gpsift.inference.coupled import CoupledAt, CoupledPosterior
from gpsift.inference.engine import Engine, EPEngine, ExactEngine, Inferred, LaplaceEngine, MulticlassEngine
from gpsift.inference.exact import Evidence
from gpsift.inference.local_posterior import LocalPosterior
from gpsift.inference.sparse_engine import Sparse, SparseEngine
from gpsift.inference.variational_engine import VariationalEngine, sparse_engine_for

__all__ = [
    "CoupledAt",
    "CoupledPosterior",
    "EPEngine",
    "Engine",
    "Evidence",
    "ExactEngine",
    "Inferred",
    "LaplaceEngine",
    "LocalPosterior",
    "MulticlassEngine",
    "Sparse",
    "SparseEngine",
    "VariationalEngine",
    "sparse_engine_for",
]
