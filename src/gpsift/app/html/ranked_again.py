"""The page of a saved model that was ranked again: relevance, and what was done with the table of the rows."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from gpsift.app.analysis.saved_model import SavedModelRanking
from gpsift.app.findings import group_by_title
from gpsift.app.html.render import rendered, written
from gpsift.app.html.table import relevance_table


def write_ranked_again(answer: SavedModelRanking, path: str | os.PathLike[str]) -> Path:
    """Write the page, one HTML file that needs nothing else, and say where it is."""
    return written(ranked_again_text(answer), path)


def ranked_again_text(answer: SavedModelRanking, *, now: datetime | None = None) -> str:
    """The page as text, with the date `now`, by default this moment."""
    return rendered(
        "ranked_again.html",
        {"figures": {}, "rows": None},
        now=now,
        answered=answer,
        analysis=answer,
        table=relevance_table(answer),
        still=False,
        cautions=group_by_title(answer.cautions),
        versions=answer.leading.details.get("versions", {}),
    )
