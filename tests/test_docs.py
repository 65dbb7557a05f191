"""What the documentation cites is there: files, and the functions and classes that are named after a file."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PACKAGE = ROOT / "src" / "gpsift"
FILE = re.compile(r"`([\w/]+\.py)`")
# `kernels/radial.py`, `Radial` and `RadialPairs`
NAMES_IN_FILE = re.compile(r"`([\w/]+\.py)`((?:(?:,| and) `[A-Za-z_][\w.]*`)+)")


def cited_file(path):
    """The file that a page means, or None; without its room, a name has to be the only one of its kind."""
    for place in (PACKAGE, ROOT / "src", ROOT):
        if (place / path).is_file():
            return place / path
    found = list(PACKAGE.rglob(path)) if "/" not in path else []
    return found[0] if len(found) == 1 else None


def defined(path):
    """Functions, methods, classes and constants of a file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_cites_files_that_exist(page):
    assert {path for path in FILE.findall(page.read_text()) if cited_file(path) is None} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_cites_names_that_their_file_defines(page):
    missing = [
        f"{name} in {path}"
        for path, names in NAMES_IN_FILE.findall(page.read_text())
        for name in re.findall(r"[\w.]+(?=`)", names)
        if not name.endswith((".py", ".md")) and (file := cited_file(path)) is not None
        if not set(name.split(".")) <= defined(file)
    ]
    assert missing == []


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text())  # Sphinx looks after those of the pages in docs/
    assert [link for link in links if not (ROOT / link).exists()] == []
