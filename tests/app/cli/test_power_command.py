"""``gpsift power``: how many rows until a column is found, by a saved model."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpsift as gs
from gpsift.app.cli import app

runner = CliRunner()
FEW = ("--n", "20", "--n", "40", "--studies", "3", "--no-search")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(1)
    red = rng.integers(2, size=40).astype(float)
    X = pd.DataFrame({"heat": rng.normal(20, 5, 40), "colour=red": red, "colour=blue": 1.0 - red})
    fixed = gs.Fixed(lengthscale=3.0, signal_var=2.0, noise_var=0.1)
    path = tmp_path_factory.mktemp("models") / "model.gpsift"
    gs.GP(hyper=fixed).fit(X, 0.5 * X["heat"] + red + 0.5 * rng.normal(size=40)).save(path)
    return path


def run(*words, code=0, width=100):
    result = runner.invoke(app, ["power", *map(str, words)], env={"COLUMNS": str(width)})
    assert result.exit_code == code, result.output
    return result


def test_json_is_the_answer_of_the_verb(file):
    found = json.loads(run(file, *FEW, "--json", "-q").stdout)
    features = gs.Features.with_indicators({"colour": ["colour=red", "colour=blue"]})
    expected = gs.power(file, features, n=[20, 40], studies=3, search=False, work=gs.Work(progress=False))
    assert [column["feature"] for column in found["power"]] == [expected.names[j] for j in expected.order]
    for column in found["power"]:
        j = expected.names.index(column["feature"])
        assert [each["share"] for each in column["studies"]] == expected.shares[:, j].tolist()
        assert column["told"] == expected.sentence(j)
        assert column["needed"] == (None if np.isinf(expected.needed[j]) else expected.needed[j])
    assert (found["n_rows"], found["rate"], found["chance"], found["n_studies"]) == (40, 0.1, 0.8, 3)


@pytest.mark.parametrize("width", [40, 100])
def test_the_terminal_has_a_line_for_each_column(file, width):
    out = run(file, *FEW, "-q", width=width).stdout
    assert max(map(len, out.splitlines())) <= width
    assert " heat " in out
    assert "found in 80 % of studies" in " ".join(out.split())


def test_a_picture_is_drawn(file, tmp_path):
    run(file, *FEW, "-q", "--plot", tmp_path / "power.png")
    assert (tmp_path / "power.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_calls_are_one_clear_line(file, tmp_path):
    assert "There is no file" in run(tmp_path / "nothing.gpsift", code=1).stderr
    gs.save(gs.GP(), tmp_path / "choice.gpsift")
    assert "holds a GP, which is no fitted model" in " ".join(run(tmp_path / "choice.gpsift", code=1).stderr.split())
    assert "`n` must be whole numbers of rows" in run(file, "--n", "4", code=1).stderr
    assert "`chance` must lie between 0 and 1" in run(file, *FEW, "--chance", "2", code=1).stderr
