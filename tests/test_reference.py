"""The reference lists every argument of `integrate`, under the names that problem files and the command line have."""

import inspect
import re
from pathlib import Path

import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.problems import schema

PAGE = (Path(__file__).parent.parent / "docs" / "reference" / "running.md").read_text()
ROWS = re.findall(r"^\| (\[`[^|]*) \| ([^|]*) \| ([^|]*)\|$", PAGE.partition("::: amsbq.integrate")[0], re.MULTILINE)
NAMED = {name: elsewhere.strip() for names, _, elsewhere in ROWS for name in re.findall(r"`(\w+)`", names)}


def test_every_argument_is_in_one_of_the_groups():
    assert sorted(NAMED) == sorted(inspect.signature(amsbq.integrate).parameters)


def test_every_argument_is_linked_to_its_description():
    """The site builds with strict anchors: `tests/test_docs.py`."""
    links = dict(re.findall(r"\[`(\w+)`\]\(#amsbq\.(integrate|Integrator)\(\1\)\)", PAGE))
    assert sorted(links) == sorted(NAMED)
    for name, of in links.items():
        described = re.search(rf"\n    [\w, ]*\b{name}\b[\w, ]*(?: :|\n)[^\n]*\n(.*)", getattr(amsbq, of).__doc__)
        assert described, name
        assert described[1].strip() != "See `Integrator`.", name


def test_problem_files_have_keys_of_the_same_names(capsys):
    same = {name for name, elsewhere in NAMED.items() if not elsewhere or elsewhere.startswith("also")}
    assert same <= set(schema.PROBLEM)
    with pytest.raises(SystemExit):
        main(["run", "--help"])
    shown = capsys.readouterr().out
    for option in re.findall(r"`(--[a-z-]+)`", " ".join(NAMED.values())):
        assert f"{option} " in shown


def test_sources_of_problem_files_have_the_arguments_of_a_source():
    arguments = set(inspect.signature(amsbq.Source).parameters) - {"function"}  # python, command, umbridge or detached
    assert arguments <= set(schema.SOURCE)
