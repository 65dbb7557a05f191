"""The page: one HTML file that shows an analysis to people who did not make it.

In goes the record of an analysis, out comes a file that needs nothing else: no server, no network, no Python. Read
`build.py` first. `answer.py`, `sheet.py`, `table.py`, `acting.py` and `rows.py` turn parts of the record into words and
numbers, `figures.py` and `effect_figures.py` draw in the frames of `frames.py`, the templates lay out, `page.css` and
`page.js` travel inside the file. `discovered.py` is the page of a test, of which `render.py` makes a file in the same
way.
"""

from gpsift.app.html.page import page_text, report, write_page

__all__ = ["page_text", "report", "write_page"]
