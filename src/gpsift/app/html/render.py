"""Fill a template, and embed styles, scripts and data, so that one HTML file needs nothing else."""

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

from gpsift._utils.atomic import atomic_write
from gpsift._utils.text import percent_as_given
from gpsift.app.html.text import TERMS, count, join_tags, number, percent, sentence, shorten, tag, use_minus

# A longer table shows only this many columns until it is opened.
SHORT_TABLE = 25
# Scripts, styles, code and tags stay unchanged; elsewhere the spaces of "10 %" and "3.1 ± 0.4" become no-break ones.
NOT_WORDS = r"<(?P<tag>script|style|pre|code)\b.*?</(?P=tag)>|<[^>]*>"
BREAKABLE_SPACES = re.compile(rf"(?P<kept>{NOT_WORDS})|(?<=\d) (?=[%±])|(?<=±) (?=\d)", re.DOTALL)
FILTERS = {
    "number": number,
    "percent": percent,
    "percent_as_given": percent_as_given,
    "tag": tag,
    "join_tags": join_tags,
    "sentence": sentence,
    "use_minus": use_minus,
    "shorten": shorten,
}


def fill_template(template: str, **shown: Any) -> str:
    """Return the text of a template with these variables, the style sheet and the glossary."""
    import jinja2  # needed by pages only

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("gpsift.app.html"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(FILTERS)
    environment.policies["json.dumps_kwargs"] = {}  # keys keep their order; by default they are sorted
    text = environment.get_template(template).render(
        **shown, count=count, terms=TERMS, short_table=SHORT_TABLE, style=read_asset("page.css")
    )
    return keep_together(text)


def keep_together(text: str) -> str:
    """Put no-break spaces between numbers and their signs in the text of a page.

    >>> keep_together('<p title="10 %">10 % of all</p>').replace("\\u00a0", "_")
    '<p title="10 %">10_% of all</p>'
    """
    return BREAKABLE_SPACES.sub(lambda found: found["kept"] or "\u00a0", text)


def render(template: str, data: dict[str, Any], *, now: datetime | None = None, **shown: Any) -> str:
    """Return a page as text; `data` are for its scripts, and `now` is its date, by default this moment."""
    scripts = [bokeh_script(), read_asset("downloads.js"), read_asset("page.js")]
    return fill_template(
        template,
        **shown,
        now=(now or datetime.now().astimezone()).strftime("%d %B %Y, %H:%M"),
        data=script_data(data),
        scripts=scripts,
        policy=security_policy(scripts),
    )


def write_html(text: str, path: str | os.PathLike[str]) -> Path:
    """Write a page to a file, which appears whole or not at all, and return its path."""
    with atomic_write(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def script_data(data: Any) -> Markup:
    """Return JSON that is safe inside a script element, whatever its texts contain."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A script element ends at "</script", opens a comment at "<!--", and old readers take U+2028 for the end
    # of a line; in JSON all of these can only be inside texts.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def read_asset(name: str) -> Markup:
    """Read a style sheet or script of the page."""
    return Markup(files("gpsift.app.html").joinpath(name).read_text(encoding="utf-8"))


def bokeh_script() -> Markup:
    """Read Bokeh's script from the installed library."""
    from bokeh.settings import settings

    text = (settings.bokehjs_path() / "js" / "bokeh.min.js").read_text(encoding="utf-8")
    return Markup(text.replace("</script", "<\\/script"))


def security_policy(scripts: Sequence[str]) -> str:
    """Return a content security policy: only these scripts may run, and nothing may be fetched."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
