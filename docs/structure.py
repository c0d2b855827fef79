"""The structure of the code, from its module docstrings and imports: ``python docs/structure.py`` updates CONTRIBUTING.

Packages are listed from the ground up, and so are the files of each: a file imports only from what stands above it.
"""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "amsbq"
#: floors of the house: each imports only from those above it
FLOORS = [
    ("common", "processes"),
    ("measures",),
    ("gp",),
    ("inference",),
    ("posterior",),
    ("design",),
    ("certificates",),
    ("simulators",),
    ("results",),
    ("execution",),
    ("visualization",),
    ("api", "certification", "estimation"),
    ("acquisition", "external", "gest", "stopping"),
    ("plots", "report"),
    ("baselines",),
    ("public",),
    ("__init__",),
    ("experiments",),
    ("problems",),
    ("cli",),
    ("__main__",),
]
START, END = "<!-- structure: made by docs/structure.py -->\n```text\n", "```\n<!-- end of structure -->"


def module_paths() -> dict[str, Path]:
    """Return the dotted name of every module below the package, and its file."""
    paths = sorted(SOURCE.rglob("*.py"))
    return {".".join(path.relative_to(SOURCE).with_suffix("").parts): path for path in paths}


MODULES = module_paths()


def tree_of(name: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def imports(name: str, tree: ast.AST) -> tuple[set[str], set[str]]:
    """Return the modules of this package that a module imports, and the packages outside of it."""
    package, inside, outside = name.split(".")[:-1], set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            outside |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            outside.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            inside |= {_module([*base, alias.name]) or _module(base) or "" for alias in node.names}
    return inside - {name}, outside


def _module(parts: list[str]) -> str | None:
    name = ".".join(parts)
    return next((module for module in (name, f"{name}.__init__".lstrip(".")) if module in MODULES), None)


def floor(name: str) -> int:
    """Return the number of the floor that a module is on."""
    return next(i for i, names in enumerate(FLOORS) if name.split(".")[0] in names)


def ordered(names: list[str]) -> list[str]:
    """Return modules in an order in which each imports only from those before it, alphabetical where that is free."""
    graph = graphlib.TopologicalSorter({name: imports(name, tree_of(name))[0] & set(names) for name in sorted(names)})
    graph.prepare()
    out: list[str] = []
    while graph.is_active():
        ready = sorted(graph.get_ready())
        out += ready
        graph.done(*ready)
    return out


def picture() -> str:
    """Return the structure as text: a line for each package and each file, with the first line of its docstring."""
    lines = ["amsbq/"]
    for names in FLOORS:
        for name in names:
            if f"{name}.__init__" in MODULES:
                lines.append(_line(1, f"{name}/", f"{name}.__init__"))
                files = [module for module in MODULES if module.startswith(f"{name}.") and module != f"{name}.__init__"]
                lines += [_line(2, f"{module.split('.')[1]}.py", module) for module in ordered(files)]
            else:
                lines.append(_line(1, f"{name}.py", name))
    return "\n".join(lines) + "\n"


def _line(depth: int, label: str, name: str) -> str:
    said = (ast.get_docstring(tree_of(name)) or "").split("\n")[0].rstrip(".")
    return f"{'  ' * depth}{label:{24 - 2 * depth}} {said}"


def updated(text: str) -> str:
    """Return the text of CONTRIBUTING with today's structure in it."""
    before, rest = text.split(START)
    return f"{before}{START}{picture()}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    page = ROOT / "CONTRIBUTING.md"
    page.write_text(updated(page.read_text(encoding="utf-8")), encoding="utf-8")
