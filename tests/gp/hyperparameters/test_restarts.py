"""A fit takes over from a related one a starting point and an upper bound of the evidence."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import gpsift as gs
from gpsift.gp.hyperparameters import Problem
from gpsift.gp.hyperparameters.restarts import INACTIVE, SMOOTH, reactivate, shorten_lengthscales, warm_start
from gpsift.gp.inference import ExactInference as ExactInference
from gpsift.kernels import Constant, SquaredExponential
from gpsift.likelihoods import Gaussian
from gpsift.selection.submodels import parent_start


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.normal(size=(80, 4)), columns=["a", "b", "c", "d"])
    return X, np.sin(2 * X["a"]) + X["b"] + 0.2 * rng.normal(size=80)


@pytest.fixture(scope="module")
def full(table):
    return gs.GP(hyper=gs.ML2()).fit(*table)


def test_a_submodel_at_the_ceiling_is_searched_once(table, full):
    X, y = table
    small = gs.GP(hyper=gs.ML2()).fit(X[["a", "b"]], y, start=full, ceiling=full.log_marginal_likelihood)
    whole = gs.GP(hyper=gs.ML2()).fit(X[["a", "b"]], y)
    assert len(small.report.objectives) == 1
    assert len(whole.report.objectives) == 3
    assert small.log_marginal_likelihood == pytest.approx(whole.log_marginal_likelihood, abs=1e-3)


def test_a_submodel_below_the_ceiling_is_searched_from_all_starts(table, full):
    X, y = table
    small = gs.GP(hyper=gs.ML2()).fit(X[["b", "c"]], y, start=full, ceiling=full.log_marginal_likelihood)
    assert full.log_marginal_likelihood - small.log_marginal_likelihood > 10
    assert len(small.report.objectives) == 3


def test_features_that_were_off_stay_off_only_where_the_ceiling_is_met_without_them(table, full):
    X, y = table
    start = {**full.hyperparameters, "lengthscale[c]": 1e6, "lengthscale[d]": 1e6}
    met = gs.GP(hyper=gs.ML2()).fit(X[["a", "b", "c"]], y, start=start, ceiling=full.log_marginal_likelihood)
    assert met.hyperparameters["lengthscale[c]"] > 1e5
    # Without `a` the feature that is off may be needed, and has to be seen.
    needed = gs.GP(hyper=gs.ML2(starts=1)).fit(
        X[["b", "c"]], np.sin(X["c"]) + 0.01 * y, start=start, ceiling=full.log_marginal_likelihood
    )
    assert needed.hyperparameters["lengthscale[c]"] < 10


def test_a_prior_has_no_ceiling(table, full):
    X, y = table
    small = gs.GP(hyper=gs.MAP()).fit(X[["a", "b"]], y, start=full, ceiling=full.log_marginal_likelihood)
    assert len(small.report.objectives) == 3


@pytest.mark.parametrize(
    ("model", "has_ceiling"),
    [
        (gs.GP(hyper=gs.ML2()), True),
        (gs.GP(hyper=gs.MAP(starts=1)), False),
        (gs.GP(kernel=SquaredExponential(lengthscale=1.0, shared=True)), False),
    ],
    ids=["ML2", "MAP", "one length-scale for all"],
)
def test_submodels_have_the_full_models_evidence_as_ceiling_where_they_are_its_limits(table, model, has_ceiling):
    fitted = model.fit(*table)
    ceiling = parent_start(fitted, model.hyper)["ceiling"]
    assert (ceiling == fitted.log_marginal_likelihood) if has_ceiling else ceiling is None


def test_the_ceiling_does_not_change_a_path(table, monkeypatch):
    X, y = table
    with_ceiling = gs.search(X, y, model=gs.GP(hyper=gs.ML2()), work=gs.Work(progress=False))
    monkeypatch.setattr(
        "gpsift.selection.submodels.parent_start", lambda fitted, hyper: {"start": parent_start(fitted, hyper)["start"]}
    )
    without = gs.search(X, y, model=gs.GP(hyper=gs.ML2()), work=gs.Work(progress=False))
    np.testing.assert_array_equal(with_ceiling.order, without.order)
    np.testing.assert_allclose(with_ceiling.elpd, without.elpd, atol=0.1)  # optima that agree by their evidence


def test_equal_kinds_of_two_terms_keep_their_own_values(table):
    X, y = table
    kernel = SquaredExponential(lengthscale=1.0) + SquaredExponential(lengthscale=6.0, signal_var=0.5)
    model = gs.GP(kernel=kernel, hyper=gs.ML2(starts=1))
    fitted = model.fit(X, y)
    values = fitted.hyperparameters
    first, second = (term.lengthscale for term in fitted.kernel.terms)
    assert [values[f"lengthscale[{name}]"] for name in X] == pytest.approx(first)
    assert [values[f"lengthscale[{name}] 2"] for name in X] == pytest.approx(second)
    assert len(values) == 2 * 4 + 2 + 1
    problem = Problem.exact(kernel.for_features(4), X.to_numpy(), y.to_numpy(), tuple(X))
    start = np.exp(warm_start(problem, {"lengthscale[a]": 2.0, "lengthscale[a] 2": 3.0}))
    labels = np.array([f"{kind}[{feature}]" for kind, feature in problem.labels])
    assert start[labels == "lengthscale[a]"] == pytest.approx([2.0, 3.0])


RNG = np.random.default_rng(2)
X = RNG.normal(size=(120, 4))
X /= X.std(axis=0)
Y = np.sin(2.0 * X[:, 0]) + 0.4 * np.sin(3.0 * X[:, 1]) + 0.3 * X[:, 2] + 0.1 * RNG.normal(size=120)
UNIT = 2.0  # where searches begin with four features


@pytest.fixture
def problem():
    kernel = (SquaredExponential() + Constant()).for_features(4)
    return Problem(kernel, Gaussian(), X, Y, ExactInference(X, Y), ("a", "b", "c", "d"))


def at(*lengths, signal_var=1.0, noise_var=0.05):
    return np.log([*lengths, signal_var, 0.1, noise_var])


def test_idle_features_come_back_and_others_stay(problem):
    lengths = [0.3, 1.01 * INACTIVE.beyond * UNIT, 0.99 * INACTIVE.beyond * UNIT, np.inf]
    found = reactivate(problem, at(*lengths))
    assert_allclose(np.exp(found[:4]), [0.3, 3.0 * UNIT, lengths[2], np.inf])
    assert_array_equal(found[4:], at(*lengths)[4:])


def test_a_feature_that_bends_is_tried_at_shorter_length_scales(problem):
    start = at(0.8, 6.0, 6.0, np.inf)
    found = shorten_lengthscales(problem, start)
    tried = {factor: at(0.8, factor * UNIT, 6.0, np.inf) for factor in SMOOTH.values}
    best = max(SMOOTH.values, key=lambda factor: problem.log_evidence(tried[factor]))
    assert np.exp(found[1]) == pytest.approx(best * UNIT)
    assert problem.log_evidence(found) > problem.log_evidence(start) + 5.0
    assert_array_equal(found[[0, 3, 4, 5, 6]], start[[0, 3, 4, 5, 6]])


def test_a_line_stays_a_line(problem):
    """Its large signal variance goes with its length-scale, and would be ruinous with a short one."""
    y = X @ [1.0, 0.5, 0.3, 0.2] + 0.1 * RNG.normal(size=120)
    linear = replace(problem, y=y, engine=ExactInference(X, y))
    start = at(30.0, 60.0, 100.0, 150.0, signal_var=900.0, noise_var=0.01)
    assert_array_equal(shorten_lengthscales(linear, start), start)
    bent = at(2.0, 60.0, 100.0, 150.0, signal_var=900.0, noise_var=0.01)
    assert linear.log_evidence(bent) < linear.log_evidence(start) - 10.0
