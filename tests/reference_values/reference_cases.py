"""Our own models at given hyperparameters: every likelihood, kernel, inference and measure."""

from itertools import pairwise

import numpy as np
import reference_internals as internals
from reference_data import (
    FEW_MEASURES,
    KERNEL,
    LIKELIHOODS,
    MEASURES,
    NORMAL_VAR,
    REALS,
    X_NEW,
    N,
    X,
    case,
    predictions,
    prefixed,
    scores,
    sheet,
)

import gpsift as gs

SPARSE = {"sparse, points": gs.Sparse(m=9, near_rows=0, chunk_bytes=8 * 9 * 7)}
CELLS = {"sparse, cells": gs.Sparse(m=5, near_rows=8), "sparse, cells if better": gs.Sparse(m=4)}
VARIATIONAL = {"sparse": gs.Sparse(m=9, chunk_bytes=8 * 9 * 7)}
INFERENCES = {
    "gaussian": {"exact": "exact", "laplace": "laplace", **SPARSE, **CELLS},
    "known noise": {"exact": "exact", **SPARSE, **CELLS},
    "probit": {"ep": "ep", "laplace": "laplace", **VARIATIONAL},
    "logit": {"ep": "ep", "laplace": "laplace", **VARIATIONAL},
    "softmax": {"laplace": "laplace"},
    "binomial": {"ep": "ep", "laplace": "laplace", **VARIATIONAL},
    "poisson": {"ep": "ep", "laplace": "laplace", **VARIATIONAL},
    "negative binomial": {"laplace": "laplace", **VARIATIONAL},
    "gamma": {"laplace": "laplace", **VARIATIONAL},
    "student-t": {"laplace": "laplace"},
}


def model_of(likelihood, inference, hyper=None, **choices):
    name, _, _, params = LIKELIHOODS[likelihood]
    hyper = gs.Fixed(**KERNEL, **params) if hyper is None else hyper
    return gs.GP(likelihood=name, inference=inference, hyper=hyper, **choices)


def everything(model, likelihood, measures=MEASURES):
    """All that is computed of a model of our own."""
    _, y, sizes, _ = LIKELIHOODS[likelihood]
    fitted = model.fit(X, y, **sizes)
    new_sizes = {name: 2.0 for name in sizes if name != "noise_var"}
    size = next((values for name, values in sizes.items() if name != "noise_var"), np.ones(N))
    value, gradient = internals.evidence(model, fitted, X, y, size)
    found = {
        "log evidence": fitted.log_marginal_likelihood,
        "log evidence, asked anew": value,
        "gradient of the log evidence": gradient,
        **prefixed("left out", sheet(fitted)),
        **prefixed("new", predictions(fitted, X_NEW, **new_sizes)),
        **prefixed("training", predictions(fitted, X, **sizes_of_points(sizes))),
        **prefixed("at training points", scores(fitted, None, measures)),
        **prefixed("at new points", scores(fitted, X_NEW, FEW_MEASURES)),
    }
    if likelihood != "softmax":
        found["mean gradient"], found["variance gradient"] = fitted.gradients(X_NEW)
    return found


def sizes_of_points(sizes):
    return {name: values for name, values in sizes.items() if name != "noise_var"}


def section_of(likelihood, inference):
    closed = likelihood in ("gaussian", "known noise") and inference != "laplace"
    return "fixed" if closed else "iterated"


def measures_of(likelihood, inference):
    """Distances of counts and of positive numbers are sums over many nodes: all measures in one way of inference."""
    return MEASURES if inference == "laplace" or likelihood not in SLOW else FEW_MEASURES


SLOW = ("poisson", "negative binomial", "gamma")
for likelihood, inferences in INFERENCES.items():
    for label, inference in inferences.items():
        case(section_of(likelihood, inference), f"{likelihood}, {label}")(
            lambda likelihood=likelihood, inference=inference: everything(
                model_of(likelihood, inference), likelihood, measures_of(likelihood, inference)
            )
        )

