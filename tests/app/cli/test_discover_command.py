"""``gpsift discover`` and ``gpsift select --rate``: which columns matter, at a rate of false discoveries."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpsift as gs
from gpsift.app.cli import app

runner = CliRunner()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(1)
    n = 80
    frame = pd.DataFrame(
        {
            "temperature": rng.normal(20, 5, n).round(2),
            "colour": rng.choice(["red", "green", "blue"], n),
            "noise": rng.normal(size=n).round(3),
        }
    )
    frame["yield"] = 0.5 * frame["temperature"] + 3.0 * (frame["colour"] == "green") + 0.5 * rng.normal(size=n)
    path = tmp_path_factory.mktemp("tables") / "measurements.csv"
    frame.to_csv(path, index=False)
    return path


def run(*words, code=0):
    result = runner.invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result


def answer(*words):
    return json.loads(run(*words, "--json", "-q").stdout)


@pytest.fixture(scope="module")
def found(file):
    return answer("discover", file, "-t", "yield")


def test_what_matters_is_named_and_what_does_not_is_not(found):
    assert sorted(found["discoveries"]) == ["colour", "temperature"]
    assert found["rate"] == 0.1
    by_name = {column["feature"]: column for column in found["columns"]}
    assert [by_name[name]["found"] for name in ("temperature", "colour", "noise")] == [True, True, False]
    assert by_name["colour"]["conditional"] == "Gaussian process"  # a category, tested as one
    assert found["n_rows"] == 80


def test_it_is_the_answer_of_the_verb(file, found):
    frame = pd.read_csv(file)
    X = pd.get_dummies(frame.drop(columns="yield"), prefix_sep="=", dtype=float)
    X = X[["temperature", "colour=blue", "colour=green", "colour=red", "noise"]]
    levels = [name for name in X if name.startswith("colour")]
    features = gs.Features(groups={"colour": levels}, categorical=["colour"])
    expected = gs.discover(X, frame["yield"], features=features, work=gs.Work(progress=False))
    by_name = dict(zip(expected.names, expected.p, strict=True))
    for column in found["columns"]:
        assert column["p"] == pytest.approx(by_name[column["feature"]], rel=1e-6)


def test_the_terminal_says_it_in_a_sentence(file):
    out = " ".join(run("discover", file, "-t", "yield", "-q").stdout.split())
    assert "80 rows, 3 columns to explain yield (regression)." in out
    assert "2 of 3 columns matter, with at most 10 % of them expected to be false: colour, temperature." in out
    assert "The others are not shown to matter." in out
    assert "How many rows would show more: gpsift power" in out
    assert "do not matter" not in out


@pytest.mark.parametrize("width", [40, 60, 120])
def test_it_fits_the_terminal(file, width):
    result = runner.invoke(app, ["discover", str(file), "-t", "yield", "-q"], env={"COLUMNS": str(width)})
    assert max(map(len, result.stdout.splitlines())) <= width
    assert " temperature " in result.stdout


def test_select_with_a_rate_is_the_same_with_a_page(file, found, tmp_path):
    assert answer("select", file, "-t", "yield", "--rate", "0.1", "--html", tmp_path / "page.html") == found
    assert "2 of 3 columns matter for " in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_select_with_a_rate_refuses_what_goes_with_submodels(file):
    result = run("select", file, "-t", "yield", "--rate", "0.1", "--rule", "negligible", "--samples", "3", code=2)
    assert "it takes no --rule, --samples" in result.output


def test_a_picture_is_drawn_and_a_page_written(file, tmp_path):
    shown = run("discover", file, "-t", "yield", "--plot", tmp_path / "p.png", "--html", tmp_path / "page.html")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert "The page is in" in shown.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 of 3 columns matter for " in page
    assert "with at most 10\u00a0% of them expected to be false" in page
    result = run("discover", file, "-t", "yield", "--plot", tmp_path / "no" / "p.png", code=2)
    assert "does not exist" in " ".join(result.output.replace("│", " ").split())


def test_a_rate_under_any_dependence_by_choice(file, found):
    dearer = answer("discover", file, "-t", "yield", "--any-dependence")
    for one, other in zip(dearer["columns"], found["columns"], strict=True):
        assert one["q"] == pytest.approx(min(1.0, other["q"] * (1 + 1 / 2 + 1 / 3)))
        assert one["p"] == other["p"]


def test_rows_are_drawn_with_the_seed(file):
    found = answer("discover", file, "-t", "yield", "--rows", "60", "--seed", "2")
    assert found["n_rows"] == 60
    assert "60 of 80 rows were used, drawn with seed 2" in found["cautions"][0]["detail"]


def test_classes_are_tested_too(file, tmp_path):
    frame = pd.read_csv(file)
    frame["passed"] = np.where(frame.pop("yield") > 11, "yes", "no")
    frame.to_csv(tmp_path / "passed.csv", index=False)
    found = answer("discover", tmp_path / "passed.csv", "-t", "passed")
    assert found["task"] == "classification"
    assert "temperature" in found["discoveries"]


def test_an_interrupted_test_goes_on(file, found, tmp_path, monkeypatch):
    kept = ("--checkpoint", tmp_path / "kept")
    fit, fits = gs.GP.fit, []

    def third_time_interrupted(self, *data, **options):
        fits.append(self)
        if len(fits) == 4:  # one is for the conditional of the category
            raise KeyboardInterrupt
        return fit(self, *data, **options)

    monkeypatch.setattr(gs.GP, "fit", third_time_interrupted)
    result = run("discover", file, "-t", "yield", *kept, code=130)
    assert "the same command goes on" in " ".join(result.stderr.split())
    again = answer("discover", file, "-t", "yield", *kept)
    assert again == found
