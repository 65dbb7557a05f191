"""What a fit takes over from a related one: a place to start and a height that cannot be exceeded."""

import numpy as np
import pandas as pd
import pytest

import gpsift as gs
from gpsift.gp.hyperparameters.problem import Problem
from gpsift.gp.hyperparameters.related import related_start
from gpsift.kernels import SquaredExponential
from gpsift.selection.submodels import warm_start


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
    ceiling = warm_start(fitted, model.hyper)["ceiling"]
    assert (ceiling == fitted.log_marginal_likelihood) if has_ceiling else ceiling is None


def test_the_ceiling_does_not_change_a_path(table, monkeypatch):
    X, y = table
    with_ceiling = gs.search(X, y, model=gs.GP(hyper=gs.ML2()), work=gs.Work(progress=False))
    monkeypatch.setattr(
        "gpsift.selection.submodels.warm_start", lambda fitted, hyper: {"start": warm_start(fitted, hyper)["start"]}
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
    start = np.exp(related_start(problem, {"lengthscale[a]": 2.0, "lengthscale[a] 2": 3.0}))
    labels = np.array([f"{kind}[{feature}]" for kind, feature in problem.labels])
    assert start[labels == "lengthscale[a]"] == pytest.approx([2.0, 3.0])
