"""Our models: data in, a fitted Gaussian process out.

`model.py` is the front (`GP`), `fitted.py` what its `fit` returns, `multiclass.py` the same for several classes,
`distributed.py` for rows in dask collections. Behind them: `problem.py` states what is optimised, `hyper.py` holds
the choices `ML2`, `MAP` and `Fixed`, `optimise.py` the search from several starts, `rounds.py` the search of sparse
models, `quality.py` the leave-one-out sheet. The mathematics of posteriors is in the room `inference`.
"""

from gpsift.gp.distributed import DistributedGP
from gpsift.gp.drawn import DrawnGP
from gpsift.gp.fitted import FittedGP
from gpsift.gp.model import GP
from gpsift.gp.multiclass import FittedMulticlass
from gpsift.hyper.choices import MAP, ML2, Fixed
from gpsift.hyper.nuts import NUTS
from gpsift.hyper.priors import GammaPrior, HalfT, InverseGamma

__all__ = [
    "GP",
    "MAP",
    "ML2",
    "NUTS",
    "DistributedGP",
    "DrawnGP",
    "FittedGP",
    "FittedMulticlass",
    "Fixed",
    "GammaPrior",
    "HalfT",
    "InverseGamma",
]
