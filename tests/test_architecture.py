"""Packages import one way, nobody asks for kinds of posteriors, and ``import amsbq`` needs few packages."""

import ast
import graphlib
import importlib
import re
import subprocess
import sys
from collections import Counter
from types import FunctionType

import pytest

import amsbq
from amsbq.cli.parser import build_parsers
from docs.structure import END, FLOORS, MODULES, ROOT, floor, imports, picture, tree_of, updated

EXTRAS = {"rich", "pandas", "matplotlib", "shtab", "distributed", "plotly", "jinja2", "loky", "IPython", "gest_api"}
PRIVATE = re.compile("_[a-z]")
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


def test_nothing_above_the_posterior_asks_what_kind_it_is():
    """Features compose because there is one posterior and one learner: nobody looks at their types."""
    below = floor("posterior.posterior")
    inner = {name for name in MODULES if name.split(".")[0] == "posterior"}
    kinds = {node.name for name in inner for node in tree_of(name).body if isinstance(node, ast.ClassDef)} - {
        "Estimate",
        "Estimates",
        "Exceedance",
        "Quantile",
    }  # what users give and get
    for name in (name for name in MODULES if floor(name) > below):
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "hasattr", "getattr"):
                named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                assert not named & (kinds | {"posterior", "learner"}), f"{name}, line {node.lineno}"


def test_only_where_models_are_made_is_asked_what_was_given():
    """A process with given hyperparameters is a model like others: it has one particle, and states this itself."""
    asked = {
        name
        for name in MODULES
        for node in ast.walk(tree_of(name))
        if isinstance(node, ast.Call)
        and getattr(node.func, "id", "") == "isinstance"
        and any(getattr(each, "id", "") == "MultiSourceGP" for each in ast.walk(node))
    }
    assert asked == {"inference.structures"}


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_what_happens_there(package):
    text = ast.get_docstring(tree_of(f"{package}.__init__"))
    assert len(re.findall(r"[.:](?=\s|$)", text)) >= 3


def test_contributing_shows_the_structure():
    """If this fails, ``python docs/structure.py`` fixes it."""
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
    loaded = {module.split(".")[0] for module in loaded_by("from amsbq import *")}
    needed = "import numpy, scipy.linalg, scipy.stats, scipy.special, scipy.optimize, threadpoolctl, multiprocessing"
    known = {module.split(".")[0] for module in loaded_by(needed)}
    assert loaded - known - set(sys.stdlib_module_names) <= {"amsbq"}


def test_submodules_are_loaded_on_first_use():
    lazy = {f"amsbq.{name}" for name in ("plots", "baselines", "report", "experiments", "cli", "visualization")}
    assert not lazy & loaded_by("from amsbq import *")
    assert lazy - {"amsbq.experiments", "amsbq.cli"} <= loaded_by(
        "import amsbq; amsbq.plots, amsbq.baselines, amsbq.report, amsbq.external, amsbq.stopping"
    )
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        amsbq.nonsense  # noqa: B018


def test_public_names_are_imported_when_one_of_them_is_used():
    assert not {"numpy", "amsbq.public"} & loaded_by("import amsbq; dir(amsbq)")
    assert {"numpy", "amsbq.public"} <= loaded_by("import amsbq; amsbq.integrate")
    assert amsbq.__all__ == importlib.import_module("amsbq.public").__all__
    assert set(amsbq.__all__) < set(dir(amsbq))


def test_the_command_line_imports_what_a_command_needs_when_it_is_called():
    """The help is there at once: it needs neither SciPy nor the engine."""
    loaded = loaded_by("from amsbq.cli.parser import build_parsers; import amsbq.cli.main; build_parsers()")
    assert not {"scipy", "amsbq.public", "amsbq.design.decisions", "amsbq.execution.runner"} & loaded
    commands = [parser.get_default("command") for name, parser in build_parsers().items() if name != "amsbq"]
    assert len(commands) > 15
    assert all(callable(command.function) for command in commands)


def test_the_engine_starts_without_distributions_and_optimisers():
    assert not {"scipy.stats", "scipy.spatial", "scipy.optimize"} & loaded_by("import amsbq.cli.viewing")


def test_public_names_are_those_that_a_user_types():
    """What public calls take, return and raise is there; aliases of types are names of their modules."""
    for name in amsbq.__all__:
        assert getattr(amsbq, name) is not None
    for name in ("Finding", "JournalError", "Measure", "Kernel"):
        assert name in amsbq.__all__, name
    modules = {"acquisition", "baselines", "external", "gest", "plots", "report", "stopping", "__version__"}
    assert set(dir(amsbq)) == {*amsbq.__all__, *modules}
    aliases = [name for name in amsbq.__all__ if not isinstance(getattr(amsbq, name), type | FunctionType)]
    assert aliases == ["acquisition"]


def test_classes_have_names_of_their_own():
    """Who looks for a public class finds one of that name; `amsbq.Posterior` is that of a single process."""
    found = Counter(node.name for name in MODULES for node in tree_of(name).body if isinstance(node, ast.ClassDef))
    assert {name for name in amsbq.__all__ if found[name] > 1} <= {"Posterior"}
    assert found["Problem"] == 1


def test_no_package_uses_what_another_keeps_to_itself():
    """Names with an underscore are used by their object, or within their package."""
    own = {}
    for name in MODULES:
        for node in ast.walk(tree_of(name)):
            named = [getattr(each, "name", "") for each in node.body] if isinstance(node, ast.ClassDef) else []
            named += [node.attr] if isinstance(node, ast.Attribute) and is_self(node.value) else []
            own.setdefault(name.split(".")[0], set()).update(named)
    ours = set().union(*own.values())
    for name in MODULES:
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.Attribute) and PRIVATE.match(node.attr) and not is_self(node.value):
                assert node.attr not in ours - own[name.split(".")[0]], f"{name}, line {node.lineno}: {node.attr}"
            if isinstance(node, ast.ImportFrom):
                assert not [alias.name for alias in node.names if PRIVATE.match(alias.name)], name


def is_self(node):
    return getattr(node, "id", "") in ("self", "cls") or getattr(getattr(node, "func", None), "id", "") == "super"
