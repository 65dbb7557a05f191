"""What goes into the file besides words: scripts, data and the rule that nothing is asked of anywhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from markupsafe import Markup


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
