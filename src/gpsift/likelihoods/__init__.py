"""Likelihoods p(y | f), with their derivatives and parameters.

`base.py` has the interface and the capabilities of a likelihood: whether the posterior has a closed form, which
inference suits it, which numbers it needs besides y. `mixture.py` averages a likelihood over the latent value,
`parse.py` reads the choices of users, and each other file has one family. None depends on kernels or data sets.
"""

from gpsift.likelihoods.base import Likelihood
from gpsift.likelihoods.bernoulli import Binomial, Logit, Probit
from gpsift.likelihoods.gaussian import Gaussian
from gpsift.likelihoods.log_link import Gamma, NegativeBinomial, Poisson
from gpsift.likelihoods.parse import LIKELIHOODS, read_likelihood, read_regression, read_size, select_size
from gpsift.likelihoods.softmax import Softmax
from gpsift.likelihoods.student_t import StudentT

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
    "read_likelihood",
    "read_regression",
    "read_size",
    "select_size",
]
