"""Files as people have them: each ends in a right answer, or in one clear line and a code that is not 0."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from gpsift.app.cli import app

runner = CliRunner()
N = 40
# Three times what any analysis uses, and twice what is searched all at once without a caution.
MANY_ROWS = 60_000
MANY_COLUMNS = 600


def table(n=N):
    """A slope, a category that matters, and a column that does not."""
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "slope": rng.normal(10, 3, n).round(3),
            "idle": rng.normal(0, 1, n).round(3),
            "kind": rng.choice(["oak", "fir", "elm"], n),
        }
    )
    frame["out"] = (frame["slope"] + 4 * (frame["kind"] == "fir") + 0.3 * rng.normal(size=n)).round(3)
    return frame


def text(frame=None, **options):
    return (table() if frame is None else frame).to_csv(index=False, **options)


def saved(content, encoding="utf-8"):
    """Writes a text, or a table as one, into a file."""
    words = content if isinstance(content, str) else text(content)
    return lambda path: path.write_bytes(words.encode(encoding))


def changed(**columns):
    """Return a writer of the table with other columns."""
    return saved(table().assign(**columns))


def renamed(**names):
    return saved(table().rename(columns=names))


def quoted_newlines():
    frame = table().rename(columns={"idle": "idle\nhands"})
    return saved(frame.assign(kind=frame["kind"].map({"oak": "oak,\nold", "fir": 'fir "red"', "elm": "elm"})))


def parquet(path):
    try:
        table().to_parquet(path)
    except ImportError as missing:
        pytest.skip(str(missing))


def excel(path):
    pytest.importorskip("openpyxl")
    table().to_excel(path, index=False)


def many_rows(path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(MANY_ROWS, 2)).round(3), columns=["slope", "idle"])
    saved(frame.assign(out=frame["slope"] + rng.normal(size=MANY_ROWS).round(3)))(path)


def many_columns(path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        rng.normal(size=(30, MANY_COLUMNS)).round(2), columns=[f"gene {j}" for j in range(MANY_COLUMNS)]
    )
    saved(frame.assign(out=frame["gene 0"]))(path)


@dataclass(frozen=True)
class Right:
    """A messy file: its writer, its ending, the options for reading it, and the columns that must rank first.

    Where it is not the usual table that is read in the end, its columns are tested and its curves drawn, too.
    """

    write: Callable[[Path], object]
    ending: str = ".csv"
    options: tuple[str, ...] = ()
    leading: frozenset[str] = frozenset({"slope", "kind"})
    is_usual: bool = False

    @property
    def page_options(self):
        return BARE if self.is_usual else ()


def usual(content, *, encoding="utf-8", ending=".csv"):
    """The usual table, in another form."""
    return Right(content if callable(content) else saved(content, encoding), ending, is_usual=True)


# What is made of the model is the same for every form of the usual table, and takes most of the time.
BARE = ("--no-test", "--no-effects")
CODE = "[red]<script>alert(1)</script>"
RIGHT = {
    "comma": usual(text()),
    "semicolon": usual(text(sep=";")),
    "tab": usual(text(sep="\t"), ending=".tsv"),
    "decimal comma": usual(text(sep=";", decimal=",")),
    "decimal comma in quotes": usual(text(sep=";", decimal=",", quoting=1)),
    "Windows-1252": Right(
        saved(text(table().rename(columns={"slope": "Größe"}), sep=";", decimal=","), "cp1252"),
        leading=frozenset({"Größe", "kind"}),
    ),
    "byte order mark": usual(text(), encoding="utf-8-sig"),
    "UTF-16": usual(text(sep="\t"), encoding="utf-16"),
    "UTF-16, other end first": usual("\ufeff" + text(), encoding="utf-16-be"),
    "carriage returns": usual(text().replace("\n", "\r\n")),
    "old Macintosh line ends": usual(text().replace("\n", "\r")),
    "empty lines": usual("\n\n" + text().replace("\n", "\n\n")),
    "spaces around everything": usual(text().replace(",", " , ")),
    "quoted newlines": Right(quoted_newlines()),
    "row numbers without a name": usual(table().to_csv(index=True)),
    "a delimiter at the end of each line": usual("\n".join(line + "," for line in text().splitlines())),
    "an all-missing column": usual(changed(gone=np.nan)),
    "an identifier": usual(changed(who=[f"P-{i}" for i in range(N)])),
    "holes, rows dropped": Right(
        changed(idle=table()["idle"].where(table()["idle"] > -1)), options=("--missing", "drop")
    ),
    "holes, filled in": Right(changed(kind=table()["kind"].where(table().index > 3)), options=("--missing", "mean")),
    "a constant column": usual(changed(always=3)),
    "truth values": Right(changed(kind=table()["kind"] == "fir")),
    "a text target": Right(changed(out=np.where(table()["slope"] > 10, "high", "low")), leading=frozenset({"slope"})),
    "huge and tiny numbers": Right(changed(slope=1e12 * table()["slope"], idle=1e-12 * table()["idle"])),
    "names that are code": Right(renamed(slope=CODE), leading=frozenset({CODE, "kind"})),
    "names of 200 letters": Right(renamed(slope="s" * 200), leading=frozenset({"s" * 200, "kind"})),
    "names in other scripts": Right(
        renamed(slope="температура", kind="湿度"), leading=frozenset({"температура", "湿度"})
    ),
    "no ending": usual(text(), ending=""),
    "Parquet": usual(parquet, ending=".parquet"),
    "Excel": usual(excel, ending=".xlsx"),
    "many rows": Right(many_rows, options=("--rows", "200"), leading=frozenset({"slope"})),
}


@pytest.mark.parametrize("name", RIGHT)
def test_a_messy_file_gives_the_right_answer(name, tmp_path):
    case = RIGHT[name]
    path, page = tmp_path / f"table{case.ending}", tmp_path / "page.html"
    case.write(path)
    question = [str(path), "--target", "out", "--no-intervals", *case.options]
    result = runner.invoke(app, ["rank", *question, "--json", *BARE])
    assert result.exit_code == 0, result.output
    columns = json.loads(result.stdout)["rankings"]["KL"]["columns"]
    assert {column["feature"] for column in columns[: len(case.leading)]} == case.leading
    shown = runner.invoke(app, ["select", *question, "--html", str(page), *case.page_options])
    assert shown.exit_code == 0, shown.output
    assert page.stat().st_size < 8_000_000
    assert "<script>alert" not in page.read_text(encoding="utf-8")


def test_many_columns_are_ranked_and_searched_with_a_caution(tmp_path):
    path = tmp_path / "wide.csv"
    many_columns(path)
    result = runner.invoke(app, ["select", str(path), "--target", "out", "--hyper", "map", "--json", "--no-intervals"])
    assert result.exit_code in (0, 3), result.output
    found = json.loads(result.stdout)
    assert len(found["rankings"]["KL"]["columns"]) == MANY_COLUMNS
    assert len(found["path"]["sizes"]) == 31
    (caution,) = [each for each in found["cautions"] if each["kind"] == "many-columns"]
    assert "--hyper sift" in caution["detail"]


def dates(form):
    return pd.date_range("2024-01-31", periods=N).strftime(form)


def cut(write, n_bytes):
    """Return a file cut off after this many bytes."""

    def write_part(path):
        write(path)
        path.write_bytes(path.read_bytes()[:n_bytes])

    return write_part


# What is written, to which ending, and what is said.
REFUSED = {
    "zero bytes": (saved(""), ".csv", "is empty"),
    "a folder": (Path.mkdir, ".csv", "is a folder"),
    "no such file": (lambda path: None, ".csv", "There is no file"),
    "a header alone": (saved("slope,idle,out\n"), ".csv", "has a header but no rows"),
    "one row": (saved(table(1)), ".csv", "nothing to explain"),
    "two rows that are alike": (saved(table(2).assign(out=1.0)), ".csv", "nothing to explain"),
    "cut off in quotes": (saved('"slope,out\n1,2\n3,4\n'), ".csv", "no rows"),
    "cut off in UTF-16": (cut(saved(text(), "utf-16"), 1001), ".csv", "damaged or cut off"),
    "Parquet that was cut off": (cut(parquet, 200), ".parquet", "could not be read as Parquet"),
    "Excel that was cut off": (cut(excel, 2000), ".xlsx", "could not be read as Excel"),
    "a cell of a megabyte": (saved(f"slope,out\n{'1' * 1_000_000},2\n"), ".csv", "field larger than field limit"),
    "a picture": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00"), ".csv", "is no text"),
    "old Excel": (lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0"), ".xls", "save it as .xlsx"),
    "a constant target": (changed(out=1), ".csv", "is 1 in every row"),
    "an empty target": (changed(out=np.nan), ".csv", "target 'out' holds nothing"),
    "a date as target": (changed(out=dates("%Y-%m-%d")), ".csv", "target 'out' holds dates"),
    "a name for each row as target": (changed(out=[f"P-{i}" for i in range(N)]), ".csv", "40 different values"),
    "nothing but the target": (saved(table()[["out"]]), ".csv", "No column is left"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_messy_file_is_refused_in_one_clear_line(name, tmp_path):
    write, ending, message = REFUSED[name]
    path = tmp_path / f"table{ending}"
    write(path)
    result = runner.invoke(app, ["rank", str(path), "--target", "out", "--no-intervals"])
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("gpsift: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert message in result.stderr
    assert not isinstance(result.exception, ValueError | OSError | TypeError)


# What is coped with unless one is strict: what is written, and what is said then.
STRICT = {
    "numbers and texts in the target": (changed(out=["?!", *range(N - 1)]), "such as '?!'"),
    "cut off in a line": (saved(text().rpartition(",")[0]), "has 3 fields but the header has 4"),
    "numbers and texts in a column": (
        changed(slope=["n/d", *range(N - 1)]),
        "in 1 of 40 rows texts such as 'n/d'",
    ),
    "dates": (changed(day=dates("%Y-%m-%d")), "holds dates"),
    "dates of another country": (changed(day=dates("%d.%m.%Y")), "--drop 'day'"),
    "missing values": (changed(idle=table()["idle"].where(table()["idle"] > 1)), "missing values, in idle ("),
    "two columns of one name": (renamed(idle="slope"), "several columns called 'slope'"),
    "infinite numbers": (changed(idle=[np.inf, *range(N - 1)]), "idle"),
    "too many levels": (changed(kind=[f"k{i % 35}" for i in range(N)]), "has 35 levels, more than 30"),
    "an identifier": (changed(who=[f"P-{i}" for i in range(N)]), "'who' was left out"),
    "a constant column": (changed(always=3), "'always' was left out"),
    "a title": (saved("Trees of 2024\n" + text()), "has 4 fields but the header has 1"),
    "totals": (saved(text() + "1,2,Total,3\n"), "at the end, 'Total'"),
}


@pytest.mark.parametrize("name", STRICT)
def test_what_is_coped_with_is_refused_by_strict(name, tmp_path):
    write, message = STRICT[name]
    path = tmp_path / "table.csv"
    write(path)
    question = ["rank", str(path), "--target", "out", "--dry-run"]
    coped = runner.invoke(app, [*question, "--json"])
    assert coped.exit_code == 0, coped.output
    assert json.loads(coped.stdout)["preparation"]
    refused = runner.invoke(app, [*question, "--strict"])
    assert refused.exit_code == 1, refused.output
    assert refused.stdout == ""
    assert refused.stderr.startswith("gpsift: ")
    assert refused.stderr.count("\n") == 1, refused.stderr
    assert message in refused.stderr


def test_strict_takes_a_table_that_needs_nothing(tmp_path):
    path = tmp_path / "table.csv"
    saved(text())(path)
    question = ["select", str(path), "--target", "out", "--dry-run"]
    result = runner.invoke(app, [*question, "--strict"])
    assert result.exit_code == 0, result.output
    assert "Nothing needs to be done with the table." in result.stdout
    assert runner.invoke(app, question).stdout == result.stdout


def test_strict_refuses_to_draw_rows_unless_their_number_is_said(tmp_path):
    path = tmp_path / "table.csv"
    saved(table(1200))(path)
    question = ["select", str(path), "--target", "out", "--dry-run", "--strict"]
    refused = runner.invoke(app, question)
    assert refused.exit_code == 1
    assert "has 1,200 rows, of which 1,000 would be drawn" in refused.stderr
    assert "--rows 1000" in refused.stderr
    taken = runner.invoke(app, [*question, "--rows", "1000"])
    assert "1000 of 1200 rows were used" in taken.stdout


def test_an_answer_says_what_was_done_in_all_forms(tmp_path):
    path, page = tmp_path / "table.csv", tmp_path / "page.html"
    changed(day=dates("%d.%m.%Y"), slope=table()["slope"].map("{:.3f} kg".format))(path)
    question = ["rank", str(path), "--target", "out", "--no-intervals", "--html", str(page)]
    result = runner.invoke(app, [*question, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert {column["feature"] for column in found["rankings"]["KL"]["columns"][:2]} == {"slope", "kind"}
    assert {column["feature"] for column in found["rankings"]["KL"]["columns"]} == {"slope", "idle", "kind", "day"}
    assert [step["kind"] for step in found["preparation"]] == ["numbers-read", "dates-read", "dates-taken-apart"]
    assert found["preparation"][0]["columns"] == ["slope"]
    words = page.read_text(encoding="utf-8")
    assert "What was done with the table" in words
    shown = " ".join(runner.invoke(app, question).stdout.split())
    for step in found["preparation"]:
        assert step["detail"] in shown
    assert "Read as dates, the day first: day." in words


def test_a_file_without_permission_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text(text())

    def denied(self):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)  # whoever runs this may be allowed to read everything
    result = runner.invoke(app, ["rank", str(path), "--target", "out", "--no-intervals"])
    assert result.exit_code == 1
    assert result.stderr == f"gpsift: {path} may not be read: permission denied.\n"


def test_there_are_enough_of_them():
    assert len(RIGHT) + len(REFUSED) + len(STRICT) >= 25
