"""The whole way from a table to an answer."""

import importlib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import gpsift as gs
from gpsift.app.analysis import analyse as module_level_analyse
from gpsift.app.analysis.cautions import find_cautions
from gpsift.app.analysis.rows import explain_rows
from gpsift.app.analysis.run import plan_analysis
from gpsift.app.findings import Finding, FindingKind, group_by_title
from gpsift.app.tables.clean import prepare

analysis_run = importlib.import_module("gpsift.app.analysis.run")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "bend": rng.normal(size=n),
            "colour": rng.choice(["red", "green", "blue"], n),
            "sex": rng.choice(["f", "m"], n),
            "idle": rng.normal(size=n),
        }
    )
    frame["y"] = 2 * np.sin(frame["bend"]) + 2 * (frame["colour"] == "red") + 0.2 * rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def answer(frame):
    return gs.analyse(frame, "y", samples=3)


def test_the_answer_speaks_of_the_users_columns(answer):
    assert answer.leading.names == ("bend", "colour", "sex", "idle")
    assert all(set(ranking.names) == set(answer.leading.names) for ranking in answer.rankings.values())
    assert list(answer.rankings) == ["KL", "VAR", "ARD"]
    assert set(answer.selected) == {"bend", "colour"}
    assert answer.stability.names == answer.leading.names
    assert answer.stability.n_splits == 3


def test_the_answer_shows_itself(answer):
    words = repr(replace(answer, cautions=(Finding(FindingKind.AT_LIMIT, {"parameters": ("odd", "but true")}),)))
    assert words.startswith("Analysis of y (regression): 60 rows, 4 columns, from a data frame")
    assert "most relevant by KL(): " in words
    assert f"enough: {', '.join(answer.selected)}" in words
    assert "A parameter ended at its limit: odd; but true." in words
    assert "enough" not in repr(replace(answer, path=None))


def test_scores_are_those_of_rank(answer):
    options = {"groups": answer.groups, "categorical": list(answer.groups)}
    assert_allclose(answer.leading.scores, gs.rank(answer.model, **options).scores)
    assert_allclose(answer.rankings["VAR"].scores, gs.rank(answer.model, measure=gs.VAR(), **options).scores)
    single = dict(zip(answer.X, gs.rank(answer.model, measure=gs.ARD()).scores, strict=True))
    ard = dict(zip(answer.rankings["ARD"].names, answer.rankings["ARD"].scores, strict=True))
    assert ard["bend"] == single["bend"]
    assert ard["colour"] == max(single[column] for column in answer.groups["colour"])


def test_without_search_there_is_no_path(frame):
    answer = gs.analyse(frame, "y", select=False)
    assert answer.path is None
    assert answer.selected is None
    assert answer.stability is None


def test_another_measure_leads(frame):
    answer = gs.analyse(frame, "y", measure="var", select=False)
    assert list(answer.rankings) == ["VAR", "ARD"]
    assert answer.leading.measure == "VAR()"


@pytest.mark.parametrize(
    ("target", "likelihood"),
    [("sex", "Probit"), ("colour", "Softmax"), ("y", "Gaussian")],
    ids=["two", "several", "number"],
)
@pytest.mark.filterwarnings("ignore:The model does not predict better")
def test_the_likelihood_goes_with_the_task(frame, target, likelihood):
    answer = gs.analyse(frame, target, select=False, hyper=gs.MAP(starts=1))
    assert type(answer.model.likelihood).__name__ == likelihood


def test_a_file_is_a_table_too(frame, tmp_path):
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    answer = gs.analyse(path, "y", select=False)
    assert answer.source == str(path)
    assert_allclose(answer.leading.scores, gs.analyse(frame, "y", select=False).leading.scores, rtol=1e-6)


def test_a_target_is_needed(frame):
    with pytest.raises(TypeError, match="`target` is missing"):
        module_level_analyse(frame)


def test_many_columns_shorten_the_search(monkeypatch, frame):
    monkeypatch.setattr(analysis_run, "LARGEST_PATH", 2)
    monkeypatch.setattr(analysis_run, "MANY_COLUMNS", 4)  # of the user's columns, not of indicators
    answer = gs.analyse(frame, "y", hyper=gs.MAP())
    assert list(answer.path.sizes) == [0, 1, 2]
    assert any("up to size 2 of 4" in caution.detail for caution in answer.cautions)
    assert FindingKind.MANY_COLUMNS not in [caution.kind for caution in answer.cautions]
    monkeypatch.setattr(analysis_run, "MANY_COLUMNS", 3)
    answer = gs.analyse(frame, "y", hyper=gs.MAP())
    assert list(answer.path.sizes) == [0, 1, 2]
    assert FindingKind.MANY_COLUMNS in [caution.kind for caution in answer.cautions]


