"""Everything by which the stored cases reach beyond the stable public names: what moves in the code moves here only.

The functions take and return plain arrays, models and mappings of them.
"""

from contextlib import ExitStack, contextmanager
from functools import partial
from unittest.mock import patch

import numpy as np

import gpsift as gs
from gpsift._utils.rows import Rows
from gpsift._utils.threads import blas_threads_for
from gpsift.gp import quality
from gpsift.gp.choose_inference import choose_inference, dense_engine
from gpsift.gp.data import standardise_rows
from gpsift.gp.sparse import Sparse, search
from gpsift.gp.sparse.engine import local_rows
from gpsift.gp.sparse.search import engine_for
from gpsift.reference.dask.rows import read_collections
from gpsift.relevance import points

SMALL = (
    (search, {"FIRST_ROWS": 60, "EXACT_ROWS": 90, "LAPLACE_ROWS": 50, "SAMPLE_ROWS": 120, "MANY_ROWS": 100}),
    (quality, {"KEPT_ROWS": 25}),
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
    scaling, likelihood = fitted.scaling, fitted.likelihood
    inputs, target = scaling.inputs(X), scaling.target(np.asarray(y, dtype=float))
    inference = choose_inference(model.inference, likelihood, len(target), samples=False, prototype=np.empty(0))
    known = np.asarray(likelihood.noise_var) if likelihood.knows_noise else None
    rows = Rows(inputs, target, known, None if likelihood.has_closed_form else size)
    with blas_threads_for(len(target)):
        if isinstance(inference, Sparse):
            engine = engine_for(likelihood).of(local_rows(rows, inference), fitted.kernel, inference)
        else:
            engine = dense_engine(inference, likelihood, rows)
            engine.infer(fitted.kernel, likelihood)  # to all digits, from which the evidence starts
        found = engine.evidence(fitted.kernel, likelihood)
    return found.value, found.gradient


def distributed_evidence(model, fitted, X, y, noise_var=None, size=None):
    """The same for rows of dask collections."""
    rows = read_collections(X, y, noise_var, size).read_as(
        n_columns=model.inference.m,
        chunk_bytes=2**20,
        transform=partial(standardise_rows, fitted.scaling),
    )
    engine = engine_for(fitted.likelihood).of(rows, fitted.kernel, model.inference)
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


ALONE = gs.Work(jobs=1, progress=False)


def features(options):
    """The choice of features among other options, which it is taken out of."""
    names = ("groups", "categorical", "force")
    return gs.Features(**{name: options.pop(name) for name in names if name in options})


def search(X, y, measure=None, *, cv=None, validate_search=True, seed=0, refit=False, **options):
    if isinstance(cv, int):
        cv = gs.Folds(cv, validate_search, seed)
    elif isinstance(cv, tuple):
        cv = gs.TestSet(*cv)
    order = gs.Backward(measure) if refit else measure
    return gs.search(X, y, order, cv=cv, features=features(options), work=ALONE, **options)


def forward_projection(fitted, **options):
    return gs.forward_projection(fitted, work=ALONE, **options)


def stability(X, y, measure=None, **options):
    return gs.stability(X, y, measure, features=features(options), work=ALONE, **options)


def analyse(frame, target, *, cv=None, **options):
    return gs.analyse(frame, target, select=gs.Selection(cv), work=ALONE, **options)
