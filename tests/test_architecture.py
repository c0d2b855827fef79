"""Packages import one way, files stay small, and ``import amsbq`` needs nothing but NumPy, SciPy and threadpoolctl."""

import ast
import graphlib
import re
import subprocess
import sys

import pytest

import amsbq
from docs.structure import END, FLOORS, MODULES, ROOT, floor, imports, picture, tree_of, updated

EXTRAS = {"rich", "pandas", "matplotlib", "shtab", "distributed", "plotly", "jinja2", "loky", "IPython"}
MOST_FILES, MOST_LINES = 12, 400
PACKAGES = sorted({name.split(".")[0] for name in MODULES if "." in name})


def inside(name):
    return imports(name, tree_of(name))[0]


def test_every_module_is_on_a_floor():
    for name in MODULES:
        assert any(name.split(".")[0] in names for names in FLOORS), name


def test_packages_import_one_way():
    for name in MODULES:
        for imported in inside(name):
            assert floor(imported) <= floor(name), f"{name} imports {imported}, which is below it"


def test_there_are_no_circles():
    graphlib.TopologicalSorter({name: inside(name) for name in MODULES}).prepare()


def test_packages_have_few_files_and_files_few_lines():
    sizes = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: size for name, size in sizes.items() if size > MOST_LINES} == {}
    files = [name.split(".")[0] for name in MODULES if "." in name and not name.endswith("__init__")]
    assert {package: files.count(package) for package in files if files.count(package) > MOST_FILES} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_what_happens_there(package):
    text = ast.get_docstring(tree_of(f"{package}.__init__"))
    assert len(re.findall(r"[.:](?=\s|$)", text)) >= 3


def test_contributing_shows_the_structure():
    """If this fails, ``python docs/structure.py`` mends it."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert text == updated(text)
    assert picture().count("\n") == len(MODULES) + 1 + len(
        [name for name in PACKAGES if f"{name}.__init__" not in MODULES]
    )
    assert END in text


def test_recipes_name_files_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text().split("## The structure")[0]
    for path in re.findall(r"`((?:[a-z_0-9]+/)+[a-z_0-9]*(?:\.py)?)`", text):
        assert (ROOT / path).exists() or (ROOT / "src" / "amsbq" / path).exists(), path


def test_only_numpy_scipy_and_threadpoolctl_are_needed():
    """Extras are imported where they are used."""
    allowed = {"numpy", "scipy", "threadpoolctl", *sys.stdlib_module_names}
    for name in MODULES:
        tree = tree_of(name)
        _, outside = imports(name, tree)
        assert outside <= allowed | EXTRAS, f"{name} imports {outside - allowed - EXTRAS}"
        top = ast.Module([node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], [])
        _, at_once = imports(name, top)
        assert at_once <= allowed, f"{name} imports {at_once - allowed} at once"


def loaded_by(code):
    command = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_import_brings_in_nothing_else():
    loaded = {module.split(".")[0] for module in loaded_by("import amsbq")}
    needed = "import numpy, scipy.linalg, scipy.stats, scipy.special, scipy.optimize, threadpoolctl, multiprocessing"
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


def test_what_public_calls_return_and_raise_is_exported():
    """The types in the signatures of the public names are public names themselves."""
    for name in amsbq.__all__:
        assert getattr(amsbq, name) is not None
    for name in ("Choice", "Finding", "JournalError", "Measure", "Kernel", "Status", "StopReason", "StopRule"):
        assert name in amsbq.__all__, name
