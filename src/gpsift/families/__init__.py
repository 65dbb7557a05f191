"""Predictive distributions: densities, Kullback-Leibler divergences and the Fisher metric.

The KL measure compares a predictive distribution with itself a small step away. As the step goes to zero, 2 KL / step^2
becomes d^T I d, with d the derivative of the distribution's parameters along the step and I their Fisher information.
`base.py` is the contract; read `gaussian.py` first. The other members are in `bernoulli.py`, `counts.py`,
`continuous.py`, `categorical.py` and `multivariate.py`; `pool.py` is the mixture over draws.

These are distributions of observations, for models that predict a member of the family itself. How observations depend
on a latent function, under some of the same names, is `gpsift.likelihoods`; what follows from that is a mixture.
"""

from gpsift.families.base import Family, log1p_excess
from gpsift.families.bernoulli import Bernoulli, ProbitBernoulli
from gpsift.families.categorical import Categorical
from gpsift.families.continuous import Gamma, StudentT
from gpsift.families.counts import Binomial, NegativeBinomial, Poisson
from gpsift.families.gaussian import Gaussian, gaussian_kl, gaussian_kl_of_change, gaussian_metric
from gpsift.families.multivariate import MultivariateNormal
from gpsift.families.pool import Pool

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Family",
    "Gamma",
    "Gaussian",
    "MultivariateNormal",
    "NegativeBinomial",
    "Poisson",
    "Pool",
    "ProbitBernoulli",
    "StudentT",
    "gaussian_kl",
    "gaussian_kl_of_change",
    "gaussian_metric",
    "log1p_excess",
]
