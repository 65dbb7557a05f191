"""Text of a data file -> its cells, an array of strings. No cell is interpreted here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# StatLib's file of the Boston data: a description of 22 lines, then two lines a row with 11 and 3 numbers.
STATLIB_HEADER, STATLIB_COLUMNS = 22, 14


def comma_cells(text: str) -> np.ndarray:
    """Cells of a comma separated file without a header."""
    return _rectangle([line.split(",") for line in _lines(text)])


def headed_cells(text: str) -> np.ndarray:
    """Cells of a comma separated file below its header."""
    return _rectangle([line.split(",") for line in _lines(text)[1:]])


def spaced_cells(text: str) -> np.ndarray:
    """Cells separated by any number of blanks."""
    return _rectangle([line.split() for line in _lines(text)])


def arff_cells(text: str) -> np.ndarray:
    """Cells of a dense ARFF file: what follows ``@data``, without comments and quotes."""
    lines = [line for line in _lines(text) if not line.startswith("%")]
    start = next((i for i, line in enumerate(lines) if line.lower().startswith("@data")), None)
    if start is None:
        raise ValueError("no line @data")
    return _rectangle([[cell.strip().strip("'\"") for cell in line.split(",")] for line in lines[start + 1 :]])


def statlib_cells(text: str) -> np.ndarray:
    """Cells of StatLib's file of the Boston data."""
    words = " ".join(text.splitlines()[STATLIB_HEADER:]).split()
    if not words or len(words) % STATLIB_COLUMNS:
        raise ValueError(f"{len(words)} numbers below the description, not a multiple of {STATLIB_COLUMNS}")
    return np.array(words).reshape(-1, STATLIB_COLUMNS)


def headed_table(text: str) -> tuple[tuple[str, ...], np.ndarray]:
    """Column names and numbers of a comma separated file with a header."""
    names = tuple(name.strip() for name in text.split("\n", 1)[0].split(","))
    return names, headed_cells(text).astype(float)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _rectangle(rows: Sequence[Sequence[str]]) -> np.ndarray:
    if not rows:
        raise ValueError("no rows")
    widths = [len(row) for row in rows]
    odd = next((i for i, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        raise ValueError(f"row {odd + 1} has {widths[odd]} cells, the first has {widths[0]}")
    return np.array([[cell.strip() for cell in row] for row in rows])
