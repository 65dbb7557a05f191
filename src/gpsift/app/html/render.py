"""A template and what it shows -> the text of one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup

from gpsift._utils.atomic import written_whole
from gpsift._utils.text import percent_as_given
from gpsift.app.html.text import TERMS, count, listed, number, percent, sentence, shortened, signed, tag

# A table with more columns than this opens with the first of them only.
SHORT_TABLE = 25
# What is left as it is: scripts, styles, code and tags; else the spaces of "10 %" and "3.1 ± 0.4".
NOT_WORDS = r"<(?P<tag>script|style|pre|code)\b.*?</(?P=tag)>|<[^>]*>"
CLOSE = re.compile(rf"(?P<kept>{NOT_WORDS})|(?<=\d) (?=[%±])|(?<=±) (?=\d)", re.DOTALL)
FILTERS = {
    "number": number,
    "percent": percent,
    "percent_as_given": percent_as_given,
    "tag": tag,
    "listed": listed,
    "sentence": sentence,
    "signed": signed,
    "shortened": shortened,
}


def filled(template: str, **shown: Any) -> str:
    """A template with what it shows."""
    import jinja2  # needed by pages only

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gpsift.app.html"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(FILTERS)
    environment.policies["json.dumps_kwargs"] = {}  # in the order given: by default keys are sorted
    text = environment.get_template(template).render(
        **shown, count=count, terms=TERMS, short_table=SHORT_TABLE, style=own("page.css")
    )
    return held_together(text)


def held_together(text: str) -> str:
    """A page whose lines do not end between a number and its sign.

    >>> held_together('<p title="10 %">10 % of all</p>').replace("\\u00a0", "_")
    '<p title="10 %">10_% of all</p>'
    """
    return CLOSE.sub(lambda found: found["kept"] or "\u00a0", text)


def rendered(template: str, data: dict[str, Any], *, now: datetime | None = None, **shown: Any) -> str:
    """The page as text; `data` are for its scripts, and `now` is its date, by default this moment."""
    scripts = [bokeh_script(), own("downloads.js"), own("page.js")]
    return filled(
        template,
        **shown,
        now=(now or datetime.now().astimezone()).strftime("%d %B %Y, %H:%M"),
        data=script_data(data),
        scripts=scripts,
        policy=policy(scripts),
    )


def written(text: str, path: str | os.PathLike[str]) -> Path:
    """A page in a file, which appears whole or not at all; where it is."""
    with written_whole(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def script_data(data: Any) -> Markup:
    """JSON that can stand inside a script element, whatever the texts in it contain."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A script element ends at "</script", opens a comment at "<!--", and takes U+2028 for the end of a line in old
    # readers; in JSON all of these can only be inside texts.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def own(name: str) -> Markup:
    """A style sheet or script of the page."""
    return Markup(files("gpsift.app.html").joinpath(name).read_text(encoding="utf-8"))


def bokeh_script() -> Markup:
    """Bokeh's script, as it comes with the installed library."""
    from bokeh.settings import settings

    text = (settings.bokehjs_path() / "js" / "bokeh.min.js").read_text(encoding="utf-8")
    return Markup(text.replace("</script", "<\\/script"))


def policy(scripts: Sequence[str]) -> str:
    """A content security policy: these scripts and no others may run, and nothing may be fetched."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
