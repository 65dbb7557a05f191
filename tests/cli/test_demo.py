"""The command line as a user types it."""

import pytest
from typer.testing import CliRunner

from gpsift.cli import app

runner = CliRunner()


def test_demo_prints_a_table_and_saves_a_picture(tmp_path):
    out = tmp_path / "picture.svg"
    result = runner.invoke(app, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    for word in ("bmi", "s5", "VAR", "ARD", "442 patients"):
        assert word in result.output
    assert result.output.index("s5") < result.output.index("s4")
    assert out.read_text().startswith("<?xml")


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
