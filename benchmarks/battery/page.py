"""What of a run is kept: the table of its means, and the tables and the picture of the page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.battery.picture import draw
from benchmarks.battery.summary import ROOT, STORED, sections, table_of
from benchmarks.marked_page import with_sections

PAGE = ROOT / "docs" / "battery.md"


def keep(folder: Path) -> None:
    """Store the condensed table, write the tables into the page, and draw its picture."""
    table_of(folder).to_csv(STORED, index=False)
    table = table_of(None)
    PAGE.write_text(with_tables(PAGE.read_text(), table))
    draw(table)


def with_tables(page: str, table: pd.DataFrame) -> str:
    """The page with other tables between its two marks."""
    return with_sections(page, sections(table))
