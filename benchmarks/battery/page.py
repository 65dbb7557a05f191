"""What of a run is kept: the table of its means, and the tables and the picture of the page."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from benchmarks.battery.picture import draw
from benchmarks.battery.summary import KEYS, STORED, pooled, sections, table_of
from benchmarks.marked_page import with_sections

PAGE = Path(__file__).with_name("RESULTS.md")


def keep(folder: Path) -> None:
    """Store the condensed table, write the tables into the page, and draw its picture."""
    show(table_of(folder))


def add(folder: Path) -> None:
    """The same for the stored table and a run of other methods or other data sets together."""
    show(pooled(table_of(None), table_of(folder)).round(4).sort_values(KEYS))


def show(table: pd.DataFrame) -> None:
    table.to_csv(STORED, index=False)
    table = table_of(None)
    PAGE.write_text(with_tables(PAGE.read_text(), table))
    draw(table)


def with_tables(page: str, table: pd.DataFrame) -> str:
    """The page with other tables between its two marks."""
    return with_sections(page, sections(table))
