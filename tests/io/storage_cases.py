"""An object of every class that can be saved, and what it means that one came back the same."""

from __future__ import annotations

import math
import struct
from dataclasses import fields, is_dataclass, replace
from functools import cache

import numpy as np

import gpsift as gs
from gpsift import kernels, likelihoods
from gpsift._utils.recipe import CleaningRecipe
from gpsift.gp import DrawnGP
from gpsift.gp.quality import SampledQuality
from gpsift.io.serializable import stored_fields, stored_name
from gpsift.io.trace import Group, Trace, Variable
from gpsift.likelihoods import distributions as families
from gpsift.likelihoods.distributions.base import Pool
from gpsift.likelihoods.mixture import LatentMixture
from gpsift.likelihoods.softmax import SoftmaxMixture
from gpsift.likelihoods.student_t import StudentTMixture
from gpsift.reference.inputs import InputMoments
from gpsift.reference.posterior import DenseFactor


def data(n=24, p=3):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, p))
    return X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=n)


@cache
def fitted():
    return gs.GP(hyper=gs.ML2(starts=1)).fit(*data())


@cache
def fitted_in_blocks():
    return gs.GP(hyper=gs.Fixed(lengthscale=0.5, noise_var=0.1), inference=gs.Sparse(m=5, near_rows=9)).fit(*data())


@cache
def fitted_classes():
    X, y = data()
    return gs.GP(likelihood="softmax", hyper=gs.ML2(starts=1)).fit(X, np.digitize(y, [-0.4, 0.4]))


def drawn(trace=None):
    """A model of two draws, as the sampler makes it but for the sampler."""
    X, y = data()
    first, second = (gs.GP(hyper=gs.Fixed(lengthscale=each, noise_var=0.1)).fit(X, y) for each in (1.0, 2.0))
    members = first, replace(second, inputs=first.inputs)
    diagnostics = {"r_hat": 1.01, "ess": 120.0, "divergences": 0, "worst": "noise_var"}
    return DrawnGP(members, trace, diagnostics, first.report)


def distributed():
    """A model of rows that are elsewhere, as it travels: made by hand, since dask may be missing."""
    X, y = data()
    gp = gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1), inference=gs.Sparse(m=5)).fit(X, y)
    totals = {"total_elpd": -1.0, "total_elpd_empty": -2.0, "total_diff_se": 0.5}
    sheet = SampledQuality(**vars_of(gp.quality), **totals, rows=np.arange(len(y)), n_rows=900)
    inputs = gs.Inputs(gp.inputs.names, summary=InputMoments.of(X), sample=X[::2])
    return replace(gp, inputs=inputs, sheet=sheet)


def vars_of(thing):
    return {field.name: getattr(thing, field.name) for field in fields(thing)}


@cache
def sifted():
    """A model that switched its features on one by one."""
    X, y = data()
    return gs.GP(hyper=gs.Sift()).fit(X, y)


