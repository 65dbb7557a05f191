"""How hyperparameters are found: a problem in, an estimate out.

`problem.py` states what is maximised, `choices.py` holds the choices `ML2`, `MAP` and `Fixed`, `nuts.py` the sampler
`NUTS`, `sift.py` the choice `Sift`, which switches features on one by one, with `screening.py`. `optimise.py` is the
search from several starts, `coarse.py` the same by way of few rows, `priors.py` has the priors of single values,
`saas.py` one of all length-scales together, `related.py` a start from the hyperparameters of a related model. Read
`problem.py` first. How a sparse model is searched is in the room `sparse`.
"""

from typing import TYPE_CHECKING

from gpsift.hyper.choices import MAP, ML2, Fixed, Hyper
from gpsift.hyper.optimise import Draws, Estimate, Start
from gpsift.hyper.priors import GammaPrior, HalfT, InverseGamma, OnLogScale
from gpsift.hyper.problem import Problem
from gpsift.hyper.related import informed
from gpsift.hyper.saas import SAAS
from gpsift.hyper.sift import Sift
from gpsift.on_demand import on_demand

if TYPE_CHECKING:
    from gpsift.hyper.nuts import NUTS

__all__ = [
    "MAP",
    "ML2",
    "NUTS",
    "SAAS",
    "Draws",
    "Estimate",
    "Fixed",
    "GammaPrior",
    "HalfT",
    "Hyper",
    "InverseGamma",
    "OnLogScale",
    "Problem",
    "Sift",
    "Start",
    "informed",
]

if not TYPE_CHECKING:  # the sampler when it is chosen
    __getattr__, __dir__ = on_demand(__name__, {"NUTS": "gpsift.hyper.nuts"})
