"""The examples run as they are."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.linalg import expm

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def run(monkeypatch):
    """Run a script with arguments, as Python does: modules next to it can be imported, and figures are not shown."""
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


def test_the_epidemic_as_a_script(run, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # for its picture
    run(EXAMPLES / "epidemic" / "script.py", 1.003)
    shown = capsys.readouterr().out
    assert "largest number of ill people: 7" in shown  # the truth is 70.5
    assert "time when most are ill:       0." in shown  # the truth is 0.86
    assert "equations" in shown


@pytest.mark.filterwarnings("default")
def test_the_evidence(run, capsys):
    run(EXAMPLES / "evidence.py", "--budget", 1.5)
    assert "log of the integral: " in capsys.readouterr().out


@pytest.mark.filterwarnings("default")
def test_the_limit_of_a_boundary_value_problem(run, capsys):
    """The truth is by quadrature, the finest grid is as published, and the interval holds the truth."""
    module = runpy.run_path(str(EXAMPLES / "levels.py"))

    def exact(a):
        moments = [quad(lambda x, k: x**k / (1 + a * x), 0, 1, (k,), epsabs=1e-12)[0] for k in range(3)]
        return -50 * (moments[2] - moments[1] ** 2 / moments[0])

    assert quad(exact, 0, 1)[0] == pytest.approx(module["LIMIT"], abs=1e-6)
    assert quad(lambda a: module["solve"](a, 1.0, 32), 0, 1)[0] == pytest.approx(-3.413622, abs=1e-6)
    run(EXAMPLES / "levels.py", "--budget", 10)
    shown = capsys.readouterr().out
    exponent = re.search(r"errors shrink with cells: exponent (\S+) \(", shown)
    assert float(exponent.group(1)) == pytest.approx(2.0, abs=0.1)
    low, high = map(float, re.search(r"95 % between (\S+) and (\S+)", shown).groups())
    assert low < module["LIMIT"] < high


@pytest.mark.filterwarnings("default")
def test_heat_in_space_and_time(run, capsys, tmp_path):
    """The truth is by quadrature, many cells and steps are near it, and the interval holds it."""
    pytest.importorskip("matplotlib")
    module = runpy.run_path(str(EXAMPLES / "heat.py"))

    def exact(k, a):
        return 2 / np.pi * (np.exp(-k * np.pi**2 * 0.1) + a / 3 * np.exp(-k * 9 * np.pi**2 * 0.1))

    truth = quad(lambda k: exact(k, 0.5), 0.5, 1.5)[0]  # linear in a, which is 0.5 on the average
    assert module["limit"]() == pytest.approx(truth, rel=1e-10)
    assert module["solve"](0.7, 0.4, 200, 4000) == pytest.approx(exact(0.7, 0.4), rel=1e-3)
    run(EXAMPLES / "heat.py", "--budget", 2.5, "--figure", tmp_path / "levels.png")
    shown = capsys.readouterr().out
    low, high = map(float, re.search(r"95 % between (\S+) and (\S+)", shown).groups())
    assert low < truth < high
    assert high - low < 0.05 * truth
    assert "errors shrink with steps: exponent" in shown
    assert (tmp_path / "levels.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.filterwarnings("default")
def test_averages_over_particles(run, capsys):
    """The truth is that of a linear system of equations, the simulator scatters around it, and so does the answer."""
    module = runpy.run_path(str(EXAMPLES / "particles.py"))
    for thickness, scattered in ((0.6, 0.3), (2.0, 0.8)):
        lost, turned = 1 - scattered / 2, scattered / 2
        crossed = expm(thickness * np.array([[-lost, turned], [-turned, lost]]))  # of the fluxes to both sides
        truth = crossed[0, 0] - crossed[0, 1] * crossed[1, 0] / crossed[1, 1]  # none enters at the right
        assert module["exact"](thickness, scattered) == pytest.approx(truth, rel=1e-12)
        found = module["Wall"](1)(thickness, scattered, 100_000)
        assert abs(found - truth) < 4 * (truth * (1 - truth) / 100_000) ** 0.5
    run(EXAMPLES / "particles.py", "--budget", 3)
    shown = capsys.readouterr().out
    low, high = map(float, re.search(r"95 % between (\S+) and (\S+)", shown).groups())
    assert low < float(re.search(r"the truth is (\S+)", shown).group(1)) < high
    assert high - low < 0.2


@pytest.mark.filterwarnings("default")
def test_the_ball_draws_its_picture(run, tmp_path):
    pytest.importorskip("matplotlib")
    run(EXAMPLES / "ball.py", tmp_path / "ball.png", "--budget", 3.1)
    assert (tmp_path / "ball.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.filterwarnings("default")
def test_a_pool_of_servers(run, capsys):
    """Two real servers share the evaluations, and the model on them has the truth that the example names."""
    pytest.importorskip("umbridge")
    module = runpy.run_path(str(EXAMPLES / "pool.py"))
    assert module["deflection"](1.0, 1.0, 256) == pytest.approx(1.0, rel=1e-4)  # of a beam that is the same everywhere
    assert module["deflection"](0.5, 2.0, 256) == pytest.approx((2 + 0.5) / 2, rel=1e-4)
    run(EXAMPLES / "pool.py", "--budget", 3)
    shown = capsys.readouterr().out
    low, high = map(float, re.search(r"95 % between (\S+) and (\S+)", shown).groups())
    assert low < np.exp(0.02) < high
    busy = [float(share) for share in re.findall(r"was busy for (\S+) of", shown)]
    assert len(busy) == 2
    assert min(busy) > 0
