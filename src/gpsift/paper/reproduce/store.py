"""Tables on the disk, so that a summary can be made of whatever has been run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from gpsift._utils.atomic import written_whole
from gpsift.paper.reproduce.datasplits import Tables


def write_table(table: pd.DataFrame, path: Path) -> None:
    """A table as CSV with all digits; the file appears whole or not at all."""
    write_text(table.to_csv(index=False), path)


def write_text(text: str, path: Path) -> None:
    """A text file that appears whole or not at all."""
    with written_whole(path) as part:
        part.write_text(text, encoding="utf-8")


def read_table(path: Path) -> pd.DataFrame | None:
    """A table, if it is there."""
    return pd.read_csv(path) if path.exists() else None


def write_splits(tables: Tables, folder: Path, facts: Mapping[str, Any]) -> None:
    """All tables of a data set, and the facts about its run."""
    write_table(tables.scores, folder / "scores.csv")
    write_table(tables.curves, folder / "curves.csv")
    write_table(tables.reference, folder / "reference.csv")
    sizes = {"n_train": tables.n_train, "n_test": tables.n_test}
    write_text(json.dumps({**sizes, **facts}, indent=2), folder / "facts.json")


def read_splits(folder: Path) -> Tables | None:
    """The tables of a data set, if it was run."""
    if not (folder / "facts.json").exists():
        return None
    facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return Tables(
        scores=pd.read_csv(folder / "scores.csv"),
        curves=pd.read_csv(folder / "curves.csv"),
        reference=pd.read_csv(folder / "reference.csv"),
        n_train=facts["n_train"],
        n_test=facts["n_test"],
    )
