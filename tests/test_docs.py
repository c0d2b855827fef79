"""The documentation: its code runs, its figures are drawn, and the site builds and loads nothing from the network."""

import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import amsbq
from amsbq.problems.problem_file import load_problem
from docs import execute

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if execute.has_code(page.read_text(encoding="utf-8")))
#: anything in HTML, CSS or SVG that makes a browser load something from another server
LOADS = re.compile(
    r"""<(?:script|img|iframe|source|audio|video|embed|object)\b[^>]*?\b(?:src|data|srcset)\s*=\s*["']?(?:https?:)?//[^\s>]*"""
    r"""|<link\b(?=[^>]*\brel=["']?[^"'>]*(?:stylesheet|preconnect|preload|icon))[^>]*\bhref=["']?(?:https?:)?//[^\s>]*"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//[^\s>]*|url\(["']?(?:https?:)?//[^\s>]*""",
    re.I,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_runs(page, tmp_path):
    pytest.importorskip("matplotlib")
    missing = execute.missing(page.read_text(encoding="utf-8"))
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    execute.run(page, tmp_path)


def test_every_figure_is_drawn_once():
    """A figure is drawn by the page that shows it or, if that has no code, by another page in the same folder.

    Those of the arena are drawn by its report.
    """
    drawn = [page.with_name(name) for page in PAGES for name in execute.figures(page.read_text(encoding="utf-8"))]
    assert len(drawn) == len(set(drawn))
    pages = [page for page in DOCS.rglob("*.md") if page.parent != DOCS / "arena"]
    shown = {page.with_name(n) for page in pages for n in execute.figures(page.read_text(encoding="utf-8"))}
    assert shown == set(drawn)


def test_a_page_that_has_not_changed_is_not_run_again(tmp_path, monkeypatch):
    """The second build of the site takes outputs and figures from the cache; what has failed is not there."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("latex2mathml")
    from docs import hooks

    page, runs = tmp_path / "page.md", []
    page.write_text("![waves](waves.svg)\n")

    def run(uri, page):
        runs.append(uri)
        folder = Path(hooks._folder.name, uri)
        folder.mkdir(parents=True)
        (folder / "waves.svg").write_text("<svg/>")
        if len(runs) == 1:
            raise hooks.PluginError("failed")
        (folder / execute.OUTPUTS).write_text('["42"]')
        return ["42"]

    monkeypatch.setattr(hooks, "_run", run)
    for build in ("first", "second", "third"):
        monkeypatch.setattr(hooks, "_folder", SimpleNamespace(name=str(tmp_path / build)))
        if build == "first":
            with pytest.raises(hooks.PluginError):
                hooks._cached("page.md", page, tmp_path / "cache")
            continue
        assert hooks._cached("page.md", page, tmp_path / "cache") == ["42"]
        assert (tmp_path / build / "page.md" / "waves.svg").read_text() == "<svg/>"
    assert len(runs) == 2


def test_the_problem_file_of_the_reference_is_valid(tmp_path):
    text = (DOCS / "reference" / "problem-files.md").read_text(encoding="utf-8")
    [block] = [block for block in execute.blocks(text) if block.file == "problem.toml"]
    (tmp_path / "problem.toml").write_text(block.code)
    (tmp_path / "simulators.py").write_text("def stochastic(x):\n    return 1.0\n\n\nformula = stochastic\n")
    for name in ("coarse", "solver"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "deck.in").write_text("{rate}\n")
    (tmp_path / "mesh.dat").touch()
    problem = load_problem(tmp_path / "problem.toml")
    assert problem.names == ["rate", "dose"]
    assert len(problem.sources) == 5


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("latex2mathml")
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "AMSBQ_DOCS_RUN": "0", "NO_MKDOCS_2_WARNING": "1"}  # another test runs the code
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


def test_the_site_builds_and_every_page_is_there(site):
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS).with_suffix(".html")).exists()
    assert not list(site.rglob("*.py"))


def test_the_reference_describes_every_public_name(site):
    text = "".join(page.read_text(encoding="utf-8") for page in (site / "reference").glob("*.html"))
    described = [pkgutil.resolve_name(name) for name in re.findall(r'<h\d id="(amsbq\.[\w.]+)"', text)]
    modules = [amsbq, amsbq.acquisition, amsbq.baselines, amsbq.external, amsbq.plots, amsbq.report, amsbq.stopping]
    public = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in module.__all__}
    code = {name: thing for name, thing in public.items() if inspect.isclass(thing) or inspect.isfunction(thing)}
    assert len(code) > 40
    assert [name for name, thing in code.items() if not any(thing is other for other in described)] == []


def test_nothing_is_loaded_from_the_network(site):
    found = {
        str(file.relative_to(site)): LOADS.findall(file.read_text(encoding="utf-8"))
        for kind in ("*.html", "*.css", "*.svg")
        for file in site.rglob(kind)
    }
    assert {name: loads for name, loads in found.items() if loads} == {}


def test_the_pattern_of_network_loads():
    assert LOADS.search('<script src="https://example.org/x.js">')
    assert LOADS.search('<link rel="stylesheet" href="//example.org/x.css">')
    assert LOADS.search("@import url('http://example.org/x.css')")
    assert not LOADS.search('<a href="https://example.org">')
    assert not LOADS.search('<svg xmlns="http://www.w3.org/2000/svg">')


def test_the_site_has_mathml_and_command_line_help(site):
    mathematics = (site / "explanation" / "mathematics.html").read_text(encoding="utf-8")
    assert "<math" in mathematics
    assert "arithmatex" not in mathematics
    commands = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    assert "usage: amsbq resume" in commands


def test_comments_that_name_tests_are_not_on_the_site(site):
    assert "tests/execution/test_journal.py::" in (DOCS / "how-to" / "resume.md").read_text(encoding="utf-8")
    assert [file.name for file in site.rglob("*.html") if "::test_" in file.read_text(encoding="utf-8")] == []
