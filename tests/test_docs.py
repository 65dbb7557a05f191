"""The documentation cites files that exist, and has every public name and picture; examples of the README run."""

import ast
import re
from inspect import ismodule
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import gpsift

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PACKAGE = ROOT / "src" / "gpsift"
FILE = re.compile(r"`([\w/]+\.(?:py|md))`")


def cited_file(path):
    """The file that a page means, or None; without its room, a name has to be the only one of its kind."""
    for place in (PACKAGE, ROOT / "src", ROOT):
        if (place / path).is_file():
            return place / path
    found = list(PACKAGE.rglob(path)) if "/" not in path else []
    return found[0] if len(found) == 1 else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_cites_files_that_exist(page):
    assert {path for path in FILE.findall(page.read_text()) if cited_file(path) is None} == set()


def public_names():
    """Classes and functions of the package, and its version."""
    return {name for name in gpsift.__all__ if not ismodule(getattr(gpsift, name))}


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^\.\. auto\w+:: (?:gpsift\.)?([\w.]+)", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    assert public_names() - set(listed) == {"__version__"}


def classes_that_draw():
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any(getattr(item, "name", "") == "plot" for item in node.body):
                yield node.name


def test_gallery_has_the_picture_of_every_record():
    gallery = (ROOT / "docs" / "gallery.md").read_text()
    drawn = list(classes_that_draw())
    assert len(drawn) > 8
    assert [name for name in drawn if f"`{name}.plot`" not in gallery] == []


def test_python_of_the_readme_runs(rng):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    X = rng.normal(size=(30, 3))
    for block in blocks:
        exec(block, {"X": X, "y": X[:, 0] + 0.1 * rng.normal(size=30)})
    plt.close("all")
