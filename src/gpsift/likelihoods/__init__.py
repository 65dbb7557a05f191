"""How observations depend on the latent function: p(y | f), its derivatives and its parameters.

`base.py` is the contract, and says what a likelihood can: whether its posterior has a closed form, which inference
suits it, what it takes beside y. The other files are the members. A likelihood does not depend on kernels or data sets.
"""

from gpsift.likelihoods.base import Likelihood
from gpsift.likelihoods.bernoulli import Binomial, Logit, Probit
from gpsift.likelihoods.gaussian import Gaussian
from gpsift.likelihoods.log_link import Gamma, NegativeBinomial, Poisson
from gpsift.likelihoods.parse import LIKELIHOODS, given_size, read_likelihood, read_regression, read_size
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
    "given_size",
    "read_likelihood",
    "read_regression",
    "read_size",
]
