"""Count the rooms, floors and arrows of the repository from its own imports.

A room is a folder or a file directly inside ``src/gpsift/``, the entry ``src/gpsift_command.py``, and each of the
folders ``benchmarks/`` and ``experiments/``. An arrow leads from one room to another if any file of the first imports
from the second, late imports and those for type checkers included; a name that a package hands on counts as an import
of the file that defines it. A room stands one floor above the highest room that it imports; imports of a circle that
lead back up are left out of the floors and counted apart.

    python tools/count_rooms.py              this checkout
    python tools/count_rooms.py DIR          another checkout
    python tools/count_rooms.py --list       each room with its floor, lines and imports
    python tools/count_rooms.py --between A B     the imports behind one arrow
"""

from __future__ import annotations

import argparse
import ast
from collections import defaultdict
from functools import cached_property
from itertools import pairwise
from pathlib import Path


class Repository:
    """The Python files of a checkout, and who imports whom."""

    def __init__(self, root: Path) -> None:
        """Read the files below `root` without importing them."""
        self.root = root
        self.trees = {}
        for folder in ("src", "benchmarks", "experiments"):
            for path in sorted((root / folder).rglob("*.py")):
                base = root / "src" if folder == "src" else root
                parts = path.relative_to(base).with_suffix("").parts
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                stub = path.with_suffix(".pyi")  # lists the names of a package that load on demand
                source = path.read_text() + (stub.read_text() if stub.exists() else "")
                self.trees[name] = (path, ast.parse(source))

    def room(self, module: str) -> str:
        """``gpsift.gp.model`` -> ``gp``; ``benchmarks.peers`` -> ``benchmarks``; ``gpsift`` -> ``__init__``."""
        parts = module.split(".")
        if parts[0] != "gpsift":
            return parts[0]
        return parts[1] if len(parts) > 1 else "__init__"

    def is_package(self, module: str) -> bool:
        return self.trees[module][0].name == "__init__.py"

    def named_from(self, node: ast.ImportFrom, module: str) -> str:
        """The module that a ``from`` statement names, with its leading dots resolved."""
        if not node.level:
            return node.module or ""
        parts = module.split(".") if self.is_package(module) else module.split(".")[:-1]
        return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])

    @cached_property
    def handed_on(self) -> dict[tuple[str, str], tuple[str, str]]:
        """(package, name) -> (module, name) that the package takes it from."""
        found = {}
        for module, (_, tree) in self.trees.items():
            if self.is_package(module):
                for node in ast.walk(tree):
                    if isinstance(node, ast.ImportFrom):
                        origin = self.named_from(node, module)
                        for alias in node.names:
                            found[module, alias.asname or alias.name] = (origin, alias.name)
        return found

    def definition(self, module: str, name: str) -> str | None:
        """The module of this repository that ``from module import name`` reaches, or None."""
        for _ in range(10):
            if f"{module}.{name}" in self.trees:
                return f"{module}.{name}"
            if (module, name) not in self.handed_on:
                return module if module in self.trees else None
            module, name = self.handed_on[module, name]
        raise ValueError(f"{module}.{name} is handed on in a circle")

    def imports(self, module: str) -> set[tuple[int, str]]:
        """(line, imported module) of this repository for each import of `module`."""
        found = set()
        for node in ast.walk(self.trees[module][1]):
            if isinstance(node, ast.Import):
                found |= {(node.lineno, alias.name) for alias in node.names if alias.name in self.trees}
            elif isinstance(node, ast.ImportFrom):
                origin = self.named_from(node, module)
                reached = {self.definition(origin, alias.name) for alias in node.names}
                found |= {(node.lineno, name) for name in reached if name is not None}
        return found

    @cached_property
    def arrows(self) -> dict[tuple[str, str], list[str]]:
        """(room, imported room) -> the imports behind that arrow, each as ``file:line -> module``."""
        found = defaultdict(list)
        for module, (path, _) in self.trees.items():
            for line, imported in sorted(self.imports(module)):
                ends = self.room(module), self.room(imported)
                if ends[0] != ends[1]:
                    found[ends].append(f"{path.relative_to(self.root)}:{line} -> {imported}")
        return dict(found)

    @cached_property
    def rooms(self) -> dict[str, int]:
        """Lines of Python in each room."""
        found = defaultdict(int)
        for module, (path, _) in self.trees.items():
            found[self.room(module)] += path.read_text().count("\n")
        return dict(found)

    def floors(self) -> tuple[dict[str, int], list[tuple[str, str]]]:
        """The floor of each room, and the arrows that lead back up.

        Of the arrows of a circle, the one with the fewest imports is taken out, until no circle is left.
        """
        down = dict(self.arrows)
        back = []
        while circle := self._circle(down):
            weakest = min(circle, key=lambda arrow: (len(down[arrow]), arrow))
            back.append(weakest)
            del down[weakest]
        below = defaultdict(set)
        for room, imported in down:
            below[room].add(imported)
        floor: dict[str, int] = {}

        def height(room: str) -> int:
            if room not in floor:
                floor[room] = 1 + max((height(other) for other in below[room]), default=0)
            return floor[room]

        return {room: height(room) for room in self.rooms}, back

    def _circle(self, down: dict) -> list[tuple[str, str]] | None:
        """Some circle of arrows, or None."""
        below = defaultdict(list)
        for room, imported in down:
            below[room].append(imported)
        done, trail = set(), []

        def visit(room):
            if room in trail:
                turn = [*trail[trail.index(room) :], room]
                return list(pairwise(turn))
            if room in done:
                return None
            trail.append(room)
            for other in below[room]:
                if found := visit(other):
                    return found
            trail.pop()
            done.add(room)
            return None

        return next(filter(None, (visit(room) for room in self.rooms)), None)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description="Rooms, floors and arrows of a checkout.")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parents[1])
    parser.add_argument("--list", action="store_true", help="each room with its floor, lines and imports")
    parser.add_argument("--between", nargs=2, metavar=("A", "B"), help="the imports behind the arrow from A to B")
    asked = parser.parse_args()
    repository = Repository(asked.root)
    if asked.between:
        print("\n".join(repository.arrows.get(tuple(asked.between), ["no import"])))
        return
    floors, back = repository.floors()
    package = [name for name, (path, _) in repository.trees.items() if path.is_relative_to(asked.root / "src")]
    folder = asked.root / "src" / "gpsift"
    entries = [path for path in folder.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    lines = sum(repository.trees[name][0].read_text().count("\n") for name in package)
    print(f"{len(repository.rooms)} rooms, {max(floors.values())} floors, {len(repository.arrows)} arrows", end="")
    print(f" ({len(back)} lead back up: {', '.join(f'{a} -> {b}' for a, b in back) or 'none'})")
    print(f"{len(entries)} entries in src/gpsift/, {len(package)} files, {lines} lines of Python in src/")
    if asked.list:
        for room in sorted(repository.rooms, key=lambda room: (-floors[room], room)):
            below = sorted(imported for other, imported in repository.arrows if other == room)
            print(f"{floors[room]:2}  {room:16} {repository.rooms[room]:6}  {' '.join(below)}")


if __name__ == "__main__":
    main()
