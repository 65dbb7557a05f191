"""Write the page: one HTML file that shows an analysis to people who did not make it.

A page is made from the record of an analysis. It needs no server, no network and no Python. Read `page.py`
first. `summary.py` (the first screen), `model_summary.py`, `table.py` (relevance) and `effects.py` turn parts of the
record into text and numbers; `charts.py` draws with Bokeh; `render.py` fills the templates and embeds `page.css` and
`page.js`. `answer_pages.py` has the pages of a test, a comparison and a saved model.
"""

from gpsift.app.html.page import page_text, report, write_page

__all__ = ["page_text", "report", "write_page"]
