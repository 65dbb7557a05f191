"""The plain command on one table, and the same with `--strict`: what came out and what it cost."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.tables.sources import Source

# Of a processor; more is a failure, and so is waiting this many times as long for it.
MOST_SECONDS, PATIENCE = 180, 8
# Exit codes of an answer: the second one says that the model explains nothing.
ANSWERED = (0, 3)


@dataclass(frozen=True)
class Ran:
    """A command that has ended."""

    seconds: float
    code: int
    out: str
    error: str

    @property
    def refusal(self) -> str:
        """What was said instead of an answer."""
        return "" if self.code in ANSWERED else self.error.strip()


def run(source: Source, folder: Path, *options: str) -> Ran:
    """The command on a table, with the seconds of a processor that it took."""
    words = [sys.executable, "-m", "gpsift", "select", str(folder / source.name), "--target", source.target, *options]
    before = processor_seconds()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE * MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return Ran(processor_seconds() - before, -1, "", "took too long")
    return Ran(processor_seconds() - before, done.returncode, done.stdout, done.stderr)


def processor_seconds() -> float:
    """Of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def answer(source: Source, folder: Path) -> dict[str, Any]:
    """What the plain command said, and whether `--strict` refuses."""
    page = folder / f"{source.name}.html"
    plain = run(source, folder, "--html", str(page), "--json", "--quiet")
    strict = run(source, folder, "--strict", "--dry-run", "--quiet")
    record = {"table": source.name, "target": source.target, "seconds": round(plain.seconds, 1), "code": plain.code}
    here = f"{folder}/"  # where the tables lie is of no interest
    record |= {"refusal": plain.refusal.replace(here, ""), "strict": strict.refusal.replace(here, "")}
    return record if plain.refusal else record | said(json.loads(plain.out)) | {"page": page.stat().st_size}


def said(found: dict[str, Any]) -> dict[str, Any]:
    """What is kept of an answer."""
    columns = next(iter(found["rankings"].values()))["columns"]
    return {
        "rows": found["n_rows"],
        "columns": len(columns),
        "used": [each["feature"] for each in columns if each["used"]],
        "enough": found["selected"],
        "steps": [{"kind": step["kind"], "detail": step["detail"]} for step in found["preparation"]],
        "cautions": [caution["kind"] for caution in found["cautions"]],
    }