def test_orders_that_try_every_column_are_not_searched_with_many(monkeypatch, frame):
    monkeypatch.setattr(analysis_run, "MANY_COLUMNS", 3)
    answer = gs.analyse(frame, "y", measure=gs.Backward(), hyper=gs.MAP())
    assert answer.path is None
    assert "tries every column, and there are 4, more than 3." in answer.unsearched.detail
    assert any(answer.unsearched.detail in caution.detail for caution in answer.cautions)


def test_the_full_model_is_fitted_once(monkeypatch, frame):
    fits = []
    fit = gs.GP.fit
    monkeypatch.setattr(
        gs.GP,
        "fit",
        lambda self, X, *args, **options: fits.append(list(getattr(X, "names", X))) or fit(self, X, *args, **options),
    )
    answer = gs.analyse(frame, "y")
    assert fits.count(list(answer.X)) == 1
    assert len(fits) == len(answer.path.sizes)
    assert_allclose(
        answer.path.reference_lpd,
        gs.search(
            answer.X,
            answer.y,
            model=gs.GP(hyper=gs.Sift(groups=answer.groups)),
            features=gs.Features(groups=answer.groups, categorical=list(answer.groups)),
        ).reference_lpd,
    )


def rows_and_inference(answer):
    return len(answer.y), answer.model.inference


@pytest.mark.filterwarnings("ignore:The model does not predict better")
def test_many_rows_are_ranked_by_sparse_inference_and_searched_on_a_sample(monkeypatch, frame):
    monkeypatch.setattr(analysis_run, "LARGEST_QUICK", 40)
    monkeypatch.setattr(analysis_run, "MOST_ROWS_OF_A_SPARSE_RANKING", 50)
    monkeypatch.setattr(analysis_run, "MOST_ROWS_OF_A_SEARCH", 30)
    monkeypatch.setattr(analysis_run, "MOST_ROWS_OF_AN_ITERATED_SEARCH", 25)
    ranked = gs.analyse(frame, "y", select=False)
    assert rows_and_inference(ranked) == (50, "sparse")
    said = " ".join(caution.detail for caution in ranked.cautions)
    assert "50 of 60 rows were used, drawn with seed 0" in said
    assert f"{ranked.model.report.n_inducing} inducing points stand for them" in said
    before = plan_analysis(frame, "y", gs.Reading(), likelihood=None, seed=0, ranks_only=True)
    planned = " ".join(caution.detail for caution in before.cautions)
    assert "inducing points or the rows near each block, whichever predict better, stand for them" in planned
    assert rows_and_inference(gs.analyse(frame, "y", select=False, reading=gs.Reading(most_rows=40))) == (40, "exact")
    assert rows_and_inference(gs.analyse(frame, "y")) == (30, "exact")
    assert rows_and_inference(gs.analyse(frame, "sex", hyper=gs.MAP(starts=1))) == (25, "ep")
    assert rows_and_inference(gs.analyse(frame, "sex", select=False, hyper=gs.MAP(starts=1))) == (40, "ep")
    assert rows_and_inference(gs.analyse(frame, "y", select=False, likelihood="student-t")) == (40, "laplace")


def test_a_table_that_neighbours_predict_better_is_said_to_be_by_them(monkeypatch):
    monkeypatch.setattr(analysis_run, "LARGEST_QUICK", 400)
    monkeypatch.setattr(analysis_run, "Sparse", lambda: gs.Sparse(m=20))
    rng = np.random.default_rng(5)
    wavy = pd.DataFrame(rng.uniform(-1.0, 1.0, size=(500, 2)), columns=["a", "b"])
    wavy["y"] = np.sin(6.0 * wavy["a"]) * np.cos(6.0 * wavy["b"]) + 0.1 * rng.normal(size=500)
    answer = gs.analyse(wavy, "y", select=False, hyper=gs.ML2(starts=2))
    n_blocks = answer.model.report.n_blocks
    assert n_blocks > 0
    assert any(f"the neighbours of {n_blocks} blocks of rows stand for them" in each.detail for each in answer.cautions)


def test_ard_gives_a_category_the_score_of_its_best_indicator(frame):
    answer = gs.analyse(frame, "y", measure="ard", select=False)
    scores = dict(zip(answer.X, gs.rank(answer.model, measure=gs.ARD()).scores, strict=True))
    assert answer.leading.names == ("bend", "colour", "sex", "idle")
    best = [scores["bend"], max(scores[column] for column in answer.groups["colour"]), scores["sex=m"], scores["idle"]]
    assert list(answer.leading.scores) == best
    assert answer.leading.points.shape == (60, 4)


