"""The tree and the layers that `docs/architecture.md` draws are those of the code.

In the tree a line begins with a folder (`gp/`) or with files (`kl.py, var.py`), deeper than the folder that it is in.
Files may also be named in the words of a line, without backticks, and belong to the folder of that line. Every file is
named once, the `__init__.py` of a room by its folder. `python tests/test_architecture.py` prints a tree to begin with.
"""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "gpsift"
PAGE = ROOT / "docs" / "architecture.md"


def drawn():
    """The folders and files that the tree names, in its order."""
    (tree,) = re.findall(r"^```text\n(src/gpsift/\n.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    folders = [(-1, ROOT)]
    for line in filter(str.strip, tree.splitlines()):
        indent = len(line) - len(line.lstrip())
        while folders[-1][0] >= indent:
            folders.pop()
        first = line.split()[0]
        if first.endswith("/"):
            folders.append((indent, folders[-1][1] / first))
            yield folders[-1][1]
        yield from (folders[-1][1] / name for name in re.findall(r"(?<![\w/`])\w+\.py\b", line))


def there():
    """The folders and files of the package, as the tree should name them."""
    files = [path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py"]
    rooms = [path.parent for path in PACKAGE.rglob("__init__.py")]
    return {*files, *rooms, PACKAGE / "__init__.py"}


def listed(paths):
    return "".join(f"\n  {path.relative_to(ROOT).as_posix()}" for path in sorted(paths))


def test_the_tree_names_what_is_there():
    missing = there() - set(drawn())
    assert not missing, f"{len(missing)} are not in the tree:{listed(missing)}"


def test_the_tree_names_nothing_else():
    invented = set(drawn()) - there()
    assert not invented, f"{len(invented)} of the tree are not there:{listed(invented)}"


def test_the_tree_names_everything_once():
    repeated = [path for path, times in Counter(drawn()).items() if times > 1]
    assert not repeated, f"{len(repeated)} are in the tree more than once:{listed(repeated)}"


@pytest.mark.parametrize("page", [PAGE, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_the_table_of_layers_is_the_contract(page):
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    (table,) = re.findall(r"^\| layer, top to bottom .*\n\|[-|]+\n((?:\|.*\n)+)", page.read_text(), re.MULTILINE)
    rows = [set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in table.splitlines()]
    assert rows == [set(re.findall(r"gpsift\.(\w+)", layer)) for layer in layers]


def skeleton(folder, depth=1):
    """A line for each file, with the first sentence of its docstring."""
    for path in sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        if path in there():
            source = path / "__init__.py" if path.is_dir() else path
            words = (ast.get_docstring(ast.parse(source.read_text())) or "").partition("\n")[0].rstrip(".")
            print(f"{'  ' * depth + path.name + '/' * path.is_dir():24} {words}")
        if path.is_dir():
            skeleton(path, depth + 1)


if __name__ == "__main__":
    print("src/gpsift/")
    skeleton(PACKAGE)
