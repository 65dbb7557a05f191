"""Counts that keep the code small, read from the source without importing it.

`python tests/test_counts.py` prints the counts, what exceeds them, and the lines of `src/`.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src"
PACKAGE = SRC / "gpsift"
MOST_MEMBERS_OF_A_REFERENCE = 16  # `at`, and what a model may offer beyond it: all optional parts are members here
MOST_PARAMETERS = 10
# A record saves, draws and shows itself by these, imported inside its methods; they read the record in turn.
OUTPUT = ("gpsift.io.files", "gpsift.app.html.page", "gpsift.relevance.display", "plots")


def module_name(path):
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules():
    """Name of each module -> its syntax tree."""
    return {module_name(path): ast.parse(path.read_text()) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def nodes(module):
    """All of the tree of a module."""
    return tuple(ast.walk(modules()[module]))


def room(module):
    """gpsift.gp.model -> gp"""
    return ".".join(module.split(".")[1:2])


def imported_from(node, module):
    """The module that a `from` statement names, the dots of relative ones resolved."""
    if not node.level:
        return node.module or ""
    is_package = any(other.startswith(module + ".") for other in modules())
    parts = module.split(".") if is_package else module.split(".")[:-1]
    return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])


def called(node):
    """The last part of the name that a call calls."""
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def imports(module, within=None):
    """(line, module of this package) for each import of a module, or of a part of it, late ones among them."""
    for node in nodes(module) if within is None else ast.walk(within):
        found = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = imported_from(node, module)
            inner = [f"{origin}.{alias.name}" for alias in node.names]
            found = [name if name in modules() else origin for name in inner]
        elif isinstance(node, ast.Call) and called(node) == "import_module":
            found = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        yield from ((node.lineno, name) for name in found if name in modules())


@cache
def names_in(module):
    """Return the definitions of a module's names: (module, name), or (module, None) for a module."""
    found = {}
    for node in nodes(module):
        if isinstance(node, ast.ImportFrom):
            origin = imported_from(node, module)
            for alias in node.names:
                inner = f"{origin}.{alias.name}"
                found[alias.asname or alias.name] = (inner, None) if inner in modules() else (origin, alias.name)
    for node in modules()[module].body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = (module, node.name)
    return found


def definition(module, name):
    """(module, node) where a name that a module has is defined in this package, or None."""
    seen = set()
    while module in modules() and name is not None and (module, name) not in seen:
        seen.add((module, name))
        for node in modules()[module].body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                return module, node
        module, name = names_in(module).get(name, (None, None))
    return None


def bases(module, node):
    """The classes of this package that a class inherits from, itself first."""
    found = [(module, node)]
    for base in node.bases:
        inner = definition(module, ast.unparse(base).partition("[")[0])
        if inner is not None and isinstance(inner[1], ast.ClassDef):
            found += bases(*inner)
    return found


def public_members(node):
    """Names that a class defines, with the line of each."""
    for item in node.body:
        targets = item.targets if isinstance(item, ast.Assign) else [getattr(item, "target", None)]
        names = [item.name] if hasattr(item, "name") else [target.id for target in targets if hasattr(target, "id")]
        yield from ((item, name) for name in names if not name.startswith("_"))


def members_of_reference():
    """Public members of the contract, those of its bases among them."""
    found = definition("gpsift.reference.base", "Reference")
    assert found is not None
    return sorted({name for _, node in bases(*found) for _, name in public_members(node)})


def likelihood_classes():
    """(module, name) of each class in the room of likelihoods that is a likelihood."""
    found = set()
    for module, tree in modules().items():
        for node in tree.body if room(module) == "likelihoods" else []:
            if isinstance(node, ast.ClassDef) and "Likelihood" in {base.name for _, base in bases(module, node)}:
                found.add((module, node.name))
    return found


def asked_classes(node):
    """Return the classes in comparisons: isinstance, issubclass, `type(x) is C` and class patterns."""
    if isinstance(node, ast.Call) and called(node) in ("isinstance", "issubclass"):
        return [node.args[1]]
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call) and called(node.left) == "type":
        return node.comparators
    return [node.cls] if isinstance(node, ast.MatchClass) else []


def questions_for_likelihoods():
    """Return comparisons of a likelihood's class outside likelihoods/."""
    classes, found = likelihood_classes(), []
    for module in modules():
        for node in nodes(module) if room(module) != "likelihoods" else ():
            for part in (part for asked in asked_classes(node) for part in ast.walk(asked)):
                inner = None
                if isinstance(part, ast.Name):
                    inner = definition(module, part.id)
                elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                    inner = definition(names_in(module).get(part.value.id, (None, None))[0], part.attr)
                if inner is not None and (inner[0], inner[1].name) in classes:
                    found.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    return sorted(set(found))


