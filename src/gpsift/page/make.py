"""From a table to a page in one call."""

from __future__ import annotations

import os
from typing import Any

from gpsift.analysis import Analysis, analyse
from gpsift.page.build import write_page


def report(data: Any, target: str | int, path: str | os.PathLike[str], **options: Any) -> Analysis:
    """Analyse a table and write the page.

    Parameters
    ----------
    data, target
        As in `analyse`: a data frame or a file, and the column to explain.
    path : path
        Where the page goes.
    **options
        Of `analyse`.

    Returns
    -------
    Analysis
        What the page shows.
    """
    analysis = analyse(data, target, **options)
    write_page(analysis, path)
    return analysis
