"""gpsift sifts the inputs of a Gaussian process: which features matter, where, and how sure that is.

>>> import gpsift as gs
>>> from sklearn.datasets import load_diabetes
>>> X, y = load_diabetes(return_X_y=True, as_frame=True)
>>> gp = gs.GP().fit(X, y)
>>> ranking = gs.rank(gp, X, measure=gs.KL())
>>> [ranking.names[j] for j in ranking.order[:3]]
['s5', 'bmi', 'bp']
"""

import importlib
from typing import TYPE_CHECKING, Any

from gpsift import kernels, likelihoods
from gpsift.adapters import as_reference
from gpsift.discovery.division import InOrder
from gpsift.gp import GP, MAP, ML2, NUTS, DrawnGP, FittedGP, Fixed, GammaPrior, HalfT, InverseGamma
from gpsift.hyper import SAAS, OnLogScale, Sift
from gpsift.inputs import Inputs, Points
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.notices import GPSiftWarning
from gpsift.numeric import NumericReference
from gpsift.reference import Reference
from gpsift.relevance import ARD, KL, RATE, VAR, Derivative, Measure, rank
from gpsift.results import (
    Attribution,
    Comparison,
    Discoveries,
    Effects,
    Interactions,
    Path,
    Power,
    Prediction,
    Projection,
    Quality,
    Ranking,
    Stability,
    Suggestion,
    VarianceShares,
)
from gpsift.selection.forward import forward_projection
from gpsift.selection.held_out import Folds, HeldOut, LeaveOneOut, TestSet
from gpsift.selection.orders import Backward, ForwardProjection, Order, Ranked
from gpsift.selection.projection import project
from gpsift.selection.search import search
from gpsift.selection.sizes import suggest_size
from gpsift.selection.stability import stability
from gpsift.selection.units import Features
from gpsift.sparse import Sparse
from gpsift.storage import load, save
from gpsift.version import __version__
from gpsift.work import Work

if TYPE_CHECKING:
    from gpsift import datasets
    from gpsift.analysis import Analysis, Reading, Selection, analyse
    from gpsift.analysis.compared import compare
    from gpsift.decomposition.average import effects
    from gpsift.decomposition.explain import explain
    from gpsift.decomposition.pairs import interactions
    from gpsift.decomposition.shares import variance_shares
    from gpsift.discovery.discover import discover
    from gpsift.estimators import GPClassifier, GPRegressor
    from gpsift.page import report
    from gpsift.planning.power import power
    from gpsift.selector import GPSelector, importance

__all__ = [
    "ARD",
    "GP",
    "KL",
    "MAP",
    "ML2",
    "NUTS",
    "RATE",
    "SAAS",
    "VAR",
    "Analysis",
    "Attribution",
    "Backward",
    "Comparison",
    "Constant",
    "Derivative",
    "Discoveries",
    "DrawnGP",
    "Effects",
    "Features",
    "FittedGP",
    "Fixed",
    "Folds",
    "ForwardProjection",
    "GPClassifier",
    "GPRegressor",
    "GPSelector",
    "GPSiftWarning",
    "GammaPrior",
    "HalfT",
    "HeldOut",
    "InOrder",
    "Inputs",
    "Interactions",
    "InverseGamma",
    "LeaveOneOut",
    "Linear",
    "Matern32",
    "Matern52",
    "Measure",
    "NumericReference",
    "OnLogScale",
    "Order",
    "Path",
    "Points",
    "Power",
    "Prediction",
    "Projection",
    "Quality",
    "Ranked",
    "Ranking",
    "RationalQuadratic",
    "Reading",
    "Reference",
    "Selection",
    "Sift",
    "Sparse",
    "SquaredExponential",
    "Stability",
    "Suggestion",
    "TestSet",
    "VarianceShares",
    "Work",
    "__version__",
    "analyse",
    "as_reference",
    "compare",
    "datasets",
    "discover",
    "effects",
    "explain",
    "forward_projection",
    "importance",
    "interactions",
    "kernels",
    "likelihoods",
    "load",
    "power",
    "project",
    "rank",
    "report",
    "save",
    "search",
    "stability",
    "suggest_size",
    "variance_shares",
]


# Loaded when it is asked for, not with the package: what brings scikit-learn, pandas or a plotting library, and the
# verbs that follow a ranking, each with a room of its own.
LAZY = {
    "Analysis": "gpsift.analysis",
    "Reading": "gpsift.analysis",
    "Selection": "gpsift.analysis",
    "GPClassifier": "gpsift.estimators",
    "GPRegressor": "gpsift.estimators",
    "GPSelector": "gpsift.selector",
    "analyse": "gpsift.analysis",
    "compare": "gpsift.analysis.compared",
    "discover": "gpsift.discovery.discover",
    "effects": "gpsift.decomposition.average",
    "explain": "gpsift.decomposition.explain",
    "importance": "gpsift.selector",
    "interactions": "gpsift.decomposition.pairs",
    "power": "gpsift.planning.power",
    "report": "gpsift.page",
    "variance_shares": "gpsift.decomposition.shares",
}


def __getattr__(name: str) -> Any:
    if name in LAZY:
        return getattr(importlib.import_module(LAZY[name]), name)
    if name == "datasets":
        return importlib.import_module("gpsift.datasets")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
