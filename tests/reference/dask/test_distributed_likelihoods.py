"""Classes, counts and positive numbers in partitions: the models, sheets and rankings of one process."""

import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import need
from scipy.special import expit, ndtr

import gpsift as gs
from gpsift.relevance import points as points_module

array = need("dask.array")

N, M = 240, 25
RNG = np.random.default_rng(3)
X = np.column_stack([RNG.normal(size=(N, 2)), RNG.integers(0, 3, N)]) * [1.0, 5.0, 1.0] + [0.0, 100.0, 2.0]
LATENT = 1.2 * np.sin(1.5 * X[:, 0]) + 0.1 * (X[:, 1] - 100.0) + 0.3 * (X[:, 2] - 3.0)
EXPOSURE = RNG.uniform(0.5, 4.0, N)
TRIALS = RNG.integers(2, 9, N).astype(float)
CLASSES = (RNG.uniform(size=N) < ndtr(LATENT)).astype(float)
FIXED = {"lengthscale": np.array([1.0, 2.0, 3.0]), "signal_var": 2.0, "constant_var": 0.2}

# Likelihood, observations, what goes with them, parameters.
CASES = {
    "probit": ("bernoulli", CLASSES, {}, {}),
    "logit": ("logit", CLASSES, {}, {}),
    "binomial": ("binomial", RNG.binomial(TRIALS.astype(int), expit(LATENT)).astype(float), {"trials": TRIALS}, {}),
    "poisson": ("poisson", RNG.poisson(EXPOSURE * np.exp(LATENT)).astype(float), {"exposure": EXPOSURE}, {}),
    "poisson, one exposure": ("poisson", RNG.poisson(2.5 * np.exp(LATENT)).astype(float), {"exposure": 2.5}, {}),
    "negative binomial": (
        "negative-binomial",
        RNG.poisson(np.exp(LATENT) * RNG.gamma(3.0, 1 / 3.0, N)).astype(float),
        {},
        {"concentration": 3.0},
    ),
    "gamma": ("gamma", np.exp(LATENT) * RNG.gamma(2.5, 0.4, N), {}, {"gamma_shape": 2.5}),
}
each_case = pytest.mark.parametrize("name", CASES)
SHEET = ("elpd", "elpd_empty", "elpd_diff", "diff_se", "loo_r2", "evidence_gain")


def both(name, divided, hyper=None, m=M):
    """The same model fitted in memory and in partitions."""
    likelihood, y, sizes, params = CASES[name]
    hyper = gs.Fixed(**FIXED, **params) if hyper is None else hyper
    model = gs.GP(likelihood=likelihood, hyper=hyper, inference=gs.Sparse(m=m))
    parts_X, parts_y, *parts = divided(X, y, *(size for size in sizes.values() if np.ndim(size)))
    parts_sizes = dict(zip(sizes, parts, strict=True)) if parts else sizes
    return model.fit(X, y, **sizes), model.fit(parts_X, parts_y, **parts_sizes)


@each_case
def test_models_and_sheets_are_those_of_one_process(name, divided):
    here, there = both(name, divided)
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-10)
    for entry in SHEET:
        digits = 1e-7 if entry == "diff_se" else 1e-9  # which moves with the level of no inputs in first order
        assert getattr(there.quality, entry) == pytest.approx(getattr(here.quality, entry), rel=digits), entry
    for entry in ("loo_mean", "loo_var", "lpd", "lpd_empty", "pit"):
        assert_allclose(getattr(there.quality, entry), getattr(here.quality, entry), rtol=1e-6, err_msg=entry)
    sizes = dict.fromkeys(CASES[name][2], 2.0)
    one, other = here.predict(X[:20] + 0.1, **sizes), there.predict(X[:20] + 0.1, **sizes)
    assert_allclose(other.mean, one.mean, rtol=1e-7)
    assert_allclose(other.latent_var, one.latent_var, rtol=1e-7)


@each_case
@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR(conditional="normal")], ids=lambda measure: measure.label)
def test_rankings_are_those_of_one_process(name, measure, divided, monkeypatch):
    """At training rows KL knows the trials and exposures of each."""
    monkeypatch.setattr(points_module, "KEPT_ROWS", 60)
    here, there = both(name, divided)
    one, other = gs.rank(here, measure=measure), gs.rank(there, measure=measure)
    assert_allclose(other.scores, one.scores, rtol=1e-7)
    assert_allclose(other.pointwise, one.pointwise[other.rows], rtol=1e-5, atol=1e-8 * one.scores.max())


