"""The package's declarations agree: lowest versions, citation, files in the wheel."""

import re
import tomllib
from pathlib import Path

import gpsift

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def lowest_declared():
    """Name -> lowest version of what the command needs, and of files that only some have."""
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["tables"]]
    return dict(re.match(r"([\w-]+)>=([\d.]+)", each).groups() for each in wanted)


def as_numbers(version):
    """1.9 and 1.9.0 are one version."""
    parts = [int(part) for part in version.split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def test_lowest_versions_are_those_that_are_tested():
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / ".ci" / "lowest.txt").read_text(), re.MULTILINE))
    declared = lowest_declared()
    assert len(declared) > 10
    assert {name: as_numbers(pinned[name]) for name in declared} == {
        name: as_numbers(version) for name, version in declared.items()
    }


def test_versions_of_python_that_are_named_are_looked_for_by_the_tests():
    named = {int(minor) for minor in re.findall(r":: 3\.(\d+)", " ".join(PROJECT["classifiers"]))}
    lowest = int(re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1])
    looked_for = re.search(r"for minor in ([\d ]+);", (ROOT / ".ci" / "run").read_text())[1].split()
    assert min(named) == lowest
    assert named - {lowest} <= set(map(int, looked_for))


def test_citation_has_the_version():
    cited = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert cited.group(1) == gpsift.__version__


def test_changelog_begins_with_the_version():
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first.group(1) == gpsift.__version__


def test_types_are_declared():
    assert (ROOT / "src" / "gpsift" / "py.typed").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]
