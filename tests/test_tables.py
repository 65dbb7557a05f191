"""Real tables: what is kept of an answer, and what the stored answers have to say."""

import json

import pytest

from benchmarks.tables import page, runner
from benchmarks.tables.sources import SOURCES, Source


@pytest.fixture(scope="module")
def stored():
    return page.read(page.STORED)


def record(**changes):
    usual = {"table": "a.csv", "target": "y", "seconds": 4.0, "code": 0, "refusal": "", "strict": "", "rows": 9}
    usual |= {"columns": 2, "used": ["b"], "enough": ["b"], "steps": [], "cautions": [], "page": 1_300_000}
    return usual | changes


def test_tables_have_names_of_their_own():
    assert len({source.name for source in SOURCES}) == len(SOURCES)


def test_nearly_all_tables_are_answered_within_three_minutes(stored):
    answered = [each for each in stored if not each["refusal"] and each["seconds"] <= runner.MOST_SECONDS]
    assert len(stored) >= 40
    assert len(answered) >= 0.95 * len(stored)


def test_strict_refuses_exactly_where_something_was_done(stored):
    differ = [each["table"] for each in stored if not each["refusal"] and bool(each["strict"]) != bool(each["steps"])]
    assert differ == []


def test_columns_of_the_textbook_are_found(stored):
    carseats = next(each for each in stored if each["table"] == "ISLP-Carseats.csv")
    assert set(carseats["enough"]) == {"Price", "ShelveLoc", "CompPrice", "Advertising", "Age", "Income"}


def test_summary_counts_refusals_and_disagreements():
    said = page.summary(
        [
            record(),
            record(strict="gpsift: 1 of 9 rows", steps=[{"kind": "rows-left-out", "detail": ""}], seconds=200.0),
            record(strict="gpsift: refused", code=3),
            {"table": "b.csv", "target": "y", "seconds": 1.0, "code": 1, "refusal": "gpsift: no", "strict": ""},
        ]
    )
    assert "answered 3 of 4 tables, 2 of these within 180 seconds of a processor, 200 at most" in said
    assert "In 1 the model explains nothing" in said
    assert "agrees in 2 of 3" in said


def test_a_line_has_every_kind_of_step_once():
    steps = [{"kind": kind, "detail": ""} for kind in ("dates-read", "filled-with-level", "filled-with-level")]
    line = page.line(record(steps=steps, enough=list("abcdefgh"), target="p|q"))
    assert line.endswith("| `a`, `b`, `c`, `d`, `e`, `f` and 2 more | dates read, filled with level | 4 |")
    assert "p\\|q" in line
    assert "nothing is shown to help" in page.line(record(enough=[]))


def test_the_command_answers_a_table_and_refuses_another(tmp_path):
    rows = "".join(f"{i},{i % 7},{2 * (i % 7) + 0.01 * i}\n" for i in range(30))
    source = Source("made", "up.csv", "y")
    (tmp_path / source.name).write_text("row,x,y\n" + rows)
    found = runner.answer(source, tmp_path)
    assert found["enough"] == ["x"]
    assert [step["kind"] for step in found["steps"]] == ["column-numbers-rows"]
    assert "strict" in found["strict"]
    assert found["page"] > 10_000
    json.dumps(found)
    missing = runner.answer(Source("made", "up.csv", "z"), tmp_path)
    assert missing["code"] == 1
    assert "z" in missing["refusal"]
