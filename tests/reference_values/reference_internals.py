"""Everything by which the stored cases reach beyond the stable public names: what moves in the code moves here only.

The functions take and return plain arrays, models and mappings of them.
"""

from contextlib import ExitStack, contextmanager
from functools import partial
from unittest.mock import patch

import numpy as np

import gpsift as gs
from gpsift.cluster import read_collections
from gpsift.gp import closing, rounds
from gpsift.gp.distributed import standardised
from gpsift.gp.model import choose_inference, make_engine
from gpsift.inference import sparse_engine_for
from gpsift.relevance import points
from gpsift.threads import blas_threads_for

SMALL = (
    (rounds, {"PILOT_ROWS": 60, "LAPLACE_PILOT_ROWS": 50, "EXACT_ROWS": 90, "SAMPLE_ROWS": 120, "MANY_ROWS": 100}),
    (closing, {"KEPT_ROWS": 25}),
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
    scaling = fitted.scaling
    inputs, target = scaling.inputs(X), scaling.target(np.asarray(y, dtype=float))
    beside = np.empty(0)
    inference = choose_inference(model.inference, fitted.likelihood, len(target), samples=False, beside=beside)
    with blas_threads_for(len(target)):
        engine = make_engine(inference, fitted.kernel, fitted.likelihood, inputs, target, size)
        found = engine.evidence(fitted.kernel, fitted.likelihood)
    return found.value, found.gradient


def distributed_evidence(model, fitted, X, y, noise_var=None, size=None):
    """The same for rows of dask collections."""
    rows = read_collections(X, y, noise_var, size).read_as(
        n_columns=model.inference.m,
        chunk_bytes=2**20,
        transform=partial(standardised, fitted.scaling),
    )
    engine = sparse_engine_for(fitted.likelihood).picking(rows, fitted.kernel, model.inference)
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
