"""Intervals of sparse models: draws around the mode of the evidence that a fit ended with."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.app.analysis.parts import add_intervals
from gpsift.app.findings import FindingKind
from gpsift.gp.refit import SPARSE_DRAWS, open_problem
from gpsift.relevance.intervals import N_FUNCTIONS

N = 120
FIXED = gs.Fixed(lengthscale=np.array([1.0, 2.0, 4.0]), signal_var=1.0, noise_var=0.1, constant_var=0.5)
ALL_POINTS, ALL_NEAR = gs.Sparse(m=N, near_rows=0), gs.Sparse(m=N, near_rows=N)


def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 3))
    return X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=N)


def scores(model):
    return gs.KL().relevance(model, model.inputs.training_points).values.mean(axis=0)


@pytest.fixture(scope="module")
def exact():
    return gs.GP(hyper=FIXED).fit(*table())


@pytest.mark.parametrize("choice", [ALL_POINTS, ALL_NEAR], ids=["points", "neighbours"])
@pytest.mark.parametrize("by_neighbours", [False, True], ids=["bound", "vecchia"])
def test_draws_of_a_model_that_loses_nothing_are_those_of_exact_inference(choice, by_neighbours, exact):
    """All rows are inducing points, near every block, and given to the next one."""
    sparse = gs.GP(hyper=FIXED, inference=choice).fit(*table())
    sparse = replace(sparse, report=replace(sparse.report, by_neighbours=by_neighbours))
    found, k_hat = sparse.map_draws(scores, 16, 0)
    expected, k_hat_exact = exact.map_draws(scores, 16, 0)
    assert len(found) == 16
    assert_allclose(found, expected, rtol=0.01, atol=0.01 * np.max(expected))
    assert k_hat == pytest.approx(k_hat_exact, abs=0.1)


@pytest.mark.parametrize("choice", [ALL_POINTS, ALL_NEAR], ids=["points", "neighbours"])
def test_the_bound_of_a_sample_is_that_of_the_rows_that_it_was_found_on(choice, monkeypatch):
    for place in ("search", "bound"):
        monkeypatch.setattr(f"gpsift.gp.sparse.{place}.SAMPLE_ROWS", 60)
    monkeypatch.setattr("gpsift.gp.sparse.search.SparseSearch.candidates", lambda self: [self.maximise_bound()])
    sparse = gs.GP(hyper=gs.ML2(), inference=choice).fit(*table())
    assert 60 <= sparse.report.n_rows_searched <= 62
    assert not sparse.report.by_neighbours
    _, problem = open_problem(sparse)
    found = problem.engine.evidence(sparse.kernel, sparse.likelihood)
    assert found.value == pytest.approx(sparse.report.objectives[0], abs=0.1)  # points are picked for all rows
    assert_allclose(found.gradient, 0.0, atol=0.5)
    assert len(sparse.map_draws(scores, 4, 0).values) == 4


@pytest.mark.filterwarnings("ignore:The intervals may be off")
def test_features_that_are_switched_off_are_open():
    X, y = table()
    sparse = gs.GP(inference=gs.Sparse(m=60)).fit(X, y)
    assert sparse.used == (0, 1)
    ranking = gs.rank(sparse, intervals=True)
    assert ranking.draws.shape == (SPARSE_DRAWS * N_FUNCTIONS, 3)
    assert np.all(ranking.draws[:, 2] > 0.0)
    low, high = ranking.interval()[:2].T
    assert np.all((low <= ranking.scores[:2]) & (ranking.scores[:2] <= high))
    assert 0.0 < ranking.interval()[2, 1] < ranking.scores[1]


def test_known_noise_of_each_row_counts():
    X, y = table()
    noise_var = np.linspace(0.02, 0.3, N)
    models = [
        gs.GP(hyper=gs.Fixed(lengthscale=1.5), inference=each).fit(X, y, noise_var=noise_var)
        for each in ("exact", ALL_POINTS, ALL_NEAR)
    ]
    expected, *found = (model.map_draws(scores, 8, 0)[0] for model in models)
    for each in found:
        assert_allclose(each, expected, rtol=0.01, atol=0.01 * np.max(expected))


def test_an_analysis_leaves_them_out_unless_they_are_asked_for(monkeypatch):
    monkeypatch.setattr("gpsift.app.analysis.run.LARGEST_QUICK", 50)  # rows beyond which inference is sparse
    X, y = table()
    found = gs.analyse(pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y), "y", select=False)
    assert found.model.inference == "sparse"
    assert add_intervals(found).cautions[-1].kind is FindingKind.INTERVALS_LEFT_OUT
    assert add_intervals(found, True).leading.draws.shape == (SPARSE_DRAWS * N_FUNCTIONS, 3)


def test_an_analysis_of_classes_by_sparse_inference_says_that_its_intervals_are_of_the_function_alone():
    X, y = table()
    sparse = gs.GP(hyper=gs.Fixed(lengthscale=1.0), likelihood="bernoulli", inference=gs.Sparse(m=10))
    found = gs.analyse(pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y > 0), "y", select=False)
    model = sparse.fit(found.X, found.y)
    found = replace(found, model=model, rankings={"KL": gs.rank(model)})
    assert add_intervals(found).cautions[-1].kind is FindingKind.INTERVALS_LEFT_OUT
    found = add_intervals(found, True)
    assert found.cautions[-1].kind is FindingKind.INTERVALS_OF_FUNCTION
    assert found.leading.draws.shape[1] == 3
