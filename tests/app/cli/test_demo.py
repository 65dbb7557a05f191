"""The command line as a user types it."""

import json

import pytest
from typer.testing import CliRunner

from gpsift.app.cli import app

runner = CliRunner()


def test_demo_prints_a_table_and_saves_a_picture(tmp_path):
    out = tmp_path / "picture.svg"
    result = runner.invoke(app, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    for word in ("bmi", "s5", "VAR", "ARD", "442 rows", "90 % interval"):
        assert word in result.output
    assert result.output.index("s5") < result.output.index("s4")
    assert out.read_text().startswith("<?xml")


def test_demo_writes_the_page_and_answers_machines(tmp_path):
    words = ["demo", "--out", str(tmp_path / "p.png"), "--html", str(tmp_path / "demo.html"), "--json", "-q"]
    result = runner.invoke(app, [*words, "--no-intervals"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {"bmi", "s5"} <= set(found["selected"])
    assert {"bmi", "bp"} <= set(found["tested"]["discoveries"])
    assert "What matters for" in (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"p.png", "demo.html"}


@pytest.mark.parametrize(
    ("out", "message"), [("picture.doc", "must end in"), ("nowhere/picture.png", "does not exist")]
)
def test_demo_rejects_a_place_it_cannot_write_to(out, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = runner.invoke(app, ["demo", "--out", out])
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())


def test_help_names_the_command():
    result = runner.invoke(app, ["--help"])
    assert result.exit_code == 0
    assert "demo" in result.output