@pytest.mark.parametrize("measure", [gs.RATE(), gs.Derivative()])
def test_a_measure_of_groups_but_not_of_categories_takes_indicators_as_a_group(frame, measure):
    answer = gs.analyse(frame, "y", measure=measure, select=False)
    expected = gs.rank(answer.model, measure=measure, groups=answer.groups)
    assert answer.leading.names == expected.names == ("bend", "colour", "sex", "idle")
    assert_allclose(answer.leading.scores, expected.scores)


def test_a_checkpoint_must_be_a_folder(frame, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="must be a folder"):
        gs.analyse(frame, "y", work=gs.Work(checkpoint=tmp_path / "file"))


def test_the_same_seed_gives_the_same_answer(frame):
    once, again = (gs.analyse(frame, "y", reading=gs.Reading(most_rows=40), seed=3, select=False) for _ in range(2))
    assert_allclose(once.leading.scores, again.leading.scores, rtol=1e-9)
    assert list(once.rows.index) == list(again.rows.index)
    assert len(once.y) == 40


def test_local_relevances_average_to_the_ranking(answer):
    everywhere = explain_rows(answer, answer.X, answer.y)
    assert_allclose(everywhere.scores, answer.leading.scores, rtol=1e-9)
    assert_allclose(everywhere.average, answer.leading.scores, rtol=1e-9)
    one = explain_rows(answer, answer.X.iloc[[5]], answer.y[[5]])
    assert_allclose(one.scores, answer.leading.pointwise[5], rtol=1e-6)
    assert_allclose(one.moves_mean + one.moves_variance, answer.leading.used)  # a column that is off moves nothing
    assert one.prediction[0] == pytest.approx(answer.model.predict(answer.X).mean[5])


# -- cautions ----------------------------------------------------------------------------------------------------------


NOTES = (
    Finding(FindingKind.COLUMN_EMPTY, {"columns": ("this",)}),
    Finding(FindingKind.ROWS_DRAWN, {"used": 40, "n_rows": 60, "seed": 3}),
)


def titles(answer):
    return [caution.title for caution in answer.cautions]


def test_a_sound_answer_has_no_cautions(frame):
    assert titles(gs.analyse(frame, "y", select=False)) == []


def test_columns_that_go_together_are_named(frame):
    twin = frame.assign(twin=frame["bend"] + 0.01 * np.arange(60) / 60)
    (caution,) = [c for c in gs.analyse(twin, "y", select=False).cautions if c.title == "Columns that go together"]
    assert "bend and twin (+1.00)" in caution.detail


def test_indicators_of_a_category_do_not_count_as_twins(frame):
    two = frame.assign(other=np.where((frame["sex"] == "f") ^ (np.arange(60) == 7), "a", "b"))
    every = {"select": False, "hyper": gs.MAP()}
    assert "Columns that go together" in titles(gs.analyse(two, "y", **every))
    assert "Columns that go together" not in titles(gs.analyse(frame, "y", **every))


def test_a_model_that_explains_nothing_is_the_first_caution():
    rng = np.random.default_rng(1)
    noise = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "y"])
    with pytest.warns(gs.GPSiftWarning, match="does not predict better"):
        answer = gs.analyse(noise, "y", select=False)
    assert titles(answer)[0] == "The model explains nothing"


def test_trouble_is_told_of_the_users_columns(answer):
    moving = ("colour=red", "colour=blue", "bend")
    report = replace(
        answer.model.report, starts_agree=False, moving_features=moving, constant_columns=("colour=green",)
    )
    found = find_cautions(replace(answer.model, report=report), prepare(answer.rows, "y"), NOTES)
    assert [title for title, _ in group_by_title(found)] == [
        "Several fits describe the data equally well",
        "What was done with the table",
    ]
    assert "length-scales of colour, bend." in found[0].detail
    assert (
        group_by_title(found)[1][1]
        == "The column 'this' was left out: nothing is in there. 40 of 60 rows were used, drawn with seed 3."
    )


def test_trouble_of_inference_and_steps_is_told(answer):
    report = replace(answer.model.report, inference_converged=False, n_iterations=7, stepped_features=("sex=m", "idle"))
    unsettled, stepped = find_cautions(replace(answer.model, report=report), prepare(answer.rows, "y"), [])
    assert "After 7 iterations" in unsettled.detail
    assert stepped.detail.startswith("idle: ")


def test_constant_columns_and_few_rows(frame):
    with pytest.warns(gs.GPSiftWarning, match="Constant column"):
        answer = gs.analyse(prepare(frame[:18].assign(always=1.0), "y"), select=False)
    assert "Constant columns" in titles(answer)
    assert "Few rows for the number of columns" in titles(answer)
