"""Format numbers, names and lists for the page, and explain its terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

NAME_LENGTH = 32
TEXT_LENGTH = 60
# Larger whole numbers are shown with an exponent.
LARGE = 1e9


def number(value: float, digits: int = 3) -> str:
    """Format a number with this many significant digits, and an exponent only for very small and very large ones."""
    if not np.isfinite(value):
        return "–"
    value = float(value)
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        places = max(0, digits - 1 - int(np.floor(np.log10(abs(value)))))
        return use_minus(f"{value:z.{places}f}")
    return use_minus(f"{value:.{digits - 1}e}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e"))


def limits(low: float, high: float) -> dict[str, float | None]:
    """Return an interval for a download; a limit that is no finite number becomes None.

    >>> limits(0.5, float("nan"))
    {'low': 0.5, 'high': None}
    """
    return {end: float(value) if np.isfinite(value) else None for end, value in (("low", low), ("high", high))}


def use_minus(text: str) -> str:
    """Replace hyphens by minus signs, which are as wide as a plus sign."""
    return text.replace("-", "−")


def percent(share: float) -> str:
    """Format a share in per cent, never rounded to 0 % or 100 % unless it is."""
    if not np.isfinite(share):
        return "–"
    if 0 < share < 0.005:
        return "<1 %"
    if 0.995 <= share < 1:
        return ">99 %"
    return use_minus(f"{100 * share:z.0f} %")


def count(n: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun, such as "1 row", "12,000 rows"."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def join_tags(names: Sequence[str], most: int | None = None) -> Markup:
    """Join names of columns as marked-up text: "a, b and c", or "a, b and 3 others"."""
    items = [tag(name) for name in names]
    if most is not None and len(items) > most:
        items = [*items[: most - 1], Markup(f"{len(items) - most + 1} others")]
    if len(items) == 1:
        return items[0]
    return Markup("{} and {}").format(Markup(", ").join(items[:-1]), items[-1])


def tag(name: str) -> Markup:
    """Mark up the name of a column, shortened, with the full name as its tooltip."""
    short = shorten(name)
    full = Markup(' title="{}"').format(name) if short != name else ""
    return Markup('<span class="name"{}>{}</span>').format(full, short)


def shorten(text: str, length: int = NAME_LENGTH) -> str:
    """Shorten a text in its middle, because long names tend to differ at their ends."""
    text = " ".join(str(text).split())
    if len(text) <= length:
        return text
    tail = length // 3
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def value_text(value: Any) -> str:
    """Format a cell of the user's table."""
    if isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, int | np.integer):
        return use_minus(str(value))
    if isinstance(value, float | np.floating):
        if not np.isfinite(value):
            return "–"
        exact = float(value)
        if abs(exact) >= LARGE:
            return use_minus(f"{exact:.4g}")
        return use_minus(
            f"{exact:z.0f}" if exact.is_integer() else f"{exact:z.1f}" if abs(exact) >= 1e3 else f"{exact:.4g}"
        )
    return shorten(str(value), TEXT_LENGTH)


def sentence(text: str) -> str:
    """End a phrase with a full stop and set typographic signs; no capital, as it may start with a column's name."""
    text = re.sub(r"(?<![\w.)])-(?=\d)", "−", text.strip().replace("+-", "±"))
    return text if text.endswith((".", "!", "?")) else f"{text}."


def align(values: Sequence[float] | np.ndarray, digits: int = 3) -> list[str]:
    """Format numbers of a column with the decimal places that the largest needs; smaller ones are such as "<0.001"."""
    finite = [abs(value) for value in values if np.isfinite(value)]
    largest = max(finite, default=0.0)
    if largest == 0 or not 1e-3 <= largest < 1e5:
        return [number(value, digits) for value in values]
    places = max(0, digits - 1 - int(np.floor(np.log10(largest))))
    least = float(10.0**-places)
    return [
        "–" if not np.isfinite(v) else f"<{least:z.{places}f}" if 0 < v < least / 2 else use_minus(f"{v:z.{places}f}")
        for v in values
    ]


TERMS: Mapping[str, str] = {
    "strength": "How much the target shifts when the column moves by one of its standard deviations and all others "
    "stay, in standard deviations of the noise: the measure KL if the function were known. The rows leave it open: the "
    "number is the median of what they allow, the interval holds it with a probability of 90 %. Without an interval it "
    "is the KL of the fitted model.",
    "matters": "Each column was put in the place of values that it could have had, given all others, on rows that the "
    "models had not seen. It is shown to matter if its own values predict better than those by more than chance "
    "allows. Of the columns named like this, on average at most the rate is wrong. One that others can stand in for "
    "may be strong and not be shown to matter by itself.",
    "KL": "Kullback-Leibler divergence: how far two predictions are apart. The score is how fast they part as the "
    "column moves.",
    "VAR": "The variance of the predicted mean as the column takes the values that it could have, given the others.",
    "ARD": "Automatic relevance determination: the inverse length-scale, how quickly the function may bend.",
    "elpd": "Expected log predictive density: the sum, over rows that the model has not seen, of the logarithm of how "
    "probable it had called what was seen. Higher is better.",
}
