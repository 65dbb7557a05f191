"""A plugin of pytest that writes what was skipped, one test or file in a line, into the file that SKIPPED names."""

import os
from pathlib import Path

_skipped: set[str] = set()


def pytest_collectreport(report):
    """A file that asks for a library at its top; of several conftest.py, doctest skips all but one."""
    if report.skipped and not report.nodeid.endswith("conftest.py"):
        _skipped.add(report.nodeid)


def pytest_runtest_logreport(report):
    """A test that asks for one; what is expected to fail is reported as skipped, too."""
    if report.skipped and not hasattr(report, "wasxfail"):
        _skipped.add(report.nodeid)


def pytest_sessionfinish(session):
    """Of several processes, the one that has heard of all tests writes."""
    if not hasattr(session.config, "workerinput"):
        Path(os.environ["SKIPPED"]).write_text("".join(f"{name}\n" for name in sorted(_skipped)))
