"""gpsift sifts the inputs of a Gaussian process: which features matter, where, and how sure that is.

>>> import gpsift as gs
>>> from sklearn.datasets import load_diabetes
>>> X, y = load_diabetes(return_X_y=True, as_frame=True)
>>> gp = gs.GP().fit(X, y)
>>> ranking = gs.rank(gp, X, measure=gs.KL())
>>> [ranking.names[j] for j in ranking.order[:3]]
['s5', 'bmi', 'bp']
"""

from typing import TYPE_CHECKING

from gpsift import kernels, likelihoods
from gpsift.gp import GP, MAP, ML2, DrawnGP, FittedGP, Fixed, GammaPrior, HalfT, InverseGamma
from gpsift.hyper import SAAS, OnLogScale, Sift
from gpsift.inputs import Inputs, Points
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.notices import GPSiftWarning
from gpsift.on_demand import on_demand
from gpsift.reference import Reference
from gpsift.relevance import ARD, KL, RATE, VAR, Derivative, Measure, rank
from gpsift.results import Prediction, Quality, Ranking
from gpsift.sparse import Sparse
from gpsift.version import __version__

if TYPE_CHECKING:
    from gpsift import datasets
    from gpsift.adapters import as_reference
    from gpsift.analysis import Analysis, Reading, Selection, analyse
    from gpsift.analysis.compared import compare
    from gpsift.decomposition.average import effects
    from gpsift.decomposition.explain import explain
    from gpsift.decomposition.pairs import interactions
    from gpsift.decomposition.shares import variance_shares
    from gpsift.discovery.discover import discover
    from gpsift.discovery.division import InOrder
    from gpsift.estimators import GPClassifier, GPRegressor
    from gpsift.hyper import NUTS
    from gpsift.numeric import NumericReference
    from gpsift.page import report
    from gpsift.planning.power import power
    from gpsift.results import (
        Attribution,
        Comparison,
        Discoveries,
        Effects,
        Interactions,
        Path,
        Power,
        Projection,
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
    from gpsift.selector import GPSelector, importance
    from gpsift.storage.load import load
    from gpsift.storage.save import save
    from gpsift.work import Work

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


# Rooms that come when they are asked for.
ROOMS = ("adapters", "cluster", "datasets", "discovery", "numeric", "selection", "storage", "work")

if not TYPE_CHECKING:  # checkers see the imports above
    # Not loaded with the package: what a fit and a ranking do without. Some of it brings scikit-learn, pandas or a
    # plotting library.
    __getattr__, __dir__ = on_demand(
        __name__,
        {
            "Analysis": "gpsift.analysis",
            "Attribution": "gpsift.results",
            "Backward": "gpsift.selection.orders",
            "Comparison": "gpsift.results",
            "Discoveries": "gpsift.results",
            "Effects": "gpsift.results",
            "Features": "gpsift.selection.units",
            "Folds": "gpsift.selection.held_out",
            "ForwardProjection": "gpsift.selection.orders",
            "GPClassifier": "gpsift.estimators",
            "GPRegressor": "gpsift.estimators",
            "GPSelector": "gpsift.selector",
            "HeldOut": "gpsift.selection.held_out",
            "InOrder": "gpsift.discovery.division",
            "Interactions": "gpsift.results",
            "LeaveOneOut": "gpsift.selection.held_out",
            "NUTS": "gpsift.hyper",
            "NumericReference": "gpsift.numeric",
            "Order": "gpsift.selection.orders",
            "Path": "gpsift.results",
            "Power": "gpsift.results",
            "Projection": "gpsift.results",
            "Ranked": "gpsift.selection.orders",
            "Reading": "gpsift.analysis",
            "Selection": "gpsift.analysis",
            "Stability": "gpsift.results",
            "Suggestion": "gpsift.results",
            "TestSet": "gpsift.selection.held_out",
            "VarianceShares": "gpsift.results",
            "Work": "gpsift.work",
            "analyse": "gpsift.analysis",
            "as_reference": "gpsift.adapters",
            "compare": "gpsift.analysis.compared",
            **dict.fromkeys(ROOMS),
            "discover": "gpsift.discovery.discover",
            "effects": "gpsift.decomposition.average",
            "explain": "gpsift.decomposition.explain",
            "forward_projection": "gpsift.selection.forward",
            "importance": "gpsift.selector",
            "interactions": "gpsift.decomposition.pairs",
            "load": "gpsift.storage.load",
            "power": "gpsift.planning.power",
            "project": "gpsift.selection.projection",
            "report": "gpsift.page",
            "save": "gpsift.storage.save",
            "search": "gpsift.selection.search",
            "stability": "gpsift.selection.stability",
            "suggest_size": "gpsift.selection.sizes",
            "variance_shares": "gpsift.decomposition.shares",
        },
    )
