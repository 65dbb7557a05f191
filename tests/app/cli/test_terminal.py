"""Output of the command: narrow terminals, files, pipes that are closed, encodings without signs, and Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpsift_command
from gpsift.app.cli import app
from gpsift.app.cli.terminal import Output

CALL = "from gpsift_command import main; main()"
# What these options leave out takes most of the time of a page or of JSON, and is printed no other way.
BARE = ("--no-intervals", "--no-test", "--no-effects")
COMMAND = [sys.executable, "-c", CALL]
# A shell lets what it starts in the background ignore interrupts, and children inherit that.
HEARS_INTERRUPTS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); " + CALL
runner = CliRunner()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 4)).round(3), columns=["Größe", "weight of the sample", "b", "湿度"])
    frame["y"] = (frame["Größe"] + np.sin(frame["b"]) + 0.1 * rng.normal(size=60)).round(3)
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    frame.to_csv(path, index=False, encoding="utf-8")
    return path


def environment(**changes):
    return {**os.environ, "PYTHONUTF8": "0", **changes}


def run(*words, **changes):
    return subprocess.run([*COMMAND, *map(str, words)], capture_output=True, env=environment(**changes))


def test_a_file_gets_no_codes_of_colours(file):
    done = run("select", file, "-t", "y", "--no-intervals", PYTHONIOENCODING="utf-8")
    assert done.returncode == 0
    assert "√VAR" in done.stdout.decode("utf-8")
    assert b"\x1b" not in done.stdout + done.stderr


def test_an_encoding_without_signs_gets_the_like_of_them(file):
    done = run("rank", file, "-t", "y", "--no-intervals", PYTHONIOENCODING="ascii", COLUMNS="120")
    assert done.returncode == 0, done.stderr
    words = done.stdout.decode("ascii")
    assert "sqrt VAR" in words
    assert "+-" in words
    assert "########" in words
    assert "Gr??e" in words


def test_json_keeps_names_in_any_encoding(file):
    done = run("rank", file, "-t", "y", *BARE, "--json", PYTHONIOENCODING="cp1252")
    names = [column["feature"] for column in json.loads(done.stdout)["rankings"]["KL"]["columns"]]
    assert {"Größe", "湿度"} <= set(names)


@pytest.mark.parametrize(
    "words",
    [
        ["rank", "--no-intervals"],
        ["select", "--no-intervals"],
        ["stability", "--samples", "2"],
        ["explain", "--row", "3"],
    ],
)
@pytest.mark.parametrize("width", [40, 60, 120])
def test_tables_fit_the_terminal_and_keep_the_names(file, words, width):
    command, *rest = words
    result = runner.invoke(app, [command, str(file), "-t", "y", *rest, "-q"], env={"COLUMNS": str(width)})
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= width
    told = ("Größe", "b") if command == "stability" else ("Größe", "weight of the sample", "b")  # one is never used
    for name in told:
        assert any(f" {name} " in f" {line} " for line in lines), name


def test_a_wide_terminal_has_more_in_the_table(file):
    narrow, wide = (
        runner.invoke(app, ["rank", str(file), "-t", "y", "-q", "--no-intervals"], env={"COLUMNS": width}).stdout
        for width in ("58", "100")
    )
    for part in (" variance ", "█"):
        assert part in wide
        assert part not in narrow
    assert "ARD, rank" in narrow


@pytest.mark.parametrize("width", range(24, 50))
def test_no_line_ends_between_a_number_and_its_sign(width):
    written = io.StringIO()
    told = "Of the rows 10 % were left out, and all others differ by 3.1 ± 0.4 of what [bold]2.5 %[/bold] would be"
    Output(file=written, width=width).print(told)
    lines = written.getvalue().splitlines()
    assert " ".join(line.strip() for line in lines) == told.replace("[bold]", "").replace("[/bold]", "")
    for kept in ("10 %", "3.1 ± 0.4", "2.5 %"):
        assert any(kept in line for line in lines), lines


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["table", "json"])
def test_nobody_reads_the_output(file, options):
    process = subprocess.Popen(
        [*COMMAND, "rank", file, "-t", "y", *BARE, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    process.stdout.close()
    complaint = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141
    assert complaint == b""


def interrupted(words, folder, when):
    process = subprocess.Popen(
        [sys.executable, "-c", HEARS_INTERRUPTS, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment(),
    )
    deadline = time.monotonic() + 60
    while not when() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, complaint = process.communicate(timeout=60)
    return process.returncode, out, complaint


def test_an_interrupt_leaves_no_half_of_a_file_and_the_work_goes_on(file, tmp_path):
    kept = tmp_path / "kept"
    question = ["select", file, "-t", "y", "--folds", "4", "--json", "-q", *BARE]
    work = [*question, "--html", "page.html", "--save", "model.gpsift", "--checkpoint", kept]
    code, out, complaint = interrupted(work, tmp_path, lambda: (kept / "submodels.sqlite").exists())
    assert code == 130, complaint
    assert out == ""
    assert complaint == "gpsift: interrupted. Finished fits are kept; the same command goes on from there.\n"
    assert {path.name for path in tmp_path.iterdir()} == {"kept"}
    done = subprocess.run([*COMMAND, *map(str, work)], capture_output=True, cwd=tmp_path, env=environment())
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"kept", "page.html", "model.gpsift"}
    whole = runner.invoke(app, [*map(str, question)])
    assert json.loads(done.stdout)["path"] == json.loads(whole.stdout)["path"]


@pytest.mark.parametrize("part", ["gpsift.app.cli", "gpsift.app.cli.rank"])
def test_an_interrupt_while_the_package_is_loaded(monkeypatch, capsys, part):
    class Interrupting:
        def find_spec(self, name, *_args):
            if name == part:
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, part, raising=False)
    monkeypatch.setattr(sys, "argv", ["gpsift", "rank", "--help"])
    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    with pytest.raises(SystemExit, match="130"):
        gpsift_command.main()
    assert capsys.readouterr().err == "gpsift: interrupted.\n"


def test_the_version_waits_for_no_command():
    script = (
        "import sys; from gpsift.app.cli import app; sys.argv[1:] = ['--version']\n"
        "try: app()\nexcept SystemExit: print(*sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    loaded = said.split()
    assert "gpsift.app.cli.app" in loaded
    assert not {"pandas", "gpsift.app.analysis", "gpsift.app.cli.rank"} & set(loaded)


def test_the_version_is_said():
    for command in (COMMAND, [sys.executable, "-m", "gpsift"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True)
        assert done.stdout.startswith("gpsift 0.")


@pytest.mark.parametrize(("option", "place"), [("--html", "folder"), ("--save", "folder"), ("--save", "no/such/file")])
def test_what_cannot_be_written_is_refused_before_the_work(file, tmp_path, monkeypatch, option, place):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("gpsift.app.cli.outputs.analyse", lambda *_args, **_options: pytest.fail("the work began"))
    result = runner.invoke(app, ["rank", str(file), "-t", "y", option, place])
    assert result.exit_code == 2
    assert str(Path(place).name if place == "folder" else Path(place).parent) in result.output
