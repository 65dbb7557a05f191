"""Our engine: data in, a fitted Gaussian process out.

`model.py` is the front (`GP` and what its `fit` returns). Behind it: `problem.py` states what is optimised,
`hyper.py` holds the choices `ML2`, `MAP` and `Fixed`, `optimise.py` the search from several starts, `exact.py` the
mathematics of exact inference and `inplace.py` its fast twin for the default model, `quality.py` the leave-one-out
sheet. Read `exact.py` first.
"""

from gpsift.gp.fitted import FittedGP
from gpsift.gp.hyper import MAP, ML2, Fixed
from gpsift.gp.model import GP
from gpsift.gp.priors import HalfT, InverseGamma

__all__ = ["GP", "MAP", "ML2", "FittedGP", "Fixed", "HalfT", "InverseGamma"]
