"""``gpsift compare``: what changed between two saved answers."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpsift as gs
from gpsift.app.cli import app

runner = CliRunner()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["heat", "time", "<b>"])
    y = X["heat"] + 0.3 * X["time"] + 0.1 * rng.normal(size=40)
    fixed = gs.GP(hyper=gs.Fixed(lengthscale=3.0, signal_var=2.0, noise_var=0.1))
    fixed.fit(X, y).save(folder / "before.gpsift")
    fixed.fit(X[["time", "<b>"]], X["<b>"] + 0.1 * X["time"]).save(folder / "after.gpsift")
    fixed.fit(X[["heat"]].set_axis(["other"], axis=1), y).save(folder / "other.gpsift")
    return folder


def run(*words, code=0, width=100):
    result = runner.invoke(app, ["compare", *map(str, words)], env={"COLUMNS": str(width)})
    assert result.exit_code == code, result.output
    return result


def test_json_is_the_answer_of_the_verb(files):
    both = files / "before.gpsift", files / "after.gpsift"
    found = json.loads(run(*both, "--no-intervals", "--json", "-q").stdout)
    expected = gs.compare(*both, intervals=False)
    assert [column["feature"] for column in found["columns"]] == [expected.names[j] for j in expected.order]
    assert [column["change"] for column in found["columns"]] == pytest.approx(expected.change[expected.order].tolist())
    assert found["columns"][0]["first_lower"] is None
    assert found["only_in_first"] == ["heat"]
    assert (found["first"], found["second"]) == ("before.gpsift", "after.gpsift")


@pytest.mark.parametrize("width", [45, 100])
def test_the_terminal_has_a_line_for_each_column(files, width):
    out = run(files / "before.gpsift", files / "after.gpsift", "-q", width=width).stdout
    assert max(map(len, out.splitlines())) <= width
    words = " ".join(out.split())
    assert "2 of 2 columns that both have changed place: <b> from 2 to 1, time from 1 to 2." in words
    assert "Only in before.gpsift: heat." in words
    assert "2 → 1" in out


def test_a_page_and_a_picture_are_written(files, tmp_path):
    page, picture = tmp_path / "two.html", tmp_path / "two.png"
    run(files / "before.gpsift", files / "after.gpsift", "-q", "--html", page, "--plot", picture)
    assert "What changed between" in page.read_text()
    assert "<b>" not in page.read_text().partition("<main")[2].partition("<script")[0]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_nothing_in_common_is_one_clear_line(files):
    result = run(files / "before.gpsift", files / "other.gpsift", code=1)
    assert "before.gpsift and other.gpsift have no column in common" in result.stderr
    assert "There is no file" in run(files / "before.gpsift", files / "nowhere.gpsift", code=1).stderr


def test_a_table_in_place_of_a_saved_model_is_told_how_to_make_one(files):
    table = files / "table.csv"
    table.write_text("a,b\n1,2\n")
    refused = run(files / "before.gpsift", table, code=1).stderr
    assert "table.csv is no saved model. `gpsift rank FILE --target COLUMN --save model.gpsift` fits one" in refused


def test_a_home_that_cannot_be_written_is_not_mentioned(files, tmp_path):
    """The plotting library would say in two lines that it has made a folder elsewhere."""
    away = {**os.environ, "HOME": "/proc", "XDG_CONFIG_HOME": "/proc/config", "XDG_CACHE_HOME": "/proc/cache"}
    away.pop("MPLCONFIGDIR", None)
    words = [
        "compare",
        "before.gpsift",
        "after.gpsift",
        "--no-intervals",
        "--json",
        "--plot",
        str(tmp_path / "two.png"),
    ]
    done = subprocess.run([sys.executable, "-m", "gpsift", *words], cwd=files, env=away, capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
    assert (tmp_path / "two.png").exists()
