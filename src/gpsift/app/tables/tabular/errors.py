"""A table that cannot be used as it is, and what to choose so that it can."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """An option of `prepare` and the value that would help."""

    option: str
    value: str

    def __str__(self) -> str:
        return f"{self.option}={[self.value] if self.option in ('drop', 'categorical') else self.value!r}"


class TableError(ValueError):
    """What is wrong, with remedies as choices: the message speaks of arguments, a command line of its options."""

    def __init__(self, *parts: str | Choice):
        super().__init__("".join(map(str, parts)))
        self._parts = parts

    def worded(self, write: Callable[[Choice], str]) -> str:
        """The message with its remedies written another way."""
        return "".join(write(part) if isinstance(part, Choice) else part for part in self._parts)
