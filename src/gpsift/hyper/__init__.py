"""How hyperparameters are found: a problem in, an estimate out.

`problem.py` states what is maximised, `choices.py` holds the choices `ML2`, `MAP` and `Fixed`, `nuts.py` the sampler
`NUTS`, `optimise.py` the search from several starts, `priors.py` the priors, `related.py` a start from the
hyperparameters of a related model. Read `problem.py` first. How a sparse model is searched is in the room `sparse`.
"""

from gpsift.hyper.choices import MAP, ML2, Fixed, Hyper
from gpsift.hyper.nuts import NUTS
from gpsift.hyper.optimise import Draws, Estimate, Start
from gpsift.hyper.priors import GammaPrior, HalfT, InverseGamma
from gpsift.hyper.problem import Problem
from gpsift.hyper.related import informed
from gpsift.hyper.sift import Sift

__all__ = [
    "MAP",
    "ML2",
    "NUTS",
    "Draws",
    "Estimate",
    "Fixed",
    "GammaPrior",
    "HalfT",
    "Hyper",
    "InverseGamma",
    "Problem",
    "Sift",
    "Start",
    "informed",
]