SE, PLAIN = gs.SquaredExponential, {"lengthscale": KERNEL["lengthscale"], "signal_var": 1.4}
KERNELS = {
    "squared exponential": SE(**PLAIN),
    "squared exponential + constant": SE(**PLAIN) + gs.Constant(0.3),
    "Matern 3/2 + constant": gs.Matern32(**PLAIN) + gs.Constant(0.3),
    "Matern 5/2 + constant": gs.Matern52(**PLAIN) + gs.Constant(0.3),
    "rational quadratic": gs.RationalQuadratic(**PLAIN, shape=0.8),
    "linear": gs.Linear(np.array([0.8, 0.3, 0.1])),
    "linear + constant, one slope": gs.Linear(0.5) + gs.Constant(0.3),
    "squared exponential + linear + constant": SE(**PLAIN) + gs.Linear(0.3) + gs.Constant(0.3),
    "sum of two length-scales": SE(**PLAIN) + gs.Matern32(3.0, 0.5),
    "shared length-scale": SE(1.3, 1.4, shared=True) + gs.Constant(0.3),
    "shared length-scale, Matern 5/2": gs.Matern52(1.3, 1.4, shared=True) + gs.Linear(0.2),
}


def kernel_case(kernel, likelihood, inference):
    params = LIKELIHOODS[likelihood][3]
    model = model_of(likelihood, inference, gs.Fixed(**params), kernel=kernel)
    return everything(model, likelihood, FEW_MEASURES)


for label, kernel in KERNELS.items():
    points = 9 if kernel.lengthscales else 2  # three or more explain all that is linear, up to rounding
    for likelihood, inference in (
        ("gaussian", "exact"),
        ("known noise", gs.Sparse(m=points, near_rows=0)),
        ("student-t", "laplace"),
        ("probit", gs.Sparse(m=points)),
    ):
        shown = "sparse" if isinstance(inference, gs.Sparse) else inference
        case(section_of(likelihood, inference), f"{label}, {likelihood}, {shown}")(
            lambda kernel=kernel, likelihood=likelihood, inference=inference: kernel_case(kernel, likelihood, inference)
        )


@case("fixed", "in the user's units, with a constant column")
def unscaled():
    hyper = gs.Fixed(lengthscale=np.array([1.0, 8.0, 2.0, 1.0]), signal_var=6.0, noise_var=0.3, constant_var=9.0)
    inputs = np.column_stack([X, np.full(N, 4.0)])
    fitted = gs.GP(hyper=hyper, standardize=False).fit(inputs, REALS)
    return {
        "log evidence": fitted.log_marginal_likelihood,
        **sheet(fitted),
        **predictions(fitted, inputs[:5] + 0.1),
        **scores(fitted, None, MEASURES),
    }


CHOICES = {
    "a group": {"groups": {"both": [0, 2]}},
    "a category": {"categorical": [2]},
    "a group that is a category": {"groups": {"both": [1, 2]}, "categorical": ["both"]},
    "the largest": {"aggregate": "max"},
    "a quantile": {"aggregate": 0.8},
    "some points": {"points": [3, 11, 11, 20]},
    "points drawn": {"points": 7, "seed": 3},
}
WITH_CHOICES = (gs.KL(), gs.KL(latent=True), gs.KL(delta=1e-3, two_sided=True), NORMAL_VAR, gs.Derivative(), gs.RATE())
FEW_CHOICES = (gs.KL(), NORMAL_VAR)


def chosen(likelihood, inference):
    _, y, sizes, _ = LIKELIHOODS[likelihood]
    coarse = X.copy()
    coarse[:, 1] = np.round(coarse[:, 1] / 4.0)  # few pairs of levels
    fitted = model_of(likelihood, inference).fit(coarse, y, **sizes)
    found = {}
    for label, options in CHOICES.items():
        found |= prefixed(label, scores(fitted, None, WITH_CHOICES, **options))
        if "points" not in options:
            found |= prefixed(f"{label}, new", scores(fitted, coarse[:6] + 0.1, FEW_CHOICES, **options))
    return found


