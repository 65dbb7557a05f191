"""Searches that begin on few rows end where searches on all rows end."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.gp.hyperparameters import subsampling
from gpsift.gp.hyperparameters.optimize import Start, maximise
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.restarts import restart_nonlinear, restart_trends
from gpsift.gp.hyperparameters.subsampling import SubsampledSearch, distinct_optima, growing_samples, growing_sizes
from gpsift.gp.inference import ExactInference as ExactInference

OPTIONS = {"n_starts": 3, "seed": 0, "max_iterations": 200}
PRIOR = gs.MAP().log_prior


def posed(effect, n=650, p=4, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = effect(X) + noise * rng.normal(size=n)
    kernel = (gs.SquaredExponential() + gs.Constant()).for_features(p)
    return Problem.exact(kernel, X, (y - y.mean()) / y.std(), tuple(f"x{j + 1}" for j in range(p)))


def counted_rows(monkeypatch):
    """How many evaluations there are on as many rows, from now on."""
    calls, evidence = Counter(), ExactInference.evidence

    def counting(self, *arguments):
        calls[len(self.y)] += 1
        return evidence(self, *arguments)

    monkeypatch.setattr(ExactInference, "evidence", counting)
    return calls


@pytest.mark.parametrize(
    "effect",
    [
        lambda X: np.sin(2 * X[:, 0]) + 0.5 * X[:, 1],
        lambda X: X[:, 0] * X[:, 1],
        lambda X: 0.12 * X[:, 2] + np.cos(2 * X[:, 3]),
    ],
    ids=["wave and line", "product", "weak line"],
)
def test_few_rows_lead_to_the_optimum_of_all(effect, monkeypatch):
    problem = posed(effect)
    on_all = maximise(problem, PRIOR, **OPTIONS)
    calls = counted_rows(monkeypatch)
    found = SubsampledSearch(problem, PRIOR, **OPTIONS).run()
    assert found.best.objective > on_all.best.objective - 0.01
    assert calls[650] <= 20 < 60 < on_all.n_evaluations


def test_where_few_rows_are_misleading_all_starts_are_searched_on_all(monkeypatch):
    monkeypatch.setattr(subsampling, "FAR", -100.0)
    problem = posed(lambda X: np.sin(2 * X[:, 0]))
    found, on_all = SubsampledSearch(problem, PRIOR, **OPTIONS).run(), maximise(problem, PRIOR, **OPTIONS)
    assert {start.objective for start in on_all.starts} <= {start.objective for start in found.starts}


def test_fits_with_a_prior_begin_on_few_of_many_rows(monkeypatch):
    calls = counted_rows(monkeypatch)
    problem = posed(lambda X: np.sin(2 * X[:, 0]))
    gs.GP(hyper=gs.MAP()).fit(problem.X, problem.y)
    assert calls[300] > calls[650] > 0
    for hyper, n in ((gs.MAP(starts=1), 599), (gs.ML2(starts=1), 650)):
        calls.clear()
        gs.GP(hyper=hyper).fit(problem.X[:n], problem.y[:n])
        assert set(calls) == {n}


def ended(*heights):
    return [Start(height, np.zeros(2), True, "", 1) for height in heights]


def test_one_start_goes_on_for_each_optimum_that_is_not_far_behind():
    kept, left = distinct_optima(ended(-20.0, -3.0, -3.05, -7.0, -np.inf))
    assert [start.objective for start in kept] == [-3.0, -7.0]
    assert_allclose([gap for _, gap in left], [0.05, 17.0, np.inf])


def test_samples_grow_within_one_another_and_have_the_extremes():
    y = np.random.default_rng(0).normal(size=3000)
    samples = growing_samples(y, seed=1)
    assert [rows.size for rows in samples] == growing_sizes(3000)
    for rows, more in pairwise(samples):
        assert set(rows) < set(more)
        assert {int(y.argmin()), int(y.argmax())} <= set(rows)
    assert growing_samples(y, seed=1, most=1000)[-1].size == 1000


def far_away(problem, feature, length=1e6):
    """A place at which one feature is off and all others are as the search begins."""
    place = problem.log_params + problem.log_units
    place[problem.labels.index(("lengthscale", feature))] = np.log(length)
    return place


def test_a_feature_with_a_trend_is_brought_back_and_no_other():
    """Whether it has one is what the evidence says as its length-scale comes nearer."""
    problem = posed(lambda X: np.sin(X[:, 0]) + 0.5 * X[:, 1], n=200, p=8)
    place = problem.log_params + problem.log_units
    place[1:8] = np.log(1e6)
    back = restart_trends(problem, place)
    for j, feature in enumerate(problem.names[1:], start=1):
        nearer = place.copy()
        nearer[j] = np.log(300.0)
        grows = problem.evidence(nearer).value > problem.evidence(place).value
        assert (back[j] < np.log(11.0)) == grows, feature
    assert back[1] < place[1]
    assert np.any(back[2:8] == place[2:8])
    near = problem.log_params + problem.log_units
    assert restart_trends(problem, near) is near


def test_a_feature_that_bends_without_a_trend_is_tried_with_bends():
    problem = posed(lambda X: np.sin(X[:, 0]) + np.cos(2 * X[:, 1]), n=200)
    at = problem.labels.index(("lengthscale", "x2"))
    place = far_away(problem, "x2")
    tried = restart_nonlinear(problem, place)
    assert tried[at] < np.log(2.5)
    assert problem.evidence(tried).value > problem.evidence(place).value
    assert restart_nonlinear(problem, far_away(problem, "x4")) is None
