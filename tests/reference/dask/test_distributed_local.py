"""Models fitted by dask's scheduler in this process: choices, points, groups, categories, refusals."""

import json
import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from optional import need
from typer.testing import CliRunner

import gpsift as gs
from gpsift.app.cli.app import app
from gpsift.relevance import points as points_module

dask = need("dask")
array = need("dask.array")

FIXED = gs.Fixed(lengthscale=np.array([0.8, 1.5, 3.0, 2.0]), signal_var=1.3, noise_var=0.05, constant_var=0.2)


@pytest.fixture(params=["threads", "synchronous"])
def scheduler(request):
    with dask.config.set(scheduler=request.param):
        yield


@pytest.fixture(scope="module")
def both(table, divided):
    """The same model fitted in memory and in partitions."""
    model = gs.GP(hyper=FIXED, inference=gs.Sparse(m=30))
    return model.fit(*table[:2]), model.fit(*divided(*table[:2]))


@pytest.fixture
def few_kept(monkeypatch):
    monkeypatch.setattr(points_module, "KEPT_ROWS", 100)


def test_a_saved_model_of_partitions_is_ranked_by_the_command(table, both, tmp_path):
    """Its rows are not in the file, only some of them."""
    here, there = both
    there.save(tmp_path / "model.gpsift")
    pd.DataFrame(table[0], columns=there.inputs.names).to_csv(tmp_path / "rows.csv", index=False)
    words = ["rank", str(tmp_path / "rows.csv"), "--model", str(tmp_path / "model.gpsift"), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    (ranking,) = json.loads(result.stdout)["rankings"].values()
    scores = {each["feature"]: each["score"] for each in ranking["columns"]}
    assert_allclose([scores[name] for name in here.inputs.names], gs.rank(here).scores, rtol=1e-6)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("noise", ["estimated", "each", "same"])
@pytest.mark.usefixtures("scheduler")
def test_fit_matches_that_in_memory(table, divided, standardize, noise):
    X, y, each = table
    dask_X, dask_y, dask_each = divided(*table)
    here_noise, there_noise = {"estimated": (None, None), "each": (each, dask_each), "same": (0.1, 0.1)}[noise]
    unit, height = (np.ones(4), 1.0) if standardize else (X.std(axis=0), y.var())
    hyper = gs.Fixed(
        lengthscale=FIXED.lengthscale * unit,
        signal_var=1.3 * height,
        noise_var=0.05 * height if noise == "estimated" else None,
        constant_var=0.2 if standardize else y.mean() ** 2,
    )
    model = gs.GP(hyper=hyper, standardize=standardize, inference=gs.Sparse(m=30))
    here, there = model.fit(X, y, noise_var=here_noise), model.fit(dask_X, dask_y, noise_var=there_noise)
    assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, rel=1e-9)
    assert there.quality.elpd_diff == pytest.approx(here.quality.elpd_diff, rel=1e-9)
    assert np.mean(there.noise_var) == pytest.approx(np.mean(here.noise_var), rel=1e-12)
    one, other = here.predict(X[:20] + 0.1), there.predict(X[:20] + 0.1)
    assert_allclose(other.mean, one.mean, rtol=1e-8)
    assert_allclose(other.var, one.var, rtol=1e-8)
    assert_allclose(gs.rank(there).scores, gs.rank(here).scores, rtol=1e-8)


@pytest.mark.parametrize("hyper", [gs.ML2(starts=2), gs.MAP(starts=1), gs.Sift()], ids=["ML2", "MAP", "Sift"])
def test_searched_hyperparameters_match_those_in_memory(table, divided, hyper):
    for standardize in (True, False):
        model = gs.GP(hyper=hyper, inference=gs.Sparse(m=20), standardize=standardize)
        here, there = model.fit(*table[:2]), model.fit(*divided(*table[:2]))
        assert there.log_marginal_likelihood == pytest.approx(here.log_marginal_likelihood, abs=1e-3)
        assert there.report.stepped_features == here.report.stepped_features
        assert_array_equal(np.isinf(there.lengthscale), np.isinf(here.lengthscale))


def test_a_start_and_a_ceiling_are_taken(table, divided, both):
    here, there = both
    X, y, _ = divided(*table)
    model = gs.GP(hyper=gs.ML2(starts=1), inference=gs.Sparse(m=30))
    one = model.fit(*table[:2], start=here, ceiling=1e6)
    other = model.fit(X, y, start=there, ceiling=1e6)
    assert other.log_marginal_likelihood == pytest.approx(one.log_marginal_likelihood, abs=1e-4)


def test_stepped_features_are_found_in_all_partitions(table, divided):
    X, y, _ = table
    hyper = gs.Fixed(lengthscale=np.array([1.0, 1.0, 1.0, 0.05]), noise_var=0.1)
    for data in ((X, y), divided(X, y)):
        with pytest.warns(gs.GPSiftWarning, match="unrelated levels.*: x4"):
            gs.GP(hyper=hyper, inference=gs.Sparse(m=20)).fit(*data)