@cache
def cases():
    """One object or more of each registered class, by its name in files."""
    X, y = data()
    gp, classes = fitted(), fitted_classes()
    path = gs.search(X, y, gs.KL(), model=gs.GP(hyper=gs.ML2(starts=1)), cv=2, work=gs.Work(progress=False))
    mean, var, ones = X[:, 0].copy(), X[:, 1] ** 2, np.ones(len(X))
    cov = np.eye(3) * var[:, None, None]
    variable = Variable(("draw",), np.arange(4.0), {"unit": "nats"})
    group = Group({"draw": Variable(("draw",), ("a", "b", "c", "d"))}, {"x": variable}, {"made": "today"})
    found = [
        gp,
        classes,
        drawn(),
        distributed(),
        distributed().sheet,
        distributed().inputs,
        distributed().inputs.summary,
        gs.GP(hyper=gs.MAP(noise=gs.HalfT(3.0, 0.5)), likelihood=likelihoods.StudentT(df=3.0)),
        gs.GP(inference=gs.Sparse(m=20, chunk_bytes=2**20)),
        gs.Sparse(m=30),
        gs.rank(gp, X),
        gs.rank(gp, X, measure=gs.VAR(), points=10),
        gs.rank(gp, X, measure=gs.ARD()),
        path,
        path.suggestion,
        path.suggestion.by_rule[path.suggestion.rule],
        path.suggestion.by_rule[path.suggestion.rule].baseline,
        gs.stability(
            X, y, gs.KL(), model=gs.GP(hyper=gs.ML2(starts=1)), n_splits=2, train_size=0.8, work=gs.Work(progress=False)
        ),
        gs.discover(X, y, gs.GP(hyper=gs.Fixed(lengthscale=1.0, noise_var=0.1)), folds=2, work=gs.Work(progress=False)),
        gs.power(gp, n=10, studies=2, search=False, work=gs.Work(progress=False)),
        gs.compare(gp, gs.GP(hyper=gs.ML2(starts=1)).fit(X, -y), intervals=False),
        CleaningRecipe(
            {"a": 1.5, "day": "2020-01-01"},
            {"a missing": "a"},
            {"b": ("x", "y")},
            ("b",),
            ("c",),
            {"day": "2020-01-01"},
            {"sex": ("f",)},
        ),
        gs.effects(gp, X),
        gs.effects(gp, X).curves[0],
        gs.interactions(gp),
        gs.interactions(gp).surfaces[0],
        gs.variance_shares(drawn()),
        gs.explain(gp, X[:4]),
        gs.project(gp, ["x3", "x1"]),
        gs.forward_projection(gp, max_size=1),
        gp.predict(X),
        classes.predict(X),
        drawn().predict(X),
        gp.quality,
        gp.posterior,
        gp.posterior.factors[0],
        classes.posterior,
        fitted_in_blocks(),
        fitted_in_blocks().posterior,
        fitted_in_blocks().posterior.blocks,
        gs.rank(fitted_in_blocks()),
        gp.inferred,
        gp.scaling,
        gp.report,
        sifted().report,
        sifted().report.sift,
        sifted().report.sift.steps[0],
        gs.Sift(toll=2.0, groups={"pair": ["x1", "x2"]}),
        gs.Sift(then=gs.NUTS(draws=10, prior=gs.MAP(lengthscale=gs.SAAS()))),
        DenseFactor(np.asfortranarray(X), -1.0),
        Trace({"posterior": group}, {"by": "hand"}),
        group,
        variable,
        *(kernels.SquaredExponential(), kernels.Matern32(2.0, shared=True), kernels.Matern52(np.array([1.0, 2.0]))),
        *(kernels.RationalQuadratic(shape=0.5), kernels.Linear(), kernels.Constant(2.0)),
        kernels.Linear() + kernels.Constant(),
        *(likelihoods.Gaussian(0.2), likelihoods.Gaussian(var), likelihoods.Probit(), likelihoods.Logit()),
        *(likelihoods.Softmax(3), likelihoods.Binomial(), likelihoods.Poisson(), likelihoods.NegativeBinomial(2.0)),
        *(likelihoods.Gamma(2.0), likelihoods.StudentT(5.0, 0.1)),
        *(gs.ML2(starts=2), gs.MAP(), gs.NUTS(draws=10), gs.Fixed(lengthscale=[1.0, 2.0], noise_var=0.1)),
        *(gs.HalfT(), gs.InverseGamma(1.0, 2.0), gs.GammaPrior(2.0, 0.1), gs.SAAS(0.2)),
        gs.OnLogScale(gs.InverseGamma(1.0, 2.0)),
        *(families.Gaussian(mean, var), families.MultivariateNormal(X, cov), families.Bernoulli(var / (1 + var))),
        *(families.ProbitBernoulli(mean, var), families.Categorical(np.full((4, 2), 0.5)), families.Poisson(var)),
        *(families.Binomial(np.float64(3.0), var / (1 + var)), families.NegativeBinomial(var, 2.0)),
        *(families.Gamma(var, 2.0), families.StudentT(mean, var, 4.0)),
        LatentMixture(likelihoods.Poisson(), mean, 0.0 * var, ones),
        StudentTMixture(likelihoods.StudentT(), mean, var, ones),
        SoftmaxMixture(X, cov),
        Pool([families.Poisson(var), families.Poisson(ones)]),
    ]
    by_name = {}
    for thing in found:
        by_name.setdefault(stored_name(type(thing)), []).append(thing)
    return by_name


def assert_same(came, expected, where="it"):
    """The same types, values and bits, memory layout of arrays included."""
    assert type(came) is type(expected), where
    if is_dataclass(expected):
        for field in stored_fields(expected):
            assert_same(getattr(came, field.name), getattr(expected, field.name), f"{where}.{field.name}")
    elif isinstance(expected, np.ndarray):
        assert came.dtype == expected.dtype, where
        assert came.shape == expected.shape, where
        assert came.tobytes() == expected.tobytes(), where
        if expected.flags.forc:
            assert came.strides == expected.strides, where
    elif isinstance(expected, list | tuple):
        assert len(came) == len(expected), where
        for i, (one, other) in enumerate(zip(came, expected, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    elif isinstance(expected, dict):
        assert_same([*came.items()], [*expected.items()], where)
    elif isinstance(expected, np.generic):
        assert_same(came.item(), expected.item(), where)
    elif isinstance(expected, float) and not math.isnan(expected):
        assert struct.pack("<d", came) == struct.pack("<d", expected), where
    else:
        assert came == expected or expected != expected, where
