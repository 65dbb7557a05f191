"""gpsift sifts the inputs of a Gaussian process: which features matter, where, and how sure that is.

>>> import gpsift as gs
>>> from sklearn.datasets import load_diabetes
>>> X, y = load_diabetes(return_X_y=True, as_frame=True)
>>> gp = gs.GP().fit(X, y)
>>> ranking = gs.rank(gp, X, measure=gs.KL())
>>> [ranking.names[j] for j in ranking.order[:3]]
['s5', 'bmi', 'bp']
"""

from typing import TYPE_CHECKING, Any

from gpsift import kernels, likelihoods
from gpsift.gp import GP, MAP, ML2, NUTS, DrawnGP, FittedGP, Fixed, GammaPrior, HalfT, InverseGamma
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.notices import GPSiftWarning
from gpsift.reference import Reference
from gpsift.relevance import ARD, KL, VAR, Measure, rank
from gpsift.results import Prediction, Quality, Ranking
from gpsift.version import __version__

if TYPE_CHECKING:
    from gpsift.estimators import GPClassifier, GPRegressor

__all__ = [
    "ARD",
    "GP",
    "KL",
    "MAP",
    "ML2",
    "NUTS",
    "VAR",
    "Constant",
    "DrawnGP",
    "FittedGP",
    "Fixed",
    "GPClassifier",
    "GPRegressor",
    "GPSiftWarning",
    "GammaPrior",
    "HalfT",
    "InverseGamma",
    "Linear",
    "Matern32",
    "Matern52",
    "Measure",
    "Prediction",
    "Quality",
    "Ranking",
    "RationalQuadratic",
    "Reference",
    "SquaredExponential",
    "__version__",
    "kernels",
    "likelihoods",
    "rank",
]


def __getattr__(name: str) -> Any:
    # scikit-learn loads when one of its estimators is asked for, not with the package.
    if name in ("GPClassifier", "GPRegressor"):
        from gpsift import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
