"""Read the likelihood, the exposure and the number of trials that a user passes."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpsift._utils.validation import read_target
from gpsift.likelihoods.base import Likelihood
from gpsift.likelihoods.bernoulli import Binomial, Logit, Probit
from gpsift.likelihoods.gaussian import Gaussian
from gpsift.likelihoods.log_link import Gamma, NegativeBinomial, Poisson
from gpsift.likelihoods.softmax import Softmax
from gpsift.likelihoods.student_t import StudentT

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
# Likelihoods of a regression: y is a number, and there is no number of trials.
REGRESSION = ("gaussian", "student-t", "poisson", "negative-binomial", "gamma")


def read_likelihood(likelihood: Any) -> Likelihood:
    """Return a likelihood unchanged, or make the likelihood that a name denotes."""
    if isinstance(likelihood, Likelihood):
        return likelihood
    if isinstance(likelihood, str) and likelihood in LIKELIHOODS:
        return LIKELIHOODS[likelihood]()
    raise ValueError(f"`likelihood` must be one of {', '.join(LIKELIHOODS)}, or a Likelihood, got {likelihood!r}.")


def read_regression(likelihood: Any) -> Likelihood:
    """Read a likelihood as `read_likelihood` does, and refuse those that do not suit a regression."""
    if not isinstance(likelihood, str) or likelihood in REGRESSION:
        found = LIKELIHOODS[likelihood]() if isinstance(likelihood, str) else likelihood
        if isinstance(found, Likelihood) and not found.predicts_classes and found.size_name != "trials":
            return found
    raise ValueError(
        f"`likelihood` of a regression must be one of {', '.join(REGRESSION)}, or an object of these, got "
        f"{likelihood!r}. For classes there is `GPClassifier`, for all likelihoods `GP`."
    )


def read_size(likelihood: Likelihood, n: int, **given: Any) -> np.ndarray:
    """Return the exposure or number of trials of each observation, 1 without any."""
    values, name = select_size(likelihood, **given), likelihood.size_name
    if values is None or name is None:
        return np.ones(n)
    size = read_target(np.full(n, values) if np.ndim(values) == 0 else values, n, name=name)
    likelihood.check_size(size)
    return size


def select_size(likelihood: Likelihood, **given: Any) -> Any:
    """Return the argument that holds the sizes of this likelihood, or None; refuse sizes that it does not take."""
    for name, values in given.items():
        if values is not None and name != likelihood.size_name:
            raise ValueError(f"`{name}` was given, but a {type(likelihood).__name__} likelihood has none.")
    return None if likelihood.size_name is None else given.get(likelihood.size_name)
