"""The examples run as they are."""

import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def run(monkeypatch):
    """Run a script with arguments, as Python does: modules beside it can be imported, and figures are not shown."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.delitem(sys.modules, "simulators", raising=False)  # that of another problem

    def run(script, *arguments):
        monkeypatch.syspath_prepend(script.parent)
        monkeypatch.setattr(sys, "argv", [str(script), *map(str, arguments)])
        runpy.run_path(str(script), run_name="__main__")

    yield run
    sys.modules.pop("simulators", None)  # that of the epidemic
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_the_epidemic_as_a_script(run, capsys):
    run(EXAMPLES / "epidemic" / "script.py", 1.003)
    shown = capsys.readouterr().out
    assert "peak: 7" in shown  # the truth is 70.5
    assert "time: 0." in shown  # the truth is 0.86
    assert "equations" in shown


@pytest.mark.filterwarnings("default")
def test_the_evidence(run, capsys):
    run(EXAMPLES / "evidence.py", "--budget", 1.5)
    assert "log of the integral: " in capsys.readouterr().out


@pytest.mark.filterwarnings("default")
def test_the_ball_draws_its_picture(run, tmp_path):
    pytest.importorskip("matplotlib")
    run(EXAMPLES / "ball.py", tmp_path / "ball.png", "--seeds", 1, "--budget", 2.05)
    assert (tmp_path / "ball.png").read_bytes().startswith(b"\x89PNG")
