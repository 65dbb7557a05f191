"""How observations depend on the latent function: p(y | f), its derivatives and its parameters.

`base.py` is the contract, and says what a likelihood can: whether its posterior has a closed form, which inference
suits it, what it takes beside y. The other files are the members. A likelihood knows nothing of kernels or data sets.
"""

from gpsift.likelihoods.base import Likelihood
from gpsift.likelihoods.bernoulli import Binomial, Logit, Probit
from gpsift.likelihoods.continuous import Gamma, StudentT
from gpsift.likelihoods.counts import NegativeBinomial, Poisson
from gpsift.likelihoods.gaussian import Gaussian
from gpsift.likelihoods.names import LIKELIHOODS, read_likelihood, read_regression
from gpsift.likelihoods.sizes import given_size, read_size
from gpsift.likelihoods.softmax import Softmax

__all__ = [
    "LIKELIHOODS",
    "Binomial",
    "Gamma",
    "Gaussian",
    "Likelihood",
    "Logit",
    "NegativeBinomial",
    "Poisson",
    "Probit",
    "Softmax",
    "StudentT",
    "given_size",
    "read_likelihood",
    "read_regression",
    "read_size",
]
