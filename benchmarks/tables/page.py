"""What is kept of a run: the answers, and the table of RESULTS.md."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.marked_page import with_sections
from benchmarks.tables.runner import MOST_SECONDS
from benchmarks.tables.sources import SOURCES

PAGE = Path(__file__).with_name("RESULTS.md")
STORED = Path(__file__).parent / "answers.jsonl"
# Names that are shown of a list, so that lines stay short.
MOST_NAMES = 6


def keep(file: Path) -> None:
    """Store the answers of a run in the order of the tables, and write them into the page."""
    found = {record["table"]: record for record in read(file)}
    known = [found[source.name] for source in SOURCES if source.name in found]
    STORED.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in known))
    PAGE.write_text(with_table(PAGE.read_text()))


def read(file: Path) -> list[dict[str, Any]]:
    """The answers of a file, one a line."""
    return [json.loads(line) for line in file.read_text().splitlines()]


def with_table(page: str) -> str:
    """The page with what is stored between its marks."""
    return with_sections(page, sections(read(STORED)))


def sections(records: list[dict[str, Any]]) -> Iterator[str]:
    yield summary(records)
    yield "\n".join(
        ["| table | target | rows, columns | enough | what was done | seconds |", "|" + "---|" * 6, *map(line, records)]
    )


def summary(records: list[dict[str, Any]]) -> str:
    """How many tables were answered, how soon, and whether strict agrees."""
    answered = [record for record in records if not record["refusal"]]
    touched = [record for record in answered if record["steps"]]
    agrees = sum(bool(record["strict"]) == bool(record["steps"]) for record in answered)
    largest = max(record["page"] for record in answered) / 1e6
    within = sum(record["seconds"] <= MOST_SECONDS for record in answered)
    explained = sum(record["code"] == 0 for record in answered)
    return (
        f"Of the {len(SOURCES)} tables of the list {len(records)} were run. "
        f"The plain command answered {len(answered)} of {len(records)} tables, {within} of these within {MOST_SECONDS} "
        f"seconds of a processor, {max(record['seconds'] for record in records):.0f} at most. In "
        f"{len(answered) - explained} the model explains nothing, which is said first. Something was done with "
        f"{len(touched)}. `--strict` agrees in {agrees} of {len(answered)}: it refuses where something was done, and "
        f"nowhere else. The largest page has {largest:.1f} MB."
    )


def line(record: dict[str, Any]) -> str:
    """One table."""
    if record["refusal"]:
        return cells(record["table"], record["target"], "", "", record["refusal"], record["seconds"])
    size = f"{record['rows']}, {record['columns']}"
    return cells(record["table"], record["target"], size, enough(record), done(record), record["seconds"])


def enough(record: dict[str, Any]) -> str:
    """The columns that are enough, or why there are none."""
    names = record["enough"]
    if names is None:
        return "*no size qualifies*"
    return listed(names) if names else "*nothing is shown to help*"


def listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(f"`{name}`" for name in names[:MOST_NAMES]) + more


def done(record: dict[str, Any]) -> str:
    """The kinds of steps, each once."""
    kinds = dict.fromkeys(step["kind"].replace("-", " ") for step in record["steps"])
    return ", ".join(kinds) or "nothing"


def cells(table: str, target: str, size: str, names: str, what: str, seconds: float) -> str:
    words = [table, target, size, names, what, f"{seconds:.0f}"]
    return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"
