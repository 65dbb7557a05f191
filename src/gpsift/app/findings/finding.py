"""A finding: its kind and data; and many of them, told under the titles that they share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from gpsift.app.findings.kinds import FindingKind
from gpsift.app.findings.sentences import WORDS

# Of findings of one kind about one column each, more than this many are told by their first ones and their number.
MOST_OF_A_KIND = 6
FIRST_OF_A_KIND = 3
# The end of a sentence whose last word, a name or dots, has its own.
TWO_STOPS = re.compile(r"(?<!\.)(\.|\.{3})\.$")


@dataclass(frozen=True)
class Finding:
    """One of the kinds, and the names and numbers that it is about; which ones, the words of the kind say."""

    kind: FindingKind
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """In a few words."""
        return WORDS[self.kind][0]

    @property
    def detail(self) -> str:
        """In a sentence or two."""
        words = WORDS[self.kind][1]
        text = words.format_map(self.data) if isinstance(words, str) else words(self.data)
        return TWO_STOPS.sub(r"\1", text)


def told(findings: Iterable[Finding], advice: Mapping[FindingKind, str] | None = None) -> list[tuple[str, str]]:
    """Title and text of each; those of one title share it, and of many of one kind the first are told.

    `advice` is added to the kinds that it is for.
    """

    def text(finding: Finding) -> str:
        more = (advice or {}).get(finding.kind)
        return finding.detail if more is None else f"{finding.detail} {more}"

    def texts(some: Iterable[Finding]) -> Iterator[str]:
        for _, run in groupby(some, key=lambda each: each.kind):
            same = list(run)
            shown = same if len(same) <= MOST_OF_A_KIND else same[:FIRST_OF_A_KIND]
            yield from map(text, shown)
            if len(shown) < len(same):
                yield f"The same holds for {len(same) - len(shown):,} other columns."

    by_title: dict[str, list[Finding]] = {}
    for finding in findings:
        by_title.setdefault(finding.title, []).append(finding)
    return [(title, " ".join(texts(some))) for title, some in by_title.items()]
