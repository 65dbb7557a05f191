"""Processes of toylib."""

from typing import Literal

import numpy as np
import toylib
from scipy.linalg import cho_solve

from gpsift.adapters.kernels import Columns, NoClosedForm, add_up, radial_term
from gpsift.adapters.predictions import LibraryModel
from gpsift.adapters.reading import NormalNoise, check_derivatives, closed_form_or_none, read_inputs, read_only
from gpsift.kernels import SquaredExponential
from gpsift.reference.posterior import Posterior, TriangularFactor
from gpsift.reference.response import LatentGP

Derivatives = Literal["auto", "closed", "numeric"]


def reference_of(model, *, derivatives: Derivatives = "auto", feature_names=None):
    """A process of toylib as a model that can be ranked."""
    check_derivatives(derivatives, Derivatives)
    if not isinstance(model, toylib.Process):
        raise TypeError(f"{type(model).__name__} of toylib is not known here. Known is Process.")
    X = read_only(model.X)
    inputs, predictive = read_inputs(X.shape[1], X, names=feature_names), NormalNoise(model.noise)
    closed = closed_form_or_none(lambda: posterior_of(model, X), model, derivatives, "finite differences")
    if closed is None:
        return LibraryModel(model.predict, inputs, predictive, what="predict")
    return LatentGP(closed, predictive, inputs, y_center=model.mean)


def posterior_of(model, X):
    """The triple: support points, weights, and a factor of the matrix between them."""
    if type(model) is not toylib.Process:  # a subclass may predict something else
        raise NoClosedForm(type(model).__name__)
    columns = Columns(np.arange(X.shape[1]), X.shape[1])
    term = radial_term(SquaredExponential, columns, model.scales, signal_var=model.variance)
    kernel, _ = add_up([term], "the covariance")
    L = model.root
    weights = cho_solve((L, True), model.y - model.mean)
    return Posterior(kernel, X, weights, (TriangularFactor(L),), site_var=np.full(len(X), model.noise))