@pytest.mark.parametrize("measure", [gs.KL(), gs.VAR(conditional="normal")], ids=lambda measure: measure.label)
def test_rankings_elsewhere_of_groups_and_of_categories_are_those_of_one_process(measure, divided):
    here, there = both("binomial", divided)
    for options in ({"points": [200, 3, 3, 104]}, {"categorical": ["x3"]}, {"groups": {"both": ["x1", "x2"]}}):
        one, other = (gs.rank(gp, measure=measure, **options) for gp in (here, there))
        assert_allclose(other.scores, one.scores, rtol=1e-7)
    new = X[:30] + 0.1
    at_new = gs.rank(there, array.from_array(new, chunks=(11, 3)), measure)
    assert_allclose(at_new.scores, gs.rank(here, new, measure).scores, rtol=1e-7)


@pytest.mark.parametrize("hyper", [gs.ML2(starts=1), gs.MAP(starts=1)], ids=["ML2", "MAP"])
@pytest.mark.parametrize("name", ["probit", "poisson", "negative binomial"])
def test_searched_hyperparameters_are_those_of_one_process(name, hyper, divided):
    here, there = both(name, divided, hyper, m=15)
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, abs=1e-4)
    assert_allclose(gs.rank(there).scores, gs.rank(here).scores, rtol=1e-2, atol=1e-3)


@pytest.mark.usefixtures("client")
def test_a_fit_on_a_cluster_is_that_of_one_process(divided):
    here, there = both("poisson", divided)
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-10)
    assert_allclose(gs.rank(there).scores, gs.rank(here).scores, rtol=1e-8)


def test_a_worker_killed_during_a_fit_changes_nothing(cluster_of, divided, killing):
    client = cluster_of(2)
    visits = killing(client, after=0.05)
    before = set(client.run(os.getpid).values())
    with client.as_current():
        here, there = both("probit", divided)
        assert not before <= set(client.run(os.getpid).values())
    assert len(visits) > 8
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-10)


BAD = {
    "fractions": ("poisson", lambda y: np.where(np.arange(N) == 150, 1.5, y), {}),
    "negative": ("negative-binomial", lambda y: np.where(np.arange(N) > 120, -1.0, y), {}),
    "labels": ("bernoulli", lambda y: np.minimum(y, 2.0), {}),
    "one class": ("logit", np.ones_like, {}),
    "not positive": ("gamma", lambda y: np.where(np.arange(N) < 230, y + 1.0, 0.0), {}),
    "too many successes": ("binomial", lambda y: np.where(np.arange(N) == 180, TRIALS + 1, 0.0), {"trials": TRIALS}),
    "half a trial": ("binomial", np.zeros_like, {"trials": np.where(np.arange(N) == 160, 0.5, TRIALS)}),
    "no exposure": ("poisson", np.copy, {"exposure": np.where(np.arange(N) == 110, 0.0, EXPOSURE)}),
    "missing exposure": ("poisson", np.copy, {"exposure": np.where(np.arange(N) == 110, np.nan, EXPOSURE)}),
    "negative exposure": ("poisson", np.copy, {"exposure": -1.0}),
    "text": ("poisson", np.copy, {"exposure": "many"}),
    "other sizes": ("poisson", np.copy, {"trials": TRIALS}),
    "noise": ("poisson", np.copy, {"noise_var": EXPOSURE}),
}


@pytest.mark.parametrize(("likelihood", "change", "sizes"), BAD.values(), ids=BAD)
def test_bad_targets_and_sizes_are_refused_as_in_memory(likelihood, change, sizes):
    model = gs.GP(likelihood=likelihood, hyper=gs.Fixed(**FIXED), inference=gs.Sparse(m=10))
    y = change(CASES["poisson"][1])
    with pytest.raises((ValueError, TypeError)) as here:
        model.fit(X, y, **sizes)
    parts = {name: array.from_array(size, chunks=90) if np.ndim(size) else size for name, size in sizes.items()}
    with pytest.raises(here.type) as there:
        model.fit(array.from_array(X, chunks=(90, 3)), array.from_array(y, chunks=90), **parts)
    assert str(there.value) == str(here.value)


def test_a_saved_model_comes_back_without_its_rows(divided, tmp_path):
    _, there = both("binomial", divided)
    there.save(tmp_path / "model.gpsift")
    again = gs.load(tmp_path / "model.gpsift")
    assert_array_equal(again.predict(X[:5], trials=3.0).mean, there.predict(X[:5], trials=3.0).mean)
    assert repr(again) == repr(there)
