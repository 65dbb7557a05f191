"""Likelihoods by the names that users give them."""

from __future__ import annotations

from typing import Any

from gpsift.likelihoods.base import Likelihood
from gpsift.likelihoods.bernoulli import Binomial, Logit, Probit
from gpsift.likelihoods.continuous import Gamma, StudentT
from gpsift.likelihoods.counts import NegativeBinomial, Poisson
from gpsift.likelihoods.gaussian import Gaussian
from gpsift.likelihoods.softmax import Softmax

LIKELIHOODS: dict[str, type[Likelihood]] = {
    "gaussian": Gaussian,
    "bernoulli": Probit,
    "probit": Probit,
    "logit": Logit,
    "softmax": Softmax,
    "binomial": Binomial,
    "poisson": Poisson,
    "negative-binomial": NegativeBinomial,
    "gamma": Gamma,
    "student-t": StudentT,
}


def read_likelihood(likelihood: Any) -> Likelihood:
    """A likelihood as it is, or the one with this name."""
    if isinstance(likelihood, Likelihood):
        return likelihood
    if isinstance(likelihood, str) and likelihood in LIKELIHOODS:
        return LIKELIHOODS[likelihood]()
    raise ValueError(f"`likelihood` must be one of {', '.join(LIKELIHOODS)}, or a Likelihood, got {likelihood!r}.")
