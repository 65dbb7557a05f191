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


# Those of numbers that come alone, without a number of trials.
REGRESSION = ("gaussian", "student-t", "poisson", "negative-binomial", "gamma")


def read_likelihood(likelihood: Any) -> Likelihood:
    """A likelihood as it is, or the one with this name."""
    if isinstance(likelihood, Likelihood):
        return likelihood
    if isinstance(likelihood, str) and likelihood in LIKELIHOODS:
        return LIKELIHOODS[likelihood]()
    raise ValueError(f"`likelihood` must be one of {', '.join(LIKELIHOODS)}, or a Likelihood, got {likelihood!r}.")


def read_regression(likelihood: Any) -> Likelihood:
    """The same for a regression."""
    if not isinstance(likelihood, str) or likelihood in REGRESSION:
        found = LIKELIHOODS[likelihood]() if isinstance(likelihood, str) else likelihood
        if isinstance(found, Likelihood) and not found.predicts_classes and found.size_name != "trials":
            return found
    raise ValueError(
        f"`likelihood` of a regression must be one of {', '.join(REGRESSION)}, or an object of these, got "
        f"{likelihood!r}. For classes there is `GPClassifier`, for all likelihoods `GP`."
    )
