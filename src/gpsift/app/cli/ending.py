"""A request of the system to end, as an exception that unwinds what is going on."""

from __future__ import annotations

import signal

# As a shell has them for a program that Ctrl-C or a request to end has ended.
INTERRUPTED = 130
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """The system asks to end. To be treated like Ctrl-C: otherwise processes that work for this one would go on."""


def heed_termination() -> None:
    """Let a request to end unwind what is going on."""

    def end(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, end)


def code_of(interrupt: KeyboardInterrupt) -> int:
    """The exit code of a program that this has ended."""
    return TERMINATED if isinstance(interrupt, Terminated) else INTERRUPTED
