"""Predictive distributions: densities, Kullback-Leibler divergences and the Fisher metric.

The KL measure compares a predictive distribution with itself a small step away. As the step goes to zero, 2 KL / step^2
becomes d^T I d, with d the derivative of the distribution's parameters along the step and I their Fisher information.
`base.py` is the contract, `gaussian.py` and `bernoulli.py` are the members.
"""

from gpsift.families.base import Family, log1p_excess
from gpsift.families.bernoulli import Bernoulli, ProbitBernoulli
from gpsift.families.gaussian import Gaussian, gaussian_kl, gaussian_kl_of_change, gaussian_metric

__all__ = [
    "Bernoulli",
    "Family",
    "Gaussian",
    "ProbitBernoulli",
    "gaussian_kl",
    "gaussian_kl_of_change",
    "gaussian_metric",
    "log1p_excess",
]
