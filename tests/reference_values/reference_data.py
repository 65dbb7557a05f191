"""Tiny data for all cases, the registration of a case, and the stored numbers of rankings and predictions.

A case is a function without arguments that returns a mapping of names to arrays. Each belongs to a section, in which
all numbers are compared in the same way:

fixed        given hyperparameters
iterated     the same, where inference iterates: expectation propagation, Laplace's method, variational bounds
device       the same, through torch on the CPU
distributed  rows in dask collections
fits         found hyperparameters
searches     the same for sparse models, whose search goes by samples and several ways
long         fits for the script, not for the test: long ones, and those that end elsewhere on another machine
sampled      whatever depends on random draws digit by digit
models       models of scikit-learn, and functions
peers        models of libraries that need not be installed
ax           those of Ax, which finds their hyperparameters itself
gpflow       those of GPflow, which has an environment of its own
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, ndtr

import gpsift as gs
from gpsift.reference.ensemble import Ensemble

# The streams of RandomState never change.
RANDOM = np.random.RandomState(20260101)
N = 30
X = np.column_stack([RANDOM.normal(size=(N, 2)), RANDOM.randint(0, 3, N)]) * [1.0, 5.0, 1.0] + [0.0, 100.0, 2.0]
X_NEW = np.column_stack([RANDOM.normal(size=(6, 2)), RANDOM.randint(0, 3, 6)]) * [1.0, 5.0, 1.0] + [0.1, 100.0, 2.0]
LATENT = 1.2 * np.sin(1.5 * X[:, 0]) + 0.1 * (X[:, 1] - 100.0) + 0.3 * (X[:, 2] - 3.0)
EXPOSURE = RANDOM.uniform(0.5, 4.0, N)
TRIALS = RANDOM.randint(2, 9, N).astype(float)
NOISES = RANDOM.uniform(0.05, 0.4, N)
REALS = 3.0 + 2.0 * LATENT + 0.4 * RANDOM.normal(size=N)
TWO_CLASSES = (RANDOM.uniform(size=N) < ndtr(1.5 * LATENT)).astype(float)
THREE_CLASSES = np.digitize(LATENT + 0.5 * RANDOM.normal(size=N), [-0.5, 0.5]).astype(float)
SUCCESSES = RANDOM.binomial(TRIALS.astype(int), expit(LATENT)).astype(float)
COUNTS = RANDOM.poisson(EXPOSURE * np.exp(LATENT)).astype(float)
POSITIVE = np.exp(LATENT) * RANDOM.gamma(2.5, 0.4, N)
OUTLIERS = REALS + np.where(np.arange(N) % 7 == 3, 8.0, 0.0)

KERNEL = {"lengthscale": np.array([1.0, 2.0, 1.7]), "signal_var": 1.4, "constant_var": 0.3}

# Likelihood, observations, what goes with them, parameters.
LIKELIHOODS = {
    "gaussian": ("gaussian", REALS, {}, {"noise_var": 0.1}),
    "known noise": ("gaussian", REALS, {"noise_var": NOISES}, {}),
    "probit": ("bernoulli", TWO_CLASSES, {}, {}),
    "logit": ("logit", TWO_CLASSES, {}, {}),
    "softmax": ("softmax", THREE_CLASSES, {}, {}),
    "binomial": ("binomial", SUCCESSES, {"trials": TRIALS}, {}),
    "poisson": ("poisson", COUNTS, {"exposure": EXPOSURE}, {}),
    "negative binomial": ("negative-binomial", COUNTS, {"exposure": EXPOSURE}, {"concentration": 3.0}),
    "gamma": ("gamma", POSITIVE, {}, {"gamma_shape": 2.5}),
    "student-t": ("student-t", OUTLIERS, {}, {"df": 4.0, "noise_scale": 0.3}),
}
# The stored numbers of VAR are those of the paper's conditional.
NORMAL_VAR = gs.VAR(conditional="normal")
MEASURES = (
    gs.KL(),
    gs.KL(units="raw"),
    gs.KL(latent=True),
    gs.KL(delta=1e-4),
    gs.KL(delta=1e-2, two_sided=True, units="raw"),
    gs.KL(delta=1e-3, latent=True),
    NORMAL_VAR,
    gs.VAR(n_nodes=5, covariance="ledoit-wolf", conditional="normal"),
    gs.Derivative(),
    gs.Derivative(kind="absolute", units="raw"),
    gs.RATE(),
    gs.ARD(),
    gs.ARD(units="raw"),
)
FEW_MEASURES = (gs.KL(), gs.KL(delta=1e-3), NORMAL_VAR, gs.Derivative(), gs.RATE(), gs.ARD())


@dataclass(frozen=True)
class Case:
    """A section, what computes the numbers, and the libraries that it needs."""

    section: str
    compute: Callable[[], Mapping[str, np.ndarray]]
    needs: tuple[str, ...] = ()


CASES: dict[str, Case] = {}


def case(section, name, *needs):
    """Register a function as a case."""

    def register(compute):
        assert name not in CASES
        CASES[name] = Case(section, compute, needs)
        return compute

    return register


def stored_name(measure):
    """The label, without the conditional of VAR, which is the same in all stored numbers."""
    return (replace(measure, conditional=None) if isinstance(measure, gs.VAR) else measure).label


def scores(model, inputs, measures, **options):
    """Scores, at each point too, and their parts. What a model cannot be measured by is left out."""
    found = {}
    for measure in measures:
        try:
            ranking = gs.rank(model, inputs, measure, **options)
        except (TypeError, ValueError):
            continue
        name = stored_name(measure)
        found[f"{name} scores"] = ranking.scores
        if ranking.pointwise is not None:
            found[f"{name} pointwise"] = ranking.pointwise
        for term, values in ranking.terms.items():
            found[f"{name} {term}"] = values
        reference = gs.as_reference(model)
        if isinstance(reference, Ensemble):
            each = [gs.rank(member, inputs, measure, **options).scores for member in reference.members]
            found[f"{name} draws"] = np.array(each)
    return found


def prefixed(prefix, found):
    return {f"{prefix}: {name}": values for name, values in found.items()}


def predictions(fitted, points, **sizes):
    prediction = fitted.predict(points, **sizes)
    found = {name: getattr(prediction, name) for name in ("mean", "var", "latent_mean", "latent_var")}
    if prediction.mean.ndim == 1:
        found["quantiles"] = prediction.quantile([0.1, 0.8])
    return found


def sheet(fitted):
    """The leave-one-out sheet."""
    names = (
        "loo_mean",
        "loo_var",
        "loo_r2",
        "lpd",
        "lpd_empty",
        "pit",
        "evidence_gain",
        "elpd",
        "elpd_diff",
        "diff_se",
    )
    return {name: getattr(fitted.quality, name) for name in names}
