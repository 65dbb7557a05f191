"""How observations depend on the latent function: p(y | f), its derivatives and its parameters.

`base.py` is the contract; the other files are the members. A likelihood knows nothing of kernels or data sets.
"""

from gpsift.likelihoods.base import Likelihood
from gpsift.likelihoods.bernoulli import Binomial, Logit, Probit
from gpsift.likelihoods.continuous import Gamma, StudentT
from gpsift.likelihoods.counts import NegativeBinomial, Poisson
from gpsift.likelihoods.gaussian import Gaussian, KnownNoise
from gpsift.likelihoods.sizes import given_size, read_size
from gpsift.likelihoods.softmax import Softmax

__all__ = [
    "Binomial",
    "Gamma",
    "Gaussian",
    "KnownNoise",
    "Likelihood",
    "Logit",
    "NegativeBinomial",
    "Poisson",
    "Probit",
    "Softmax",
    "StudentT",
    "given_size",
    "read_size",
]
