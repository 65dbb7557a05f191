"""Everything by which the stored cases reach beyond the stable public names: what moves in the code moves here only.

The functions take and return plain arrays, models and mappings of them.
"""

from contextlib import ExitStack, contextmanager
from functools import partial
from unittest.mock import patch

import numpy as np

import gpsift as gs
from gpsift.cluster import read_collections
from gpsift.gp import last_pass
from gpsift.gp.cluster_data import standardised
from gpsift.gp.data import LocalData
from gpsift.gp.model import posed
from gpsift.relevance import points
from gpsift.sparse import bound_search, search_for
from gpsift.sparse import search as sparse_search
from gpsift.threads import blas_threads_for

SMALL = (
    (bound_search, {"FIRST_ROWS": 60, "EXACT_ROWS": 90}),
    (sparse_search, {"LAPLACE_ROWS": 50, "SAMPLE_ROWS": 120, "MANY_ROWS": 100}),
    (last_pass, {"KEPT_ROWS": 25}),
    (points, {"KEPT_ROWS": 20}),
)


@contextmanager
def small_samples():
    """Few rows are treated as many are: searched by samples first, and kept for a sample of them only."""
    with ExitStack() as stack:
        for module, sizes in SMALL:
            stack.enter_context(patch.multiple(module, **sizes))
        yield


def evidence(model, fitted, X, y, size):
    """Log evidence, and its gradient for the log parameters of the kernel and then of the likelihood, of a fit to rows.

    Asked anew at the hyperparameters of `fitted`. A sparse model has the inducing points that suit its kernel.
    """
    data = LocalData(X, np.asarray(y, dtype=float), size, None, None, beside=np.empty(0))
    inference = data.choose(model.inference, fitted.likelihood, samples=False)
    rows = data.standardised(fitted.scaling, fitted.likelihood, inference)
    with blas_threads_for(len(X)):
        engine = posed(fitted.kernel, fitted.likelihood, rows, inference, data.names).engine
        found = engine.evidence(fitted.kernel, fitted.likelihood)
    return found.value, found.gradient


def distributed_evidence(model, fitted, X, y, noise_var=None, size=None):
    """The same for rows of dask collections."""
    rows = read_collections(X, y, noise_var, size).read_as(
        n_columns=model.inference.m,
        chunk_bytes=2**20,
        transform=partial(standardised, fitted.scaling),
    )
    engine = search_for(fitted.likelihood).engine.picking(rows, fitted.kernel, model.inference)
    found = engine.evidence(fitted.kernel, fitted.likelihood)
    return found.value, found.gradient


def predicted(reference, X):
    """Moments of observations and of the latent function at points, where they have such, and their derivatives."""
    response = reference.at(reference.inputs.points(X))
    found = {}
    for name, latent in (("observed", False), ("latent", True)):
        distribution = response.distribution(latent=latent)
        found[f"{name} mean"], found[f"{name} var"] = distribution.mean, distribution.var
    for k, gradient in enumerate(response.gradients()):
        found[f"gradient {k}"] = gradient
    return found


def latent_function(reference, X):
    """What `VAR` varies: the latent mean."""
    return reference.at(reference.inputs.points(X)).latent_mean


def search(X, y, measure=None, **options):
    return gs.search(X, y, measure, progress=False, jobs=1, **options)


def forward_projection(fitted, **options):
    return gs.forward_projection(fitted, progress=False, jobs=1, **options)


def stability(X, y, measure=None, **options):
    return gs.stability(X, y, measure, progress=False, jobs=1, **options)


def analyse(frame, target, **options):
    return gs.analyse(frame, target, progress=False, jobs=1, **options)
