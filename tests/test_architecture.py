"""Every file imports only from files above it, and ``import amsbq`` needs nothing but NumPy and SciPy."""

import ast
import subprocess
import sys
from pathlib import Path

import amsbq

EXTRAS = {"rich", "pandas", "matplotlib", "shtab", "distributed", "threadpoolctl", "plotly"}
SOURCE = Path(amsbq.__file__).parent
ORDER = [
    "checks",
    "threads",
    "linalg",
    "pairs",
    "panels",
    "measures",
    "kernels",
    "embeddings1d",
    "embeddings",
    "coregion",
    "data",
    "model",
    "priors",
    "loadings",
    "hyper",
    "models",
    "ascent",
    "fit",
    "estimates",
    "beliefs",
    "knowledge",
    "costs",
    "ensemble",
    "acquisition",
    "optimize",
    "sources",
    "records",
    "external",
    "ledger",
    "failures",
    "integrator",
    "diagnostics",
    "stopping",
    "result",
    "progress",
    "journal",
    "summary",
    "replay",
    "recall",
    "runner",
    "baselines",
    "executors",
    "views",
    "plots",
    "charts",
    "report",
    "config",
    "__init__",
    "experiments.__init__",
    "experiments.study",
    "experiments.drawing",
    "experiments.intuition",
    "experiments.forrester",
    "experiments.wiggly",
    "experiments.epidemic",
    "experiments.master_equation",
    "experiments.gaussians",
    "experiments.cube",
    "experiments.demonstration",
    "experiments.reproduce",
    "cli",
    "__main__",
]


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        yield ".".join(path.relative_to(SOURCE).with_suffix("").parts), ast.parse(path.read_text())


def imports(name, tree):
    """Modules of the package that a module imports, and the names of the packages outside of it."""
    package = name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (("outside", alias.name.split(".")[0]) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield "outside", node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                whole = ".".join([*base, alias.name])
                known = [
                    m for m in (whole, f"{whole}.__init__", ".".join(base), ".".join([*base, "__init__"])) if m in ORDER
                ]
                yield "inside", known[0]


def test_every_module_has_its_place():
    assert sorted(name for name, _ in modules()) == sorted(ORDER)


def test_imports_point_upwards():
    for name, tree in modules():
        for kind, imported in imports(name, tree):
            if kind == "inside":
                assert ORDER.index(imported) < ORDER.index(name), f"{name} imports {imported}, which is below it"


def test_only_numpy_and_scipy_are_needed():
    """Extras are imported where they are used."""
    allowed = {"numpy", "scipy", *sys.stdlib_module_names}
    for name, tree in modules():
        outside = {imported for kind, imported in imports(name, tree) if kind == "outside"}
        assert outside <= allowed | EXTRAS, f"{name} imports {outside - allowed - EXTRAS}"
        top = ast.Module([node for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))], [])
        at_once = {imported for kind, imported in imports(name, top) if kind == "outside"}
        assert at_once <= allowed, f"{name} imports {at_once - allowed} at once"


def test_import_brings_in_nothing_else():
    code = "import sys, amsbq; print(*{m.split('.')[0] for m in sys.modules})"
    loaded = set(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )
    baseline = (
        "import sys, numpy, scipy.linalg, scipy.stats, scipy.special, scipy.optimize; "
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    known = set(
        subprocess.run([sys.executable, "-c", baseline], capture_output=True, text=True, check=True).stdout.split()
    )
    assert loaded - known - set(sys.stdlib_module_names) <= {"amsbq"}
