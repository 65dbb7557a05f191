"""Print to a console: replace signs that it lacks, notice closed pipes, and fit tables to its width."""

from __future__ import annotations

import codecs
import logging
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

PLAIN_SIGNS = {"█": "#", "√": "sqrt ", "±": "+-", "…": "...", "−": "-", "–": "-", "’": "'"}

# Lines may not end at the spaces of "10 %" and of "3.1 ± 0.4".
BREAKABLE_SPACES = re.compile(r"(?<=\d) (?=[%±])|(?<=±) (?=\d)")
# This private character replaces these spaces while rich breaks lines: rich breaks them at no-break spaces too.
NO_BREAK = "\ue000"

# Longer tables are cut off.
MOST_ROWS_SHOWN = 40


class Output(Console):
    """A console that raises when its pipe is closed, and that breaks no line between a number and its sign."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(BREAKABLE_SPACES.sub(NO_BREAK, text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment._replace(text=segment.text.replace(NO_BREAK, " "))


def replace_missing_signs() -> None:
    """Let standard output and error replace signs that their encoding lacks, where they would fail otherwise."""
    codecs.register_error("gpsift.plain", plain_sign)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="gpsift.plain")


def silence_matplotlib() -> None:
    """Silence matplotlib's messages about its own folders, such as that it may not write into the home."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)


def plain_sign(error: UnicodeError) -> tuple[str, int]:
    """Replace signs that an encoding lacks by similar ones, or by question marks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(PLAIN_SIGNS.get(sign, "?") for sign in missing), error.end


def new_table(headings: Iterable[str], texts: Sequence[str] = ("column",)) -> Table:
    """Make an empty table with few lines, for narrow terminals; its texts may be broken, its numbers not."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for heading in headings:
        if heading in texts:
            table.add_column(heading, overflow="fold")
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    return table


def print_table(
    console: Console,
    choices: Sequence[Sequence[str]],
    rows: Sequence[Mapping[str, str]],
    *,
    texts: Sequence[str] = ("column",),
    bold: int | None = None,
) -> Sequence[str]:
    """Print cells by their headings, with the first choice of headings that fits the terminal, and return that choice.

    The row with the number `bold` is bold.
    """
    tables = []
    for headings in choices:
        table = new_table(headings, texts)
        for number, row in enumerate(rows):
            table.add_row(*(row.get(heading, "") for heading in headings), style="bold" if number == bold else None)
        tables.append(table)
    return choices[print_first_that_fits(console, tables)]


def print_first_that_fits(console: Console, tables: Sequence[Table]) -> int:
    """Print the first table that is no wider than the terminal, or the last, and return its index."""
    unlimited = console.options.update(max_width=sys.maxsize)
    fitting = (
        place
        for place, table in enumerate(tables)
        if Measurement.get(console, unlimited, table).maximum <= console.width
    )
    chosen = next(fitting, len(tables) - 1)
    console.print(tables[chosen])
    return chosen
