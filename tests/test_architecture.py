"""Packages import one way, rooms stay small, and ``import amsbq`` needs nothing but NumPy, SciPy and threadpoolctl."""

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

import amsbq

SOURCE = Path(amsbq.__file__).parent
EXTRAS = {"rich", "pandas", "matplotlib", "shtab", "distributed", "plotly", "jinja2", "loky"}
#: a floor imports only from those above it
FLOORS = [
    ("validation", "serialisation"),
    ("measures",),
    ("gp",),
    ("inference",),
    ("design",),
    ("results",),
    ("execution",),
    ("api",),
    ("acquisition", "stopping", "external"),
    ("visualization",),
    ("plots", "report"),
    ("baselines",),
    ("__init__",),
    ("experiments",),
    ("cli",),
    ("__main__",),
]
MOST_ROOMS, MOST_LINES, LONG, FEW = 12, 400, 300, 12


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        yield ".".join(path.relative_to(SOURCE).with_suffix("").parts), path


MODULES = dict(modules())


def resolved(name):
    """The module of that dotted name inside of the package, or None if it is none."""
    return next((m for m in (name, f"{name}.__init__" if name else "__init__") if m in MODULES), None)


def imports(name, tree):
    """Names of modules of the package that a module imports, and of packages outside of it."""
    package = name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (("outside", alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield "outside", node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                found = resolved(".".join([*base, alias.name])) or resolved(".".join(base))
                assert found is not None, f"{name} imports {node.module}"
                yield "inside", found


def tree_of(name):
    return ast.parse(MODULES[name].read_text())


def floor(name):
    top = name.split(".")[0]
    return next(i for i, names in enumerate(FLOORS) if top in names)


def inner_imports(name):
    return {imported for kind, imported in imports(name, tree_of(name)) if kind == "inside"} - {name}


def test_every_module_is_on_a_floor():
    for name in MODULES:
        assert any(name.split(".")[0] in names for names in FLOORS), name


def test_packages_import_one_way():
    for name in MODULES:
        for imported in inner_imports(name):
            assert floor(imported) <= floor(name), f"{name} imports {imported}, which is below it"


def test_there_are_no_circles():
    graphlib.TopologicalSorter({name: inner_imports(name) for name in MODULES}).prepare()


def test_packages_have_few_rooms_and_rooms_few_lines():
    sizes = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: size for name, size in sizes.items() if size > MOST_LINES} == {}
    assert len([name for name, size in sizes.items() if size > LONG]) <= FEW
    packages = [name.split(".")[0] for name in MODULES if "." in name and not name.endswith("__init__")]
    assert {package: packages.count(package) for package in packages if packages.count(package) > MOST_ROOMS} == {}


@pytest.mark.parametrize("package", sorted({name.split(".")[0] for name in MODULES if "." in name}))
def test_packages_say_what_happens_there(package):
    text = ast.get_docstring(tree_of(f"{package}.__init__"))
    assert len(text.split(". ")) + text.count(".\n") >= 3


def test_only_numpy_scipy_and_threadpoolctl_are_needed():
    """Extras are imported where they are used."""
    allowed = {"numpy", "scipy", "threadpoolctl", *sys.stdlib_module_names}
    for name in MODULES:
        tree = tree_of(name)
        outside = {imported for kind, imported in imports(name, tree) if kind == "outside"}
        assert outside <= allowed | EXTRAS, f"{name} imports {outside - allowed - EXTRAS}"
        top = ast.Module([node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], [])
        at_once = {imported for kind, imported in imports(name, top) if kind == "outside"}
        assert at_once <= allowed, f"{name} imports {at_once - allowed} at once"


def loaded_by(code):
    command = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_import_brings_in_nothing_else():
    loaded = {module.split(".")[0] for module in loaded_by("import amsbq")}
    needed = "import numpy, scipy.linalg, scipy.stats, scipy.special, scipy.optimize, threadpoolctl"
    known = {module.split(".")[0] for module in loaded_by(needed)}
    assert loaded - known - set(sys.stdlib_module_names) <= {"amsbq"}


def test_submodules_are_loaded_on_first_use():
    lazy = {f"amsbq.{name}" for name in ("plots", "baselines", "report", "experiments", "cli", "visualization")}
    assert not lazy & loaded_by("import amsbq")
    assert lazy - {"amsbq.experiments", "amsbq.cli"} <= loaded_by(
        "import amsbq; amsbq.plots, amsbq.baselines, amsbq.report, amsbq.external, amsbq.stopping"
    )
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        amsbq.nonsense  # noqa: B018
