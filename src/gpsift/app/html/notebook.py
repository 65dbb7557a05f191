"""An analysis as a notebook shows it: the first screen of its page and the table of relevance, in a frame."""

from __future__ import annotations

from markupsafe import Markup

from gpsift.app.analysis import Analysis
from gpsift.app.findings import group_by_title
from gpsift.app.html.advice import advice
from gpsift.app.html.answer import answer, tested
from gpsift.app.html.first import first_screen
from gpsift.app.html.render import filled
from gpsift.app.html.table import relevance_table

# Of the frame, in pixels; what is longer scrolls.
HEIGHT = 620


def notebook_html(analysis: Analysis) -> str:
    """A frame that the styles of a notebook do not reach, without any script."""
    text = filled(
        "notebook.html",
        analysis=analysis,
        answer=answer(analysis),
        tested=tested(analysis),
        first=first_screen(analysis),
        todo=advice(analysis),
        table=relevance_table(analysis),
        cautions=group_by_title(analysis.cautions),
        panels=[],
        interactions=None,
        shares=None,
        still=True,
    )
    frame = Markup(
        '<iframe srcdoc="{}" sandbox="" title="What matters for {}" '
        'style="width:100%;height:{}px;border:1px solid #8884;border-radius:4px"></iframe>'
    )
    return str(frame.format(text, analysis.target, HEIGHT))
