"""Format names, numbers and lists for messages and tables, and results as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# The meaning of a score, by the name of its measure.
MEANINGS: Mapping[str, str] = {"KL": "strength of reaction", "VAR": "variance of the mean"}
# Shown in place of the score of a feature that a model does not use.
NOT_USED = "not used"
# The heading of a column with shares of variance.
SHARE = "share"
# Longer names are cut off in a terminal.
LONGEST_NAME = 40
# A notebook shows at most this many lines of a table.
MOST_LINES = 60


def join_names(names: Iterable[Any], most: int | None = 8) -> str:
    """Join the first `most` names, or all with None, by commas, and put dots in place of the others.

    >>> join_names(["age", "height", "weight"], most=2)
    'age, height, ...'
    """
    shown = list(map(str, names))
    return ", ".join(shown[:most]) + (", ..." if most is not None and len(shown) > most else "")


def shorten(name: str, longest: int = LONGEST_NAME) -> str:
    """Cut off the end of a name, to leave room for numbers beside it.

    >>> shorten("a long name", 7)
    'a long…'
    """
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def meaning(measure: str) -> str:
    """Return the meaning of a score, for axes and headings; `measure` is the code that makes the measure.

    >>> meaning("KL(delta=0.1)"), meaning("ARD()")
    ('strength of reaction', 'relevance')
    """
    return MEANINGS.get(measure.partition("(")[0], "relevance")


def others_not_used(n: int) -> str:
    """Return the last line of a table of features, which counts those that the model does not use.

    >>> others_not_used(9994)
    'and 9,994 others, not used'
    """
    return f"and {n:,} {'other' if n == 1 else 'others'}, {NOT_USED}"


def percent(share: float, places: int = 0) -> str:
    """Format a share in per cent, with a space before the sign, as everywhere in the package.

    >>> percent(0.1), percent(0.125, 1)
    ('10 %', '12.5 %')
    """
    return f"{100 * share:z.{places}f} %"


def percent_as_given(share: float) -> str:
    """Format a share that a user chose, such as a rate, in per cent with all of its digits.

    >>> percent_as_given(0.1), percent_as_given(0.025)
    ('10 %', '2.5 %')
    """
    return f"{100 * share:.6g} %"


def summary_html(text: str, frame: pd.DataFrame, digits: int = 3) -> str:
    """Return HTML of some lines of text and of the first lines of a table."""
    lines = "<br>".join(escape(line) for line in text.splitlines())
    table = frame.head(MOST_LINES).to_html(
        index=False, border=0, float_format=lambda value: f"{value:.{digits}g}", escape=True
    )
    more = f"<p>... and {len(frame) - MOST_LINES:,} more</p>" if len(frame) > MOST_LINES else ""
    return f"<p>{lines}</p>{table}{more}"


class TextRepr:
    """A mix-in for results that a notebook shows as their `repr`."""

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
