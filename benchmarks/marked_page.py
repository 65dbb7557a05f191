"""Tables between two marks of a page of results."""

from __future__ import annotations

import re
from collections.abc import Iterable

START, END = "<!-- tables -->", "<!-- end of tables -->"


def with_sections(page: str, sections: Iterable[str]) -> str:
    """The page with other sections between its marks."""
    tables = "\n\n".join(sections)
    return re.sub(f"{START}.*{END}", lambda _: f"{START}\n\n{tables}\n\n{END}", page, flags=re.DOTALL)
