"""Fixtures of the tests of the command line."""

import sys

import pytest

from amsbq.cli.main import main


@pytest.fixture
def typed(capsys):
    """Run the command line in this process; what it printed is returned, after its exit code was checked."""

    def run(*arguments, code=0):
        assert main([str(argument) for argument in arguments]) == code
        return capsys.readouterr()

    return run


@pytest.fixture(autouse=True)
def nothing_imported_from_problems():
    """Forget the modules next to problem files after a test."""
    before = list(sys.path)
    yield
    for name in ("my_simulators", "simulators"):
        sys.modules.pop(name, None)
    sys.path[:] = before
