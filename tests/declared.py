"""Declarations of hyperparameters by their names."""

import numpy as np

from gpsift.kernels import Constant, Linear, RationalQuadratic
from gpsift.likelihoods import Gamma, Gaussian, NegativeBinomial, StudentT

CLASSES = (RationalQuadratic, Constant, Linear, Gaussian, StudentT, NegativeBinomial, Gamma)
PARAMETERS = {parameter.name: parameter for each in CLASSES for parameter in each.PARAMS}


def declared(kinds):
    """An array of the declarations with these names."""
    return np.array([PARAMETERS[kind] for kind in kinds], dtype=object)
