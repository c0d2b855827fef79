"""Comments on pages that name the tests of a promise: ``<!-- tests/cli/test_cli.py::test_a_run, ::test_status -->``."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMENT = re.compile(r"<!--\s*((?:tests/|::).*?)-->", re.DOTALL)
NAMED = re.compile(r"(tests/[\w/]+\.py)?::(\w+)")


def named_in(text):
    """The tests that the comments of a page name, as (file, function); a name without a file is in the one before."""
    named = []
    for comment in COMMENT.findall(text):
        parts = [NAMED.fullmatch(part) for part in re.split(r"[,\s]+", comment.strip())]
        assert all(parts), f"not a list of tests: {comment}"
        assert parts[0][1], f"no file: {comment}"
        file = ""
        for part in parts:
            file = part[1] or file
            named.append((file, part[2]))
    return named


@cache
def functions_in(file):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_test_that_a_page_names_exists(page):
    named = named_in(page.read_text(encoding="utf-8"))
    assert [(file, name) for file, name in named if name not in functions_in(file)] == []


def test_the_form_of_the_comments():
    text = (
        "Promised.\n<!-- tests/cli/test_cli.py::test_a_run, ::test_status\n  tests/test_docs.py::test_b -->\n<!-- -->"
    )
    assert named_in(text) == [
        ("tests/cli/test_cli.py", "test_a_run"),
        ("tests/cli/test_cli.py", "test_status"),
        ("tests/test_docs.py", "test_b"),
    ]
    for wrong in ("<!-- tests/cli/test_cli.py -->", "<!-- ::test_a_run -->", "<!-- tests/a.py::test_a and more -->"):
        with pytest.raises(AssertionError):
            named_in(wrong)
