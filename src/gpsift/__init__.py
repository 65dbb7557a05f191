"""gpsift sifts the inputs of a Gaussian process: which features matter, where, and how sure that is.

>>> import gpsift as gs
>>> from sklearn.datasets import load_diabetes
>>> X, y = load_diabetes(return_X_y=True, as_frame=True)
>>> gp = gs.GP().fit(X, y)
>>> ranking = gs.rank(gp, X, measure=gs.KL())
>>> [ranking.names[j] for j in ranking.order[:3]]
['s5', 'bmi', 'bp']
"""

from gpsift import kernels
from gpsift.gp import GP, MAP, ML2, FittedGP, Fixed, HalfT, InverseGamma
from gpsift.kernels import Constant, Linear, Matern32, Matern52, RationalQuadratic, SquaredExponential
from gpsift.notices import GPSiftWarning
from gpsift.reference import Reference
from gpsift.relevance import ARD, KL, VAR, Measure, rank
from gpsift.results import Prediction, Quality, Ranking
from gpsift.version import __version__

__all__ = [
    "ARD",
    "GP",
    "KL",
    "MAP",
    "ML2",
    "VAR",
    "Constant",
    "FittedGP",
    "Fixed",
    "GPSiftWarning",
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
    "rank",
]
