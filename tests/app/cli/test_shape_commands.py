"""``gpsift effects`` and ``gpsift interactions``, and what ``gpsift explain`` and ``rank --json`` say of the same."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpsift as gs
from gpsift.app.analysis.costs import MOST_WORK
from gpsift.app.cli import app

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with a bend, a pair that acts together, a category and noise; one without any pair; and a saved model."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1, 1, size=(70, 3)), columns=["heat", "dose", "idle"]).round(3)
    frame["colour"] = rng.choice(["red", "green", "blue"], 70)
    frame["yield"] = (
        3 * frame["heat"] ** 2 * frame["dose"] + frame["dose"] + (frame["colour"] == "red") + 0.1 * rng.normal(size=70)
    ).round(3)
    frame.to_csv(folder / "table.csv", index=False)
    plain = frame[["heat", "dose"]].assign(y=(2 * frame["heat"] + np.sin(2 * frame["dose"])).round(2))
    plain.assign(y=plain["y"] + 0.2 * rng.normal(size=70)).to_csv(folder / "plain.csv", index=False)
    red, blue = (np.asarray(frame["colour"] == each, dtype=float) for each in ("red", "blue"))
    X = frame[["heat", "dose"]].assign(**{"colour=red": red, "colour=blue": blue, "colour=green": 1.0 - red - blue})
    hyper = gs.Fixed(lengthscale=1.2, signal_var=1.0, noise_var=0.02)
    gs.GP(hyper=hyper).fit(X, frame["yield"]).save(folder / "model.gpsift")
    return folder


def run(*words, code=0, width=100):
    result = runner.invoke(app, [*map(str, words)], env={"COLUMNS": str(width)})
    assert result.exit_code == code, result.output
    return result


def told(*words, **options):
    return " ".join(run(*words, "-q", **options).stdout.split())


GROUPS = {"colour": ["colour=red", "colour=blue", "colour=green"]}


def test_curves_as_json_are_those_of_the_verb(folder):
    found = json.loads(run("effects", "--model", folder / "model.gpsift", "--json", "-q").stdout)["effects"]
    expected = gs.effects(gs.load(folder / "model.gpsift"), groups=GROUPS, categorical=["colour"])
    assert found["average"] == pytest.approx(expected.average)
    assert [each["feature"] for each in found["columns"]] == list(expected.names)
    for each, curve in zip(found["columns"], expected, strict=True):
        assert each["values"] == (list(curve.labels) or pytest.approx(curve.x))
        assert each["mean"] == pytest.approx(curve.mean)
        assert each["sd"] == pytest.approx(curve.sd)
        assert np.array(each["rows"]) == pytest.approx(curve.individual)
        assert each["acts"] == curve.course.told
        assert each["range"] == pytest.approx(curve.span)


def test_pairs_as_json_are_those_of_the_verbs(folder):
    found = json.loads(run("interactions", "--model", folder / "model.gpsift", "--json", "-q").stdout)
    gp, units = gs.load(folder / "model.gpsift"), {"groups": GROUPS, "categorical": ["colour"]}
    pairs, shares = gs.interactions(gp, **units), gs.variance_shares(gp, **units)
    assert found["interactions"]["found"] == [list(pair) for pair in pairs.found] == [["heat", "dose"]]
    assert [each["share"] for each in found["interactions"]["pairs"]] == pytest.approx(
        pairs.to_frame()["share"].tolist()
    )
    assert np.array(found["interactions"]["surfaces"][0]["mean"]) == pytest.approx(pairs.surfaces[0].mean)
    assert [each["shapley"] for each in found["variance_shares"]["columns"]] == pytest.approx(
        shares.to_frame()["shapley"].tolist()
    )
    assert found["variance_shares"]["noise_share"] == pytest.approx(shares.noise_share)


def test_a_fit_from_a_table_is_told_in_words(folder, tmp_path):
    out = told("effects", folder / "table.csv", "-t", "yield", "--plot", tmp_path / "curves.png", width=120)
    assert "70 rows, 4 columns to explain yield" in out
    assert "dose up" in out
    assert "green lowest, red highest" in out or "blue lowest, red highest" in out
    assert "idle" not in out.partition("Averaged over the rows")[2]
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("width", [40, 60, 120])
@pytest.mark.parametrize("command", ["effects", "interactions"])
def test_tables_fit_the_terminal(folder, command, width):
    lines = run(command, "--model", folder / "model.gpsift", "-q", width=width).stdout.splitlines()
    assert max(map(len, lines)) <= width
    for name in ("heat", "dose", "colour"):
        assert any(name in line for line in lines)


def test_pairs_are_named_with_their_share(folder, tmp_path):
    out = told("interactions", folder / "table.csv", "-t", "yield", "--plot", tmp_path / "pairs.png")
    assert "1 pair acts together: heat with dose." in out
    assert "Noise is" in out
    assert (tmp_path / "pairs.png").read_bytes().startswith(b"\x89PNG")


def test_no_pair_found_is_said(folder, tmp_path):
    out = told("interactions", folder / "plain.csv", "-t", "y", "--plot", tmp_path / "pairs.png")
    assert "No pair found" in out
    assert "evidence" not in out.partition("No pair found")[2]
    assert (tmp_path / "pairs.png").stat().st_size > 0


def test_a_saved_model_is_asked_at_the_rows_of_another_table(folder, tmp_path):
    few = tmp_path / "few.csv"
    pd.read_csv(folder / "table.csv")[:30].to_csv(few, index=False)
    words = ("effects", few, "--model", folder / "model.gpsift", "--json", "-q")
    found = json.loads(run(*words).stdout)["effects"]
    X = pd.read_csv(few)
    X = X[["heat", "dose"]].assign(
        **{f"colour={each}": (X["colour"] == each) * 1.0 for each in ("red", "blue", "green")}
    )
    expected = gs.effects(gs.load(folder / "model.gpsift"), X, groups=GROUPS, categorical=["colour"])
    assert found["average"] == pytest.approx(expected.average)


def test_the_page_has_all_whichever_was_asked(folder, tmp_path):
    page = tmp_path / "page.html"
    run("interactions", folder / "plain.csv", "-t", "y", "-q", "--html", page)
    text = page.read_text(encoding="utf-8")
    assert 'id="acts"' in text
    assert 'id="together"' in text


def test_rank_as_json_has_how_columns_act_unless_told_not_to(folder):
    words = ("rank", folder / "plain.csv", "-t", "y", "--no-intervals", "--json", "-q")
    found = json.loads(run(*words).stdout)
    assert {each["feature"] for each in found["effects"]["columns"]} == {"heat", "dose"}
    assert found["interactions"]["found"] == []
    assert sum(each["shapley"] for each in found["variance_shares"]["columns"]) == pytest.approx(1.0)
    assert not {"effects", "interactions", "variance_shares"} & set(json.loads(run(*words, "--no-effects").stdout))


def test_what_would_take_long_is_left_out_and_said(folder, monkeypatch):
    monkeypatch.setitem(MOST_WORK, "exact", 70.0**2)
    words = ("rank", folder / "plain.csv", "-t", "y", "--no-intervals", "--json", "-q")
    found = json.loads(run(*words).stdout)
    assert "effects" not in found
    (caution,) = [each for each in found["cautions"] if each["kind"] == "shape-left-out"]
    assert caution["data"] == {"n_rows": 70, "n_columns": 2}
    assert caution["detail"].endswith("--effects takes the time.")
    assert "effects" in json.loads(run(*words, "--effects").stdout)


def test_a_row_is_taken_apart_into_what_columns_add(folder):
    words = ("explain", folder / "table.csv", "-t", "yield", "--row", "5")
    found = json.loads(run(*words, "--json", "-q").stdout)
    apart = found["taken_apart"]
    assert apart["average"] + sum(apart["values"][0]) == pytest.approx(found["prediction"][0])
    assert np.array(apart["sd"]).shape == (1, 4)
    added = dict(zip(apart["columns"], apart["values"][0], strict=True))
    assert {each["column"]: each["adds"] for each in found["relevance"]} == pytest.approx(added)
    assert added["idle"] == 0.0
    out = told(*words, width=120)
    assert f"the columns add {found['prediction'][0] - apart['average']:+.4g}" in out
    first = max(added, key=lambda name: abs(added[name]))
    assert f"{added[first]:+.3g} ± " in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("effects",), "a table and its --target are needed"),
        (("interactions", "--model", "m.gpsift", "--hyper", "map"), "a saved model takes no --hyper"),
        (("effects", "t.csv", "-t", "y", "--plot", "no/such/folder/p.png"), "does not exist"),
    ],
)
def test_wrong_calls_are_refused(words, message):
    assert message in " ".join(run(*words, code=2).stderr.split())


@pytest.mark.parametrize("command", ["effects", "interactions"])
def test_every_help_has_an_example(command):
    assert f"Example: gpsift {command}" in run(command, "--help").output


def test_both_of_two_levels_are_called_by_their_names(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"heat": rng.uniform(size=50).round(3), "metal": rng.choice(["Ni", "Pd"], 50)})
    frame["yield"] = (frame["heat"] + 2 * (frame["metal"] == "Pd") + 0.1 * rng.normal(size=50)).round(3)
    frame.to_csv(tmp_path / "two.csv", index=False)
    table = ("effects", tmp_path / "two.csv", "--target", "yield", "--save", tmp_path / "two.gpsift")
    assert "Ni lowest, Pd highest" in told(*table)
    assert "Ni lowest, Pd highest" in told("effects", "--model", tmp_path / "two.gpsift")
