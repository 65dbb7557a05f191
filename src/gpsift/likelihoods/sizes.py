"""Exposure and number of trials, as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpsift._utils.validation import read_target
from gpsift.likelihoods.base import Likelihood


def read_size(likelihood: Likelihood, n: int, **given: Any) -> np.ndarray:
    """The exposure or number of trials of each observation; 1 where the likelihood has none or none was given."""
    values, name = given_size(likelihood, **given), likelihood.size_name
    if values is None or name is None:
        return np.ones(n)
    size = read_target(np.full(n, values) if np.ndim(values) == 0 else values, n, name=name)
    likelihood.check_size(size)
    return size


def given_size(likelihood: Likelihood, **given: Any) -> Any:
    """What was given of the sizes that the likelihood has, or None; others are refused."""
    for name, values in given.items():
        if values is not None and name != likelihood.size_name:
            raise ValueError(f"`{name}` was given, but a {type(likelihood).__name__} likelihood has none.")
    return None if likelihood.size_name is None else given.get(likelihood.size_name)
