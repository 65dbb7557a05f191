"""The answer of `suggest_size`: how many features are enough, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from gpsift.savable import Savable


@dataclass(frozen=True)
class Verdict:
    """What one rule says: a size, or None if no size qualifies, and the reason in words."""

    size: int | None
    reason: str


@dataclass(frozen=True, repr=False)
class Suggestion(Savable):
    """A suggested size.

    Attributes
    ----------
    rule : str
        The rule that decides.
    size : int or None
        Its answer; None if no size qualifies.
    features : tuple of str
        The features of that submodel; empty if none is needed or none qualifies.
    reason : str
        In words.
    by_rule : mapping of str to Verdict
        What every rule says.
    """

    rule: str
    features: tuple[str, ...]
    by_rule: Mapping[str, Verdict]

    @property
    def size(self) -> int | None:
        return self.by_rule[self.rule].size

    @property
    def reason(self) -> str:
        return self.by_rule[self.rule].reason

    def __repr__(self) -> str:
        head = "no size qualifies" if self.size is None else f"size {self.size}"
        lines = [f"Suggestion: {head} by the rule {self.rule!r}"]
        if self.features:
            lines.append(f"  {', '.join(self.features)}")
        lines += [
            f"  {'*' if rule == self.rule else ' '} {rule:<10} {'none' if v.size is None else v.size!s:>4}  {v.reason}"
            for rule, v in self.by_rule.items()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"
