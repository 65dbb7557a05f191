"""Predictive distributions: densities, Kullback-Leibler divergences and the Fisher metric.

The KL measure compares the predictive distribution at a point with that a small step away. As the step goes to zero,
2 KL / step^2 becomes d^T I d, with d the derivative of the distribution's parameters along the step and I their Fisher
information. `base.py` has the interface, and the mixture over draws of hyperparameters; read `gaussian.py` first. The
other families are in `classes.py`, `counts.py` and `continuous.py`.

A class of this package is the distribution of an observation y at each point. A class of the same name in
`gpsift.likelihoods` is the distribution of y given a latent value; averaged over the latent value it becomes a mixture
(`gpsift.likelihoods.mixture`).
"""

from gpsift.likelihoods.distributions.base import Distribution, Pool, log1p_excess
from gpsift.likelihoods.distributions.classes import Bernoulli, Categorical, ProbitBernoulli
from gpsift.likelihoods.distributions.continuous import Gamma, StudentT
from gpsift.likelihoods.distributions.counts import Binomial, NegativeBinomial, Poisson
from gpsift.likelihoods.distributions.gaussian import (
    Gaussian,
    MultivariateNormal,
    gaussian_kl,
    gaussian_kl_of_change,
    gaussian_metric,
)

__all__ = [
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Distribution",
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
