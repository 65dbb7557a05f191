"""The rows that a page carries, as text and short numbers for its script."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpsift.app.analysis import Analysis
from gpsift.app.analysis.rows import RowDetails
from gpsift.app.html.acting import function_of
from gpsift.app.html.words import number, percent, shortened, signed, value_text

DIGITS = 3
LEVEL = 0.9


def payload(analysis: Analysis, rows: RowDetails) -> dict[str, Any]:
    """What the script of the page needs to explain a row."""
    return {
        "names": list(rows.names),
        "short": [shortened(name) for name in rows.names],
        "labels": [value_text(label) for label in rows.labels],
        "values": [[value_text(value) for value in column.tolist()] for column in rows.values],
        "relevance": _rounded(rows.relevance),
        "average": _rounded(rows.average[None])[0],
        "meanShare": None if rows.mean_share is None else np.round(rows.mean_share, 2).tolist(),
        "added": None if rows.added is None else _rounded(rows.added),
        "addedSd": None if rows.added_sd is None else _rounded(rows.added_sd),
        "largestAdded": 0.0 if rows.added is None else float(np.abs(rows.added).max(initial=0.0)),
        "sums": sums(analysis, rows),
        "largest": rows.largest,
        "predictions": predictions(analysis, rows),
        "observed": [_observed(analysis, value) for value in rows.observed],
    }


def predictions(analysis: Analysis, rows: RowDetails) -> list[str]:
    """What the model predicts at each row."""
    found = rows.prediction
    if analysis.task == "classification":
        mean = analysis.class_probabilities(found.mean)
        best = mean.argmax(axis=1)
        return [f"{_class(analysis, k)} with probability {percent(mean[i, k])}" for i, k in enumerate(best)]
    limits = found.interval(LEVEL)
    return [
        f"{number(mean)} ({percent(LEVEL)} between {number(low)} and {number(high)})"
        for mean, (low, high) in zip(found.mean, limits, strict=True)
    ]


def sums(analysis: Analysis, rows: RowDetails) -> list[str] | None:
    """How the average and what columns add make the prediction of each row; None where that is not known."""
    apart = None if analysis.column_effects is None else analysis.column_effects.rows
    if apart is None or rows.added is None:
        return None
    what, average = function_of(shortened(analysis.target), apart), number(apart.average)
    return [
        f"On average {what} is {average}; the columns add {signed(f'{here - apart.average:+z.3g}')}, which makes "
        f"{number(here)}."
        for here in apart.prediction
    ]


def _class(analysis: Analysis, code: int) -> str:
    return shortened(analysis.classes[code]) if analysis.classes else str(code)


def _observed(analysis: Analysis, y: float) -> str:
    return _class(analysis, int(y)) if analysis.task == "classification" else value_text(float(y))


def _rounded(values: np.ndarray) -> list[list[float]]:
    """Numbers with few digits: the page carries very many of them."""
    return [[float(f"{value:.{DIGITS}g}") for value in line] for line in values.tolist()]
