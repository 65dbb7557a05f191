"""The commands on tables, as a user types them."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpsift as gs
from gpsift._utils.warnings import warn
from gpsift.app.analysis.costs import MOST_ROWS_OF_INTERVALS
from gpsift.app.cli import app

runner = CliRunner()
# What these options leave out takes most of the time of rank and select.
BARE = ("--no-test", "--no-effects")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table of measurements: a bend, a slope, a category that matters, names of rows, and noise."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    n = 60
    frame = pd.DataFrame(
        {
            "sample": [f"S{i}" for i in range(n)],
            "temperature": rng.normal(20, 5, n).round(2),
            "colour": rng.choice(["red", "green", "blue"], n),
            "sex": rng.choice(["f", "m"], n),
            "noise": rng.normal(size=n).round(3),
        }
    )
    frame["yield"] = (
        3 * np.sin(frame["temperature"] / 5) + 3 * (frame["colour"] == "green") + 0.2 * rng.normal(size=n)
    ).round(3)
    frame.to_csv(folder / "measurements.csv", index=False)
    frame.assign(passed=np.where(frame["yield"] > frame["yield"].median(), "yes", "no")).drop(columns="yield").to_csv(
        folder / "passed.csv", index=False, sep=";", decimal=","
    )
    frame.assign(events=rng.poisson(np.exp(0.6 * frame["yield"]))).drop(columns="yield").to_csv(
        folder / "events.csv", index=False
    )
    holes = frame.copy()
    holes.loc[3, "temperature"] = np.nan
    holes.to_csv(folder / "holes.csv", index=False)
    pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "y"]).to_csv(folder / "nothing.csv", index=False)
    return folder


def run(folder, *words, code=0):
    command, file, *rest = words
    quick = ["--no-intervals"] if command in ("rank", "select") and "--intervals" not in rest else []
    result = runner.invoke(app, [command, str(folder / file), *quick, *rest])
    assert result.exit_code == code, result.output
    return result


def answer(folder, *words, code=0, is_whole=False):
    """The answer as JSON; of rank and select without curves and a test, unless it is to be whole."""
    options = BARE if words[0] in ("rank", "select") and not is_whole else ()
    return json.loads(run(folder, *words, *options, "--json", "--quiet", code=code).stdout)


def test_rank_prints_columns_in_their_order(folder):
    out = run(folder, "rank", "measurements.csv", "--target", "yield").stdout
    assert "60 rows, 4 columns to explain yield (regression)" in " ".join(out.split())
    assert out.index("temperature") < out.index("noise")
    assert out.index("colour") < out.index("noise")
    assert "'sample' was left out" in " ".join(out.split())


def test_columns_are_switched_on_one_by_one(folder):
    out = " ".join(run(folder, "rank", "measurements.csv", "--target", "yield", "--hyper", "sift").stdout.split())
    assert "Columns were switched on one by one" in out
    assert "not used" in out
    found = answer(folder, "select", "measurements.csv", "--target", "yield", "--hyper", "sift")
    used = {each["feature"]: each["used"] for each in found["rankings"]["KL"]["columns"]}
    assert used["temperature"]
    assert not used["noise"]
    assert "temperature" in found["selected"]


def test_rank_as_json(folder):
    found = answer(folder, "rank", "measurements.csv", "-t", "yield", is_whole=True)
    assert found["schema"] == "gpsift-answer/1"
    assert (found["target"], found["task"], found["n_rows"]) == ("yield", "regression", 60)
    assert set(found["rankings"]) == {"KL", "VAR", "ARD"}
    columns = found["rankings"]["KL"]["columns"]
    assert {column["feature"] for column in columns[:2]} == {"temperature", "colour"}
    assert [column["rank"] for column in columns] == [1, 2, 3, 4]
    assert found["quality"]["explains"] is True
    assert "path" not in found


def test_var_takes_a_conditional_and_says_shares(folder):
    words = ("rank", "measurements.csv", "-t", "yield", "--measure", "var")
    found, normal = (answer(folder, *words, *more)["rankings"] for more in ((), ("--conditional", "normal")))
    assert found["VAR"]["measure"] == "VAR()"
    assert normal["VAR"]["measure"] == "VAR(conditional='normal')"
    assert found["VAR"]["columns"] != normal["VAR"]["columns"]
    assert sum(column["share"] for column in found["VAR"]["columns"]) == pytest.approx(1.0)
    assert "share" not in found["ARD"]["columns"][0]
    out = " ".join(run(folder, *words).stdout.split())
    assert "VAR: variance of the mean, in squared units of the target" in out
    assert "share: of variance, each score by VAR as a part of their sum" in out
    by_kl = " ".join(run(folder, *words[:4]).stdout.split())
    assert "KL: strength of reaction, per standard deviation of the column" in by_kl


def test_select_names_what_is_enough(folder):
    found = answer(folder, "select", "measurements.csv", "-t", "yield", is_whole=True)
    assert set(found["selected"]) == {"temperature", "colour"}
    assert found["path"]["suggestion"]["size"] == 2
    assert [row["size"] for row in found["path"]["sizes"]] == [0, 1, 2, 3, 4]
    out = run(folder, "select", "measurements.csv", "-t", "yield", "-q").stdout
    assert "Enough: " in out
    assert "Submodels, leave-one-out" in out


def test_select_in_folds_with_samples_and_another_rule(folder):
    found = answer(
        folder, "select", "measurements.csv", "-t", "yield", "--folds", "3", "--samples", "2", "--rule", "explained"
    )
    assert found["path"]["scheme"] == "3-fold cross-validation"
    assert found["path"]["suggestion"]["rule"] == "explained"
    assert found["stability"]["samples"] == 2


def test_classes_with_a_decimal_comma(folder):
    found = answer(folder, "select", "passed.csv", "-t", "passed")
    assert (found["task"], found["classes"]) == ("classification", ["no", "yes"])
    assert "temperature" in found["selected"]
    empty = found["path"]["sizes"][0]
    assert empty["accuracy"] == pytest.approx(0.5)
    assert empty["auc"] == 0.5


def test_counts(folder):
    found = answer(folder, "rank", "events.csv", "-t", "events", "--task", "counts")
    assert found["task"] == "counts"
    assert found["rankings"]["KL"]["columns"][-1]["feature"] in ("noise", "sex")


def test_stability(folder):
    found = answer(folder, "stability", "measurements.csv", "-t", "yield", "--samples", "4")
    assert found["stability"]["samples"] == 4
    out = run(folder, "stability", "measurements.csv", "-t", "yield", "--samples", "2", "-q").stdout
    assert "2 random samples of 48 rows:" in out


def test_explain_a_row(folder):
    found = answer(folder, "explain", "measurements.csv", "-t", "yield", "--row", "17")
    frame = pd.read_csv(folder / "measurements.csv")
    assert found["rows"] == "row 17"
    assert found["observed"] == [frame["yield"][16]]
    assert abs(found["prediction"][0] - found["observed"][0]) < 1.0
    assert {each["column"] for each in found["relevance"]} == {"temperature", "colour", "sex", "noise"}
    out = run(folder, "explain", "measurements.csv", "-t", "yield", "--row", "17", "-q").stdout
    assert f"observed {frame['yield'][16]:.4g}" in out


def test_explain_says_which_columns_are_not_used(folder):
    question = ("explain", "measurements.csv", "-t", "yield", "--row", "17")
    relevance = answer(folder, *question)["relevance"]
    assert [each["used"] for each in relevance] == sorted([each["used"] for each in relevance], reverse=True)
    (idle,) = [each for each in relevance if each["column"] == "noise"]
    assert (idle["used"], idle["score"]) == (False, 0.0)
    lines = run(folder, *question, "-q").stdout.splitlines()
    assert any("noise" in line and "not used" in line for line in lines)
    assert not any("temperature" in line and "not used" in line for line in lines)


def test_explain_some_rows(folder):
    found = answer(folder, "explain", "measurements.csv", "-t", "yield", "--where", "colour == 'green'")
    frame = pd.read_csv(folder / "measurements.csv")
    assert len(found["observed"]) == (frame["colour"] == "green").sum()
    out = run(folder, "explain", "measurements.csv", "-t", "yield", "--where", "temperature > 20", "-q").stdout
    assert "mostly" in out
    assert "mean " in out


def test_rows_can_be_named_by_a_column_that_is_left_out(folder):
    found = answer(folder, "explain", "measurements.csv", "-t", "yield", "--where", "sample == 'S16'")
    assert found["observed"] == answer(folder, "explain", "measurements.csv", "-t", "yield", "--row", "17")["observed"]


def test_explain_a_row_of_classes(folder):
    out = run(folder, "explain", "passed.csv", "-t", "passed", "--row", "2", "-q").stdout
    assert "predicted no " in out
    assert "observed " in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rank", "measurements.csv", "-t", "yeild"), "There is no column 'yeild'"),
        (("rank", "nowhere.csv", "-t", "y"), "There is no file"),
        (("rank", "holes.csv", "-t", "yield", "--strict"), "1 of 60 rows have missing values, in temperature (1)"),
        (("rank", "measurements.csv", "-t", "yield", "--likelihood", "cauchy"), "`likelihood` must be one of"),
        (("explain", "measurements.csv", "-t", "yield", "--row", "61"), "There is no row 61; the table has 60"),
        (("explain", "measurements.csv", "-t", "yield", "--where", "noise > 100"), "No row satisfies"),
        (("explain", "measurements.csv", "-t", "yield", "--where", "open('x')"), "is not allowed"),
    ],
)
def test_bad_input_ends_with_one_line_and_code_1(folder, words, message):
    result = run(folder, *words, code=1)
    assert message in result.stderr
    assert result.stderr.startswith("gpsift: ")
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ("rank", "measurements.csv"),
        ("explain", "measurements.csv", "-t", "yield"),
        ("explain", "measurements.csv", "-t", "yield", "--row", "1", "--where", "noise > 0"),
        ("rank", "measurements.csv", "-t", "yield", "--html", "no/such/folder/page.html"),
        ("rank", "measurements.csv", "-t", "yield", "--task", "guessing"),
        ("rank", "measurements.csv", "-t", "yield", "--measure", "var", "--conditional", "uniform"),
        ("select", "measurements.csv", "-t", "yield", "--conditional", "residuals"),
    ],
)
def test_a_wrong_call_ends_with_code_2(folder, words):
    run(folder, *words, code=2)


def test_a_model_that_explains_nothing_ends_with_code_3(folder):
    result = run(folder, "rank", "nothing.csv", "-t", "y", code=3)
    assert "The model explains nothing" in result.stdout
    assert result.stderr.count("gpsift: The model does not predict better") == 1
    assert run(folder, "rank", "nothing.csv", "-t", "y", "-q", code=3).stderr == ""


def test_an_error_says_all_in_one_line(folder, monkeypatch):
    def failing(*_args, **_kwargs):
        warn("something odd")
        raise ValueError("of no\nuse")

    monkeypatch.setattr("gpsift.app.cli.outputs.analyse", failing)
    assert run(folder, "rank", "measurements.csv", "-t", "yield", code=1).stderr == "gpsift: of no use\n"


@pytest.mark.parametrize("measure", ["ard", "rate", "derivative", "var"])
def test_any_measure_leads_where_there_are_categories(folder, measure):
    found = answer(folder, "select", "measurements.csv", "-t", "yield", "--measure", measure)
    first, *_ = found["rankings"].values()
    assert {column["feature"] for column in first["columns"]} == {"temperature", "colour", "sex", "noise"}
    assert first["columns"][0]["feature"] in ("temperature", "colour")
    told = run(folder, "rank", "measurements.csv", "-t", "yield", "--measure", measure, "-q").stdout
    assert told.partition("───")[2].count("colour") == 1


@pytest.mark.parametrize(
    "words", [("select", "--no-test"), ("stability", "--samples", "4")], ids=["select", "stability"]
)
def test_a_checkpoint_saves_fits(folder, tmp_path, monkeypatch, words):
    command, *rest = words
    call = (command, "measurements.csv", "-t", "yield", *rest, "--checkpoint", str(tmp_path / "kept"))
    first = answer(folder, *call)
    fits = []
    fit = gs.GP.fit
    monkeypatch.setattr(
        gs.GP, "fit", lambda self, X, *args, **options: fits.append(X) or fit(self, X, *args, **options)
    )
    again = answer(folder, *call)
    assert len(fits) == 1  # the full model, which the page shows
    assert again["rankings"] == first["rankings"]
    assert again.get("path") == first.get("path")
    assert again.get("stability") == first.get("stability")
    other = run(folder, *call, "--seed", "5", code=1)
    assert "belongs to other work" in other.stderr


def test_missing_rows_can_be_dropped(folder):
    found = answer(folder, "rank", "holes.csv", "-t", "yield", "--missing", "drop")
    assert found["n_rows"] == 59
    assert any("1 of 60 rows" in caution["detail"] for caution in found["cautions"])
    result = run(folder, "explain", "holes.csv", "-t", "yield", "--missing", "drop", "--row", "4", code=1)
    assert "Row 4 has missing values" in result.stderr
    after = answer(folder, "explain", "holes.csv", "-t", "yield", "--missing", "drop", "--row", "5")
    assert after["observed"] == [pd.read_csv(folder / "holes.csv")["yield"][4]]


def test_large_tables_are_thinned_with_the_seed(folder):
    once, again, other = (
        answer(folder, "rank", "measurements.csv", "-t", "yield", "--rows", "40", "--seed", seed)
        for seed in ("1", "1", "2")
    )
    assert once["n_rows"] == 40
    assert any("40 of 60 rows were used" in caution["detail"] for caution in once["cautions"])
    assert once["rankings"] == again["rankings"]
    assert once["rankings"] != other["rankings"]


def test_an_interrupt_ends_with_code_130(folder, monkeypatch):
    def interrupted(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpsift.app.cli.outputs.analyse", interrupted)
    result = run(folder, "rank", "measurements.csv", "-t", "yield", code=130)
    assert "interrupted. No half-written file is left." in result.stderr


@pytest.mark.parametrize("command", ["rank", "select", "discover", "explain", "stability", "reproduce", "demo"])
def test_every_help_has_an_example(command):
    out = runner.invoke(app, [command, "--help"]).output
    assert f"Example: gpsift {command}" in out


@pytest.mark.parametrize("measure", ["kl", "ard"])
def test_a_model_is_kept_and_ranked_again(folder, tmp_path, measure):
    kept = tmp_path / "model.gpsift"
    first = answer(folder, "rank", "measurements.csv", "-t", "yield", "--save", str(kept), "--measure", measure)
    expected = scores(first, measure)
    for table in ([], [str(folder / "measurements.csv")]):
        result = runner.invoke(app, ["rank", *table, "--model", str(kept), "--measure", measure, "--json", "-q"])
        assert result.exit_code == 0, result.output
        assert scores(json.loads(result.stdout), measure) == pytest.approx(expected, rel=1e-6)
    residuals = runner.invoke(
        app, ["rank", "--model", str(kept), "--measure", "var", "--conditional", "residuals", "--json", "-q"]
    )
    assert json.loads(residuals.stdout)["rankings"]["VAR"]["measure"] == "VAR(conditional='residuals')"
    shown = runner.invoke(app, ["rank", "--model", str(kept), "-q"])
    assert "colour" in shown.output
    assert "colour=green" not in shown.output


def test_a_sum_is_pointed_out_everywhere(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"net": rng.uniform(10, 90, 40).round(2), "other": rng.normal(size=40).round(2)})
    frame["tax"] = (0.2 * frame["net"] + rng.normal(size=40)).round(2)
    file, page = tmp_path / "prices.csv", tmp_path / "page.html"
    frame.assign(price=frame["net"] + frame["tax"]).to_csv(file, index=False)
    words = ["rank", str(file), "-t", "price", "--no-intervals", "-q"]
    told = "price = net + tax in every row, up to rounding."
    shown = runner.invoke(app, [*words, "--html", str(page)])
    assert f"{told} If they are part of the target" in " ".join(shown.output.split())
    assert "--drop leaves a column out." in shown.output
    record = json.loads(runner.invoke(app, [*words, "--json", "--no-effects", "--no-test"]).stdout)
    (made,) = [each for each in record["cautions"] if each["kind"] == "made-of"]
    assert made["detail"].startswith(told)
    assert made["data"]["columns"] == ["net", "tax"]
    assert {each["feature"] for each in record["rankings"]["KL"]["columns"]} == {"net", "other", "tax"}
    text = page.read_text(encoding="utf-8")
    assert told in text
    assert "Check</b> whether" in text


def test_what_a_saved_model_does_with_a_table_is_told(folder, tmp_path):
    kept, messy, page = tmp_path / "model.gpsift", tmp_path / "messy.csv", tmp_path / "page.html"
    answer(folder, "rank", "measurements.csv", "-t", "yield", "--save", str(kept))
    frame = pd.read_csv(folder / "measurements.csv").drop(columns="sample")
    frame["temperature"] = [f"{value} °C" for value in frame["temperature"]]
    frame.loc[0, "colour"] = "black"
    frame.to_csv(messy, index=False)
    words = ["rank", str(messy), "--model", str(kept)]
    read = "Texts were read as numbers (unit '°C'): temperature."
    new = "1 value of 'colour' that the table of the fit did not have, such as 'black': taken for none of the levels"
    aside = "Columns that the model does not take were set aside: yield."
    shown = " ".join(runner.invoke(app, [*words, "--html", str(page), "-q"]).output.split())
    record = json.loads(runner.invoke(app, [*words, "--json", "-q"]).stdout)
    told = " ".join(step["detail"] for step in record["preparation"])
    for text in (shown, told, page.read_text(encoding="utf-8").replace("&#39;", "'")):
        assert all(part in text for part in (read, new, aside))
    assert record["table"] == str(messy)
    assert [each["kind"] for each in record["cautions"]] == ["columns-set-aside", "numbers-read", "levels-unknown"]
    curves = runner.invoke(app, ["effects", str(messy), "--model", str(kept), "-q"])
    assert read in " ".join(curves.output.split())
    curves = runner.invoke(app, ["effects", str(messy), "--model", str(kept), "--json", "-q"])
    assert json.loads(curves.stdout)["preparation"] == record["preparation"]
    bare = json.loads(runner.invoke(app, ["rank", "--model", str(kept), "--json", "-q"]).stdout)
    assert (bare["preparation"], bare["table"]) == ([], None)


def scores(found, measure):
    return {column["feature"]: column["score"] for column in found["rankings"][measure.upper()]["columns"]}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--model", "nowhere.gpsift"], 1, "There is no file nowhere.gpsift"),
        (["--model", "measurements.csv"], 1, "gpsift: "),
        (["passed.csv", "--model", "kept.gpsift"], 1, None),
        (["--model", "kept.gpsift", "--target", "yield"], 2, "takes no --target"),
        (["--model", "kept.gpsift", "--drop", "noise", "--rows", "30"], 2, "takes no --drop, --rows"),
        ([], 2, "are needed"),
    ],
)
def test_a_model_that_cannot_be_ranked(folder, monkeypatch, words, code, message):
    monkeypatch.chdir(folder)
    frame = pd.read_csv(folder / "measurements.csv")
    gs.GP(hyper=gs.Fixed(lengthscale=1.0, signal_var=1.0, noise_var=0.1)).fit(
        frame[["temperature", "noise", "yield"]], frame["yield"]
    ).save(folder / "kept.gpsift")
    result = runner.invoke(app, ["rank", *words])
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output
    if message is not None:
        assert message in " ".join(result.output.replace("│", " ").split())
    else:
        assert "fitted on the column 'yield', which the table lacks" in result.output


def names_in(answer):
    if isinstance(answer, list):
        return set().union(*map(names_in, answer))
    if not isinstance(answer, dict):
        return set()
    return set(answer).union(*map(names_in, answer.values()))


@pytest.mark.parametrize(
    "words",
    [
        ("select", "measurements.csv", "-t", "yield", "--samples", "2"),
        ("select", "passed.csv", "-t", "passed"),
        ("explain", "measurements.csv", "-t", "yield", "--row", "3"),
    ],
)
def test_every_name_of_the_json_is_documented(folder, words):
    page = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)`", page))
    found = answer(folder, *words, is_whole=True)
    del found["versions"]
    assert names_in(found) - documented == set()


@pytest.mark.parametrize("words", [("rank",), ("select", "--measure", "var", "--conditional", "residuals")])
def test_scores_have_intervals_if_asked_for(folder, words):
    command, *rest = words
    call = (command, "measurements.csv", "-t", "yield", *rest, "--intervals")
    columns = next(iter(answer(folder, *call)["rankings"].values()))["columns"]
    first, *_, last = columns
    # The score is that of the most probable hyperparameters, which may be at the end of what is probable.
    assert 0.99 * first["lower"] < first["score"] < 1.01 * first["upper"]
    assert first["lower"] < first["upper"]
    assert 0 <= last["lower"] <= last["upper"] < first["lower"]
    assert not last["used"]
    told = run(folder, *call, "-q").stdout
    assert "90 % interval" in told
    assert any("not used" in line and " to " in line for line in told.splitlines())


@pytest.mark.parametrize("command", ["rank", "select"])
def test_scores_have_intervals_unless_they_would_take_long(command, folder, monkeypatch):
    call = [command, str(folder / "measurements.csv"), "-t", "yield", "--json", "-q", *BARE]
    columns = json.loads(runner.invoke(app, call).stdout)["rankings"]["KL"]["columns"]
    assert columns[0]["lower"] < columns[0]["score"] < columns[0]["upper"]
    monkeypatch.setitem(MOST_ROWS_OF_INTERVALS, "exact", 59)
    found = json.loads(runner.invoke(app, call).stdout)
    assert "lower" not in found["rankings"]["KL"]["columns"][0]
    (caution,) = (each for each in found["cautions"] if each["kind"] == "intervals-left-out")
    assert caution["data"] == {"n_rows": 60, "n_columns": 4}
    assert caution["detail"].endswith("may take more than half a minute. --intervals takes the time.")


def test_without_intervals_nothing_is_said_of_them(folder):
    found = answer(folder, "rank", "measurements.csv", "-t", "yield", "--no-intervals")
    assert "lower" not in found["rankings"]["KL"]["columns"][0]
    assert not any("intervals" in caution["kind"] for caution in found["cautions"])


def test_a_saved_model_has_intervals_if_asked_for(folder, tmp_path):
    kept = str(tmp_path / "model.gpsift")
    fitted = answer(folder, "rank", "measurements.csv", "-t", "yield", "--save", kept, "--intervals")
    saved = json.loads(runner.invoke(app, ["rank", "--model", kept, "--intervals", "--json", "-q"]).stdout)
    for one, other in zip(fitted["rankings"]["KL"]["columns"], saved["rankings"]["KL"]["columns"], strict=True):
        assert one["feature"] == other["feature"]
        assert one["upper"] == pytest.approx(other["upper"], rel=1e-6)


def test_sparse_models_have_intervals_if_asked_for(folder, monkeypatch):
    monkeypatch.setattr("gpsift.app.analysis.run.LARGEST_QUICK", 50)  # rows beyond which inference is sparse
    found = answer(folder, "rank", "measurements.csv", "-t", "yield", "--intervals")
    first = found["rankings"]["KL"]["columns"][0]
    assert first["lower"] < first["upper"]
