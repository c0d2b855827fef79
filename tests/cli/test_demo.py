import io
import re
import subprocess
import sys
from contextlib import redirect_stdout

import numpy as np
import pytest
from scipy import integrate

import amsbq
from amsbq.cli.main import main
from amsbq.experiments import forrester


def test_true_integral():
    expected = integrate.quad(lambda x: float(forrester.primary(np.array(x))), 0, 1, epsabs=0, epsrel=1e-13)[0]
    np.testing.assert_allclose(forrester.true_integral(), expected, rtol=1e-12)


def test_sources_are_the_papers():
    x = np.array([0.2, 0.7])
    np.testing.assert_allclose(forrester.primary(x), (6 * x - 2) ** 2 * np.sin(12 * x - 4))
    np.testing.assert_allclose(forrester.secondary(x), forrester.primary(x) / 2 + 10 * x)


@pytest.fixture(scope="module")
def printed():
    """The text that the demo prints."""
    with redirect_stdout(io.StringIO()) as out:
        assert main(["demo"]) == 0
    return out.getvalue()


def test_the_demo_prints_the_estimate_beside_the_truth(printed):
    mean, variance = forrester.starting_posterior().integral()
    assert f"{mean:.3f} ± {variance**0.5:.3f}" in printed
    assert re.search(rf"true value +{forrester.true_integral():.3f}", printed)


def test_the_demo_ends_with_a_success(printed):
    """The run's error is small compared with that of Monte Carlo at the same cost."""
    last = printed.split("true value")[0].strip().splitlines()[-1]
    made = [int(n) for n in re.match(r"(\d+) of f₁ and (\d+) of f₂", last).groups()]
    assert 5 <= made[0] + 0.05 * made[1] <= 6
    sampling = float(re.search(r"Monte Carlo .* about (\d+\.\d+)", printed)[1])
    x = np.linspace(0, 1, 100001)
    assert sampling == pytest.approx(np.std((6 * x - 2) ** 2 * np.sin(12 * x - 4)) / 6**0.5, abs=0.06)
    assert abs(float(last.split()[-1])) < 0.02 * sampling


def test_two_sources_are_surer_than_one():
    both, alone = forrester.starting_posterior(), forrester.starting_posterior(sources=(0,))
    assert len(both.y) == 8
    assert len(alone.y) == 3
    assert both.integral()[1] < alone.integral()[1]
    assert abs(both.integral()[0] - forrester.true_integral()) < 2 * both.integral()[1] ** 0.5


def test_command_line():
    shown = subprocess.run([sys.executable, "-m", "amsbq", "--version"], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == f"amsbq {amsbq.__version__}"
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 2