@pytest.mark.parametrize(
    "options",
    [
        {"aggregate": "max"},
        {"points": 50, "aggregate": 0.9, "seed": 3},
        {"points": [370, 3, 3, 104]},
        {"groups": {"both": ["x1", "x2"]}},
        {"categorical": ["x4"]},
        {"groups": {"both": ["x1", "x2"]}, "categorical": [3]},
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "measure",
    [gs.KL(), gs.VAR(conditional="normal"), gs.VAR(conditional="residuals")],
    ids=lambda measure: measure.label,
)
@pytest.mark.usefixtures("few_kept")
def test_rankings_match_those_in_memory(both, options, measure):
    here, there = (gs.rank(gp, measure=measure, **options) for gp in both)
    assert_allclose(there.scores, here.scores, rtol=1e-10)
    assert there.names == here.names
    if "points" in options:
        assert_array_equal(there.rows, here.rows)
        assert_allclose(there.pointwise, here.pointwise, rtol=1e-8, atol=1e-10)
    else:
        assert_allclose(there.points, here.points[there.rows], rtol=1e-10, atol=1e-10)
    assert there.details["n_points"] == here.details["n_points"]


def test_whole_model_measures_and_joint_ones(both):
    here, there = both
    assert_allclose(gs.rank(there, measure=gs.ARD()).scores, gs.rank(here, measure=gs.ARD()).scores, rtol=1e-12)
    some = {"measure": gs.RATE(), "points": 60}
    assert_allclose(gs.rank(there, **some).scores, gs.rank(here, **some).scores, rtol=1e-6)
    with pytest.raises(ValueError, match=r"RATE\(\) looks at all points together.*points="):
        gs.rank(there, measure=gs.RATE())
    with pytest.raises(ValueError, match=r"A quantile, aggregate=0.5.*points="):
        gs.rank(there, aggregate=0.5)


def test_intervals_of_rows_elsewhere_are_refused_before_they_are_scored(both, monkeypatch):
    _, there = both
    monkeypatch.setattr("gpsift.relevance.measure.apply_measure", None)
    with pytest.raises(ValueError, match=r"`intervals` looks at rows in memory.*X.head"):
        gs.rank(there, intervals=True)


@pytest.mark.usefixtures("few_kept")
def test_any_model_is_ranked_at_rows_of_a_collection(table, both):
    here, there = both
    X = table[0] + 0.05
    dask_X = array.from_array(X, chunks=(133, 3))
    expected = gs.rank(here, X).scores
    exact = gs.GP(hyper=FIXED, inference="exact").fit(table[0][:80], table[1][:80])
    assert_allclose(gs.rank(here, dask_X).scores, expected, rtol=1e-10)
    assert_allclose(gs.rank(there, dask_X).scores, expected, rtol=1e-10)
    assert_allclose(gs.rank(there, X).scores, expected, rtol=1e-10)
    assert_allclose(
        gs.rank(exact, dask_X, gs.VAR(conditional="normal")).scores,
        gs.rank(exact, X, gs.VAR(conditional="normal")).scores,
        rtol=1e-10,
    )


def test_points_of_a_collection_are_checked(table, both):
    _, there = both
    X = table[0].copy()
    with pytest.raises(ValueError, match="`X` has 3 features but the model was fitted on 4"):
        gs.rank(there, array.from_array(X[:, :3], chunks=300))
    X[250, 2] = np.nan
    with pytest.raises(ValueError, match=r"`X` has missing or infinite values in 1 column\(s\): x3 \(1 rows\)"):
        gs.rank(there, array.from_array(X, chunks=300))
    unknown = gs.as_reference(lambda X: (X[:, 0], 0.1 + 0.0 * X[:, 0]), family="gaussian", feature_names=list("abcd"))
    with pytest.raises(ValueError, match="does not know its training inputs"):
        gs.rank(unknown, array.from_array(table[0], chunks=300))


def test_too_many_levels_are_refused(both):
    with pytest.raises(ValueError, match="`categorical` names 'x1', which has .* different values"):
        gs.rank(both[1], categorical=["x1"])


def test_a_fitted_model_says_what_it_is(both, table):
    _, there = both
    assert repr(there).startswith("FittedGP on 400 rows and 4 features")
    assert there.inputs.X is None
    assert there.inputs.source is not None
    assert there.sample(table[0][:3], 2).shape == (2, 3)
    assert there.gradients(table[0][:3])[0].shape == (3, 4)
    assert set(there.hyperparameters) == set(both[0].hyperparameters)


def test_a_saved_model_comes_back_without_its_rows(both, table, tmp_path):
    _, there = both
    there.save(tmp_path / "model.gpsift")
    again = gs.load(tmp_path / "model.gpsift")
    assert_array_equal(again.predict(table[0][:5]).mean, there.predict(table[0][:5]).mean)
    assert_array_equal(gs.rank(again, table[0]).scores, gs.rank(there, table[0]).scores)
    assert repr(again) == repr(there)
    with pytest.raises(ValueError, match="does not know its training inputs; pass the points"):
        gs.rank(again)


def test_arrays_of_the_sheet_are_those_of_a_sample(table, divided, both, monkeypatch):
    monkeypatch.setattr("gpsift.gp.quality.KEPT_ROWS", 50)
    there = gs.GP(hyper=FIXED, inference=gs.Sparse(m=30)).fit(*divided(*table[:2]))
    sheet, all_rows = there.quality, both[0].quality
    assert sheet.lpd.shape == sheet.rows.shape == (50,)
    assert sheet.n_rows == 400
    assert_allclose(sheet.lpd, all_rows.lpd[sheet.rows], rtol=1e-8)
    assert sheet.elpd == pytest.approx(all_rows.elpd, rel=1e-10)


def test_a_bar_counts_the_partitions_of_each_pass_on_a_terminal(table, divided, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    gs.GP(hyper=FIXED, inference=gs.Sparse(m=10)).fit(*divided(*table[:2]))
    shown = capsys.readouterr().err
    assert "4/4" in shown
    for title in ("summarise", "site_sums", "leave_one_out_sums"):
        assert title in shown
