"""Records as a notebook shows them: their words, and a table."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# Lines of a table, at most; a record may be large.
MOST_LINES = 60


def words_and_table(words: str, frame: pd.DataFrame, digits: int = 3) -> str:
    """HTML of some lines of words and of the first lines of a table."""
    told = "<br>".join(escape(line) for line in words.splitlines())
    table = frame.head(MOST_LINES).to_html(
        index=False, border=0, float_format=lambda value: f"{value:.{digits}g}", escape=True
    )
    more = f"<p>... and {len(frame) - MOST_LINES:,} more</p>" if len(frame) > MOST_LINES else ""
    return f"<p>{told}</p>{table}{more}"


class AsText:
    """A record that a notebook shows as it prints itself."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
