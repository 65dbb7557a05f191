"""All cases, and how one is computed."""

import warnings

import numpy as np
import reference_cases  # noqa: F401
import reference_peers  # noqa: F401
import reference_selection  # noqa: F401
from reference_data import CASES

__all__ = ["CASES", "computed"]


def computed(name):
    """The numbers of a case, in plain arrays; what the models warn of is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CASES[name].compute()
    return {entry: np.array(values, dtype=float) for entry, values in found.items()}