def folder(module):
    """gpsift.gp.model -> gpsift.gp"""
    return module.rpartition(".")[0]


def late_imports_in_gp():
    """Imports of one file directly in `gp/` by another, inside a function; its folders are loaded on demand."""
    return [
        f"{module}:{line}: {name}"
        for module in modules()
        if folder(module) == "gpsift.gp"
        for function in nodes(module)
        if isinstance(function, ast.FunctionDef)
        for line, name in imports(module, function)
        if folder(name) == "gpsift.gp"
    ]


def circles():
    """Sets of modules that import one another, by whatever way, in the direction of their imports."""
    edges = {module: {name for _, name in imports(module)} - {module} for module in modules()}
    for names in edges.values():
        names -= {name for name in names if name.endswith(OUTPUT)}
    reached = {module: reachable(edges, module) for module in edges}
    on_circles = [module for module in edges if module in reached[module]]
    found = {frozenset(name for name in reached[module] if module in reached[name]) for module in on_circles}
    return sorted(
        ", ".join(f"{a} -> {b}" for a in sorted(circle) for b in sorted(edges[a] & circle)) for circle in found
    )


def reachable(edges, start):
    """All modules that a module leads to."""
    found, waiting = set(), [start]
    while waiting:
        new = edges[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def public_definitions():
    """(name, module, node) of all that can be reached from `gpsift.__all__`, through public modules too."""
    waiting = [("gpsift", name) for name in exported("gpsift")]
    for module, name in waiting:
        origin, inner = names_in(module).get(name, (f"{module}.{name}", None))
        if inner is None and origin in modules():
            waiting += [(origin, each) for each in exported(origin)]
        elif (found := definition(module, name)) is not None:
            yield f"{module}.{name}", *found


def exported(module):
    for node in modules()[module].body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


def public_functions():
    """Functions, and methods of classes with what they inherit; choices of a class are its fields, and not counted."""
    for name, module, node in public_definitions():
        if isinstance(node, ast.FunctionDef):
            yield name, node
            continue
        for _, base in bases(module, node):
            for item in base.body:
                if isinstance(item, ast.FunctionDef) and (not item.name.startswith("_") or item.name == "__call__"):
                    yield f"{name}.{item.name}", item


def functions_with_many_parameters():
    found = {}
    for name, node in public_functions():
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
        count = sum(arg is not None and arg.arg not in ("self", "cls") for arg in every)
        if count > MOST_PARAMETERS:
            found[name] = f"{name}: {count}"
    return sorted(found.values())


def attribute_probes():
    """getattr and hasattr on a response or a reference: the contract names all their members."""
    return [
        f"{module}:{node.lineno}: {ast.unparse(node)}"
        for module in modules()
        for node in nodes(module)
        if isinstance(node, ast.Call) and called(node) in ("getattr", "hasattr")
        if ast.unparse(node.args[0]).rpartition(".")[2].lstrip("_") in ("response", "reference")
    ]


NONE_ALLOWED = {
    "questions for the class of a likelihood outside likelihoods/": questions_for_likelihoods,
    "late imports between files of gp/": late_imports_in_gp,
    "import circles": circles,
    f"public functions with more than {MOST_PARAMETERS} parameters": functions_with_many_parameters,
    "probes of a response or a reference": attribute_probes,
}


def test_reference_has_few_members():
    members = members_of_reference()
    assert len(members) <= MOST_MEMBERS_OF_A_REFERENCE, f"{len(members)}: {', '.join(members)}"


@pytest.mark.parametrize("what", NONE_ALLOWED)
def test_there_are_none(what):
    found = NONE_ALLOWED[what]()
    assert not found, f"{len(found)} {what}:\n" + "\n".join(found)


def report():
    members = members_of_reference()
    print(f"public members of Reference: {len(members)} ({', '.join(members)})")
    for what, find in NONE_ALLOWED.items():
        found = find()
        print(f"{what}: {len(found)}", *found, sep="\n  ")
    print("lines of src/:", sum(len(path.read_text().splitlines()) for path in SRC.rglob("*") if is_source(path)))


def is_source(path):
    return path.is_file() and "__pycache__" not in path.parts


if __name__ == "__main__":
    report()
