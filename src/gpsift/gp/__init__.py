"""Our models: data in, a fitted Gaussian process out.

`model.py` is the front (`GP`) and the recipe of a fit, `fitted.py` what it returns, `multiclass.py` the same for
several classes, `drawn.py` for drawn hyperparameters. The recipe asks the rows through `data.py`, or `cluster_data.py`
if they are in dask collections (with `last_pass.py`); `checks.py` refuses what cannot be fitted, `choosing.py` chooses
the inference (by `speed.py`), `scaling.py` the units. `quality.py` is the leave-one-out sheet, `fitreport.py` how a fit
went. How hyperparameters are found is in the room `hyper`, the mathematics of posteriors in `inference` and `sparse`.
"""

from typing import TYPE_CHECKING

from gpsift.gp.drawn import DrawnGP, one_of
from gpsift.gp.fitted import FittedGP
from gpsift.gp.model import GP
from gpsift.gp.multiclass import FittedMulticlass
from gpsift.hyper import MAP, ML2, Fixed, GammaPrior, HalfT, InverseGamma
from gpsift.on_demand import on_demand

if TYPE_CHECKING:
    from gpsift.hyper import NUTS

__all__ = [
    "GP",
    "MAP",
    "ML2",
    "NUTS",
    "DrawnGP",
    "FittedGP",
    "FittedMulticlass",
    "Fixed",
    "GammaPrior",
    "HalfT",
    "InverseGamma",
    "one_of",
]

if not TYPE_CHECKING:  # the sampler when it is chosen
    __getattr__, __dir__ = on_demand(__name__, {"NUTS": "gpsift.hyper.nuts"})
