"""Collect the tables, run the command on them, and keep what it said."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.tables.runner import answer
from benchmarks.tables.sources import SOURCES, collect

# In the folder of the tables: one answer a line.
ANSWERS = "answers.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("what", choices=["collect", "run", "keep"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], help="tables whose names contain one of these")
    options = parser.parse_args()
    if options.what == "collect":
        collect(options.folder)
    elif options.what == "run":
        run_all(options.folder, options.only)
    else:
        from benchmarks.tables.page import keep

        keep(options.folder / ANSWERS)


def run_all(folder: Path, parts: list[str]) -> None:
    """The answers to all tables that have none yet, appended one by one."""
    file = folder / ANSWERS
    done = {json.loads(line)["table"] for line in file.read_text().splitlines()} if file.exists() else set()
    for source in SOURCES:
        wanted = any(part in source.name for part in parts)
        if wanted and source.name not in done and (folder / source.name).exists():
            record = answer(source, folder)
            print(record["table"], record["code"], record["seconds"], record.get("enough"), flush=True)
            with file.open("a") as stream:
                stream.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
