"""Sparse fits to classes, counts and positive numbers: near to dense ones, and everything that follows a fit."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, ndtr

import gpsift as gs
from gpsift._utils.rows import LocalRows
from gpsift.gp import choose_inference
from gpsift.gp.inference.laplace import LaplaceInference
from gpsift.gp.sparse import search
from gpsift.gp.sparse.search import sample_problem
from gpsift.sklearn import GPClassifier

RNG = np.random.default_rng(0)
N, P = 160, 4
X = RNG.normal(size=(N, P))
POINTS = X[:25] + 0.05
LATENT = 1.5 * np.sin(1.5 * X[:, 0]) + 0.8 * X[:, 1] + 0.4 * X[:, 2]
EXPOSURE = RNG.uniform(0.5, 4.0, N)
TRIALS = RNG.integers(2, 9, N).astype(float)
CLASSES = (RNG.uniform(size=N) < ndtr(LATENT)).astype(float)
COUNTS = RNG.poisson(EXPOSURE * np.exp(LATENT)).astype(float)
FIXED = {"lengthscale": np.array([1.2, 3.0, 4.0, 20.0]), "signal_var": 3.0, "constant_var": 0.2}

# Likelihood, dense inference, observations, what goes with them, parameters.
CASES = {
    "probit": ("bernoulli", "ep", CLASSES, {}, {}),
    "logit": ("logit", "ep", CLASSES, {}, {}),
    "binomial": ("binomial", "ep", RNG.binomial(TRIALS.astype(int), expit(LATENT)), {"trials": TRIALS}, {}),
    "poisson": ("poisson", "ep", COUNTS, {"exposure": EXPOSURE}, {}),
    "negative binomial": (
        "negative-binomial",
        "laplace",
        RNG.poisson(EXPOSURE * np.exp(LATENT) * RNG.gamma(3.0, 1 / 3.0, N)),
        {"exposure": EXPOSURE},
        {"concentration": 3.0},
    ),
    "gamma": ("gamma", "laplace", np.exp(LATENT) * RNG.gamma(2.5, 0.4, N), {}, {"gamma_shape": 2.5}),
}
each_case = pytest.mark.parametrize("name", CASES)


def fitted(name, hyper=None, inference=None, rows=slice(None)):
    likelihood, dense, y, sizes, params = CASES[name]
    hyper = gs.Fixed(**FIXED, **params) if hyper is None else hyper
    model = gs.GP(likelihood=likelihood, hyper=hyper, inference=dense if inference is None else inference)
    return model.fit(X[rows], y[rows], **{key: size[rows] for key, size in sizes.items()})


def off(sparse, dense, measure):
    """The largest difference of a score, relative to the top one."""
    expected = gs.rank(dense, POINTS, measure).scores
    return np.abs(gs.rank(sparse, POINTS, measure).scores - expected).max() / expected.max()


@each_case
def test_enough_points_rank_and_predict_as_dense_inference_does(name):
    sparse, dense = fitted(name, inference=gs.Sparse(m=100)), fitted(name)
    assert sparse.inference == "sparse"
    assert sparse.report.inference_converged
    near, predicted = (0.02, 0.02) if dense.inference == "ep" else (0.05, 0.1)  # a mode is not a mean
    for measure in (gs.KL(), gs.VAR()):
        assert off(sparse, dense, measure) < near
    assert_allclose(sparse.quality.elpd, dense.quality.elpd, atol=0.5)
    assert_allclose(sparse.quality.lpd, dense.quality.lpd, atol=0.2)
    sizes = dict.fromkeys(CASES[name][3], 2.0)
    one, other = sparse.predict(POINTS, **sizes), dense.predict(POINTS, **sizes)
    assert_allclose(one.mean, other.mean, rtol=predicted, atol=0.01)
    assert_allclose(one.latent_var, other.latent_var, rtol=0.1)


@pytest.mark.parametrize(
    "measure",
    [gs.KL(delta=1e-4), gs.KL(latent=True), gs.RATE(), gs.Derivative(), gs.ARD()],
    ids=lambda measure: measure.label,
)
def test_every_measure_reads_a_sparse_model_of_classes(measure):
    assert off(fitted("probit", inference=gs.Sparse(m=100)), fitted("probit"), measure) < 0.01


@pytest.mark.parametrize(
    ("name", "hyper"),
    [
        *((name, gs.ML2(starts=1)) for name in CASES),
        ("probit", gs.MAP(starts=1)),
        ("negative binomial", gs.MAP(starts=1)),
    ],
    ids=[*CASES, "probit, MAP", "negative binomial, MAP"],
)
def test_enough_points_find_what_dense_inference_finds(name, hyper):
    sparse, dense = fitted(name, hyper, gs.Sparse(m=80)), fitted(name, hyper)
    assert sparse.report.converged
    assert_allclose(sparse.log_marginal_likelihood, dense.log_marginal_likelihood, atol=0.5)
    assert_allclose(sparse.quality.elpd, dense.quality.elpd, atol=0.5)
    for measure in (gs.KL(), gs.VAR()):
        assert off(sparse, dense, measure) < 0.05
    for own in sparse.likelihood.params:
        assert_allclose(sparse.hyperparameters[own], dense.hyperparameters[own], rtol=0.02)


def test_exposure_belongs_to_its_row():
    """Twice the exposure is a latent function lower by log 2, which the constant takes up."""
    hyper = gs.Fixed(**{**FIXED, "constant_var": 1e4})
    one = gs.GP(likelihood="poisson", hyper=hyper, inference=gs.Sparse(m=50))
    near, far = one.fit(X, COUNTS, exposure=EXPOSURE), one.fit(X, COUNTS, exposure=2.0 * EXPOSURE)
    assert_allclose(far.predict(X).latent_mean, near.predict(X).latent_mean - np.log(2.0), atol=1e-3)
    without = one.fit(X, COUNTS)
    assert near.quality.elpd > without.quality.elpd + 10.0


def test_the_search_begins_with_laplace_s_method_on_a_sample(monkeypatch):
    asked = []
    monkeypatch.setattr(search, "LAPLACE_ROWS", 70)
    monkeypatch.setattr(search, "sample_problem", lambda problem: asked.append(sample_problem(problem)) or asked[-1])
    sampled = fitted("poisson", gs.ML2(), gs.Sparse(m=50))
    (sample,) = asked
    assert isinstance(sample.engine, LaplaceInference)
    assert 70 <= sample.y.size <= 72
    pairs = set(zip(COUNTS, EXPOSURE, strict=True))
    assert set(zip(sample.y, sample.engine.size, strict=True)) <= pairs
    assert len(sampled.report.objectives) == 3
    whole = fitted("poisson", gs.ML2(starts=1), gs.Sparse(m=50))
    assert_allclose(sampled.log_marginal_likelihood, whole.log_marginal_likelihood, atol=1.0)


def test_hyperparameters_of_very_many_rows_are_those_of_a_sample(monkeypatch):
    whole = fitted("poisson", gs.ML2(starts=1), gs.Sparse(m=50))
    visited = []
    monkeypatch.setattr(
        LocalRows, "map_reduce", lambda self, *a, old=LocalRows.map_reduce: visited.append(self.n) or old(self, *a)
    )
    monkeypatch.setattr(search, "SAMPLE_ROWS", 75)
    sampled = fitted("poisson", gs.ML2(starts=1), gs.Sparse(m=50))
    assert set(visited) == {sampled.report.n_rows_searched, N}
    assert 75 <= sampled.report.n_rows_searched <= 77
    assert visited.count(N) < 0.2 * len(visited)
    assert_allclose(sampled.log_marginal_likelihood, whole.log_marginal_likelihood, atol=2.0)


@pytest.mark.parametrize(("name", "dense"), [("probit", "ep"), ("poisson", "laplace")])
def test_many_rows_are_sparse_by_default_and_that_is_said(monkeypatch, name, dense):
    monkeypatch.setattr(choose_inference, "LARGEST_DENSE", 100)
    words = rf"With 160 rows, more than 100, inference is sparse: 256 inducing .*inference=\"{dense}\"\)` takes all"
    with pytest.warns(gs.GPSiftWarning, match=words) as seen:
        assert fitted(name, inference="auto").inference == "sparse"
    assert seen[0].filename == __file__
    assert fitted(name, inference="auto", rows=slice(100)).inference == dense
    assert fitted(name, inference=dense).inference == dense


def test_student_t_and_softmax_stay_dense_by_default(monkeypatch):
    monkeypatch.setattr(choose_inference, "LARGEST_DENSE", 20)
    rows = slice(30)
    hyper = gs.Fixed(**FIXED)
    assert gs.GP(likelihood="softmax", hyper=hyper).fit(X[rows], CLASSES[rows]).inference == "laplace"
    assert gs.GP(likelihood="student-t", hyper=hyper).fit(X[rows], LATENT[rows]).inference == "laplace"


def test_a_classifier_of_many_rows_is_sparse(monkeypatch):
    monkeypatch.setattr(choose_inference, "LARGEST_DENSE", 100)
    labels = np.where(CLASSES > 0, "yes", "no")
    with pytest.warns(gs.GPSiftWarning, match="inference is sparse"):
        classifier = GPClassifier(hyper=gs.Fixed(**FIXED)).fit(X, labels)
    assert classifier.gp_.inference == "sparse"
    assert classifier.score(X, labels) > 0.75


def test_a_sparse_model_of_classes_can_be_pickled_and_saved(tmp_path):
    sparse = fitted("probit", inference=gs.Sparse(m=30))
    again = pickle.loads(pickle.dumps(sparse))
    sparse.save(tmp_path / "model.gpsift")
    loaded = gs.load(tmp_path / "model.gpsift")
    for other in (again, loaded):
        assert_allclose(other.predict(X).mean, sparse.predict(X).mean, rtol=1e-12)
        assert other.inference == "sparse"
    assert "sparse with 30 inducing points" in repr(sparse)


def test_known_classes_everywhere_can_be_fitted():
    """Classes that a line separates: maximum likelihood drives the signal up without end."""
    separated = (X[:, 0] > 0.0).astype(float)
    fit = gs.GP(likelihood="bernoulli", hyper=gs.MAP(starts=1), inference=gs.Sparse(m=40)).fit(X, separated)
    assert np.mean((fit.predict(X).mean > 0.5) == separated) > 0.97
    assert int(gs.rank(fit, X).order[0]) == 0
