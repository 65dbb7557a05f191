"""Predictive distributions: densities, Kullback-Leibler divergences and the Fisher metric.

The KL measure compares a predictive distribution with itself a small step away. As the step goes to zero, 2 KL / step^2
becomes d^T I d, with d the derivative of the distribution's parameters along the step and I their Fisher information.
`base.py` is the contract; read `gaussian.py` first. The other members are in `bernoulli.py`, `counts.py`,
`continuous.py`, `categorical.py` and `multivariate.py`; `pool.py` is the mixture over draws.

These are distributions of observations, for models that predict a member of the family itself. How observations depend
on a latent function, under some of the same names, is `gpsift.likelihoods`; what follows from that is a mixture.
"""

from gpsift.likelihoods.distributions.base import Family, log1p_excess
from gpsift.likelihoods.distributions.bernoulli import Bernoulli, ProbitBernoulli
from gpsift.likelihoods.distributions.categorical import Categorical
from gpsift.likelihoods.distributions.continuous import Gamma, StudentT
from gpsift.likelihoods.distributions.counts import Binomial, NegativeBinomial, Poisson
from gpsift.likelihoods.distributions.gaussian import Gaussian, gaussian_kl, gaussian_kl_of_change, gaussian_metric
from gpsift.likelihoods.distributions.multivariate import MultivariateNormal
from gpsift.likelihoods.distributions.pool import Pool

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
