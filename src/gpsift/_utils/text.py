"""Words that several messages are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# What the scores of a measure are, by its name.
MEANINGS: Mapping[str, str] = {"KL": "strength of reaction", "VAR": "variance of the mean"}
# Of a feature that a model has switched off, in place of its score.
NOT_USED = "not used"
# Of a column with shares of variance.
SHARE = "share"


def listed(names: Iterable[Any], most: int | None = 8) -> str:
    """The first `most` of them, or all, separated by commas; dots where there are others.

    >>> listed(["age", "height", "weight"], most=2)
    'age, height, ...'
    """
    shown = list(map(str, names))
    return ", ".join(shown[:most]) + (", ..." if most is not None and len(shown) > most else "")


def meaning(measure: str) -> str:
    """What a score is, for axes and headings; of a measure as it would be typed.

    >>> meaning("KL(delta=0.1)"), meaning("ARD()")
    ('strength of reaction', 'relevance')
    """
    return MEANINGS.get(measure.partition("(")[0], "relevance")


def others_not_used(n: int) -> str:
    """The end of a table of features, for those that are switched off.

    >>> others_not_used(9994)
    'and 9,994 others, not used'
    """
    return f"and {n:,} {'other' if n == 1 else 'others'}, {NOT_USED}"


def percent(share: float, places: int = 0) -> str:
    """A share in per cent, with a space before the sign, as everywhere in the package.

    >>> percent(0.1), percent(0.125, 1)
    ('10 %', '12.5 %')
    """
    return f"{100 * share:z.{places}f} %"


def percent_as_given(share: float) -> str:
    """A share that somebody chose, such as a rate, in per cent with all of its digits.

    >>> percent_as_given(0.1), percent_as_given(0.025)
    ('10 %', '2.5 %')
    """
    return f"{100 * share:.6g} %"


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