for likelihood, inference in (
    ("gaussian", "exact"),
    ("gaussian", gs.Sparse(m=5, near_rows=8)),
    ("probit", "ep"),
    ("softmax", "laplace"),
    ("binomial", gs.Sparse(m=9)),
):
    shown = "sparse" if isinstance(inference, gs.Sparse) else inference
    if isinstance(inference, gs.Sparse) and inference.near_rows:
        shown = "sparse, cells"
    case(section_of(likelihood, inference), f"choices of rank, {likelihood}, {shown}")(
        lambda likelihood=likelihood, inference=inference: chosen(likelihood, inference)
    )


def on_device(likelihood, inference):
    return everything(model_of(likelihood, inference, device="cpu"), likelihood, FEW_MEASURES)


DEVICE = {"gaussian": INFERENCES["gaussian"], "known noise": INFERENCES["known noise"], "poisson": VARIATIONAL}
for likelihood, inferences in (*DEVICE.items(), ("probit", VARIATIONAL)):
    for label, inference in inferences.items():
        if label != "laplace":
            case("device", f"torch: {likelihood}, {label}", "torch")(
                lambda likelihood=likelihood, inference=inference: on_device(likelihood, inference)
            )


def divided(*arrays):
    """Arrays in unequal partitions of rows, one of them empty."""
    from dask import array

    edges = [0, 8, 8, 11, 24, N]
    parts = [[array.from_array(a[i:j]) for i, j in pairwise(edges)] for a in arrays]
    return tuple(map(array.concatenate, parts))


def distributed(likelihood, inference):
    _, y, sizes, _ = LIKELIHOODS[likelihood]
    model = model_of(likelihood, inference)
    rows_X, rows_y, *beside = divided(X, y, *sizes.values())
    rows_sizes = dict(zip(sizes, beside, strict=True))
    fitted = model.fit(rows_X, rows_y, **rows_sizes)
    size = next((values for name, values in rows_sizes.items() if name != "noise_var"), None)
    value, gradient = internals.distributed_evidence(model, fitted, rows_X, rows_y, rows_sizes.get("noise_var"), size)
    found = {
        "log evidence": fitted.log_marginal_likelihood,
        "log evidence, asked anew": value,
        "gradient of the log evidence": gradient,
        **prefixed("left out", sheet(fitted)),
        **prefixed("new", predictions(fitted, X_NEW)),
        **prefixed("at training points", scores(fitted, None, DISTRIBUTED_MEASURES)),
        **prefixed("at rows elsewhere", scores(fitted, divided(X + 0.1)[0], (gs.KL(),))),
        **prefixed("at new points", scores(fitted, X_NEW, FEW_MEASURES)),
    }
    for label, options in CHOICES.items():
        found |= prefixed(label, scores(fitted, None, (NORMAL_VAR,), **options))
    with internals.small_samples():
        sampled = model.fit(rows_X, rows_y, **rows_sizes)
        kept = {**sheet(sampled), **scores(sampled, None, (gs.KL(), NORMAL_VAR))}
    return {**found, **prefixed("some rows kept", kept)}


DISTRIBUTED_MEASURES = (gs.KL(), gs.KL(latent=True), gs.KL(delta=1e-3, two_sided=True), NORMAL_VAR, gs.Derivative())
for likelihood, inference in (
    ("gaussian", gs.Sparse(m=9, near_rows=0)),
    ("gaussian", gs.Sparse(m=5, near_rows=8)),
    ("known noise", gs.Sparse(m=9, near_rows=0)),
    ("poisson", gs.Sparse(m=9)),
    ("binomial", gs.Sparse(m=9)),
):
    cells = ", cells" if inference.near_rows else ""
    case("distributed", f"dask: {likelihood}{cells}", "dask.array")(
        lambda likelihood=likelihood, inference=inference: distributed(likelihood, inference)
    )
