"""Gradients of models on UM-Bridge servers and of functions in problem files."""

import socket
import subprocess
import sys
import time

import numpy as np
import pytest

import amsbq
from amsbq.external import UMBridge
from amsbq.problems.problem_file import ProblemError, load_problem
from amsbq.simulators.answers import SimulatorError

SERVER = """
import functools, math, sys, umbridge
from aiohttp import web
web.run_app = functools.partial(web.run_app, host="127.0.0.1")
class Model(umbridge.Model):
    def get_input_sizes(self, config): return [1, 2]
    def get_output_sizes(self, config): return [1, 2]
    def __call__(self, parameters, config):
        [[a], [b, c]] = parameters
        return [[a * b], [c, math.exp(a) * math.sin(b) + c ** 2]]
    def gradient(self, out_wrt, in_wrt, parameters, sens, config):
        [[a], [b, c]] = parameters
        first, last = [[b], [a, 0.0]], [[math.exp(a) * math.sin(b)], [math.exp(a) * math.cos(b), 2 * c]]
        rows = [first] if out_wrt == 0 else [[[0.0], [0.0, 1.0]], last]
        return [sum(s * row[in_wrt][i] for s, row in zip(sens, rows)) for i in range(in_wrt + 1)]
    def supports_evaluate(self): return True
class WithGradient(Model):
    def __init__(self): super().__init__("adjoint")
    def supports_gradient(self): return True
class Without(Model):
    def __init__(self): super().__init__("plain")
umbridge.serve_models([WithGradient(), Without()], int(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def server():
    pytest.importorskip("umbridge")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], **quiet)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            break
        except OSError:
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait()


X = np.array([0.3, 0.7, 0.2])


@pytest.mark.parametrize(
    ("output", "expected"),
    [(0, [0.7, 0.3, 0.0]), (1, [0, 0, 1]), (2, [np.exp(0.3) * np.sin(0.7), np.exp(0.3) * np.cos(0.7), 0.4])],
)
def test_gradients_of_each_output(server, output, expected):
    np.testing.assert_allclose(UMBridge(server, "adjoint", output=output, timeout=30).gradient(X), expected, rtol=1e-14)
    several = UMBridge(server, "adjoint", output=[output, 1], timeout=30).gradient(X)
    np.testing.assert_allclose(several, [expected, [0, 0, 1]], rtol=1e-14)


def test_what_a_server_says_when_it_has_no_gradients(server):
    with pytest.raises(SimulatorError, match="Gradient not supported"):
        UMBridge(server, "plain", timeout=30).gradient(X)
    with pytest.raises(SimulatorError, match="no output 7"):
        UMBridge(server, "adjoint", output=7, timeout=30).gradient(X)
    with pytest.raises(SimulatorError, match="no output 7"):
        UMBridge(server, "adjoint", output=[0, 7], timeout=30).gradient(X)


PROBLEM = """
budget = 5
seed = 0

[inputs]
a = {{ low = 0.0, high = 1.0 }}
b = {{ low = 0.0, high = 1.0 }}
c = {{ low = 0.0, high = 1.0 }}

[[sources]]
name = "adjoint"
umbridge = {{ url = "{url}", model = "adjoint", output = 2 }}
gradient = {gradient}
gradient_cost = 0.25
timeout = 30
"""


def test_a_problem_file_with_a_server(server, tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM.format(url=server, gradient="true"))
    problem = load_problem(path)
    journal = tmp_path / "problem.jsonl"
    result = amsbq.integrate(problem.sources, problem.measure, budget=5, model="lmc", journal=journal)
    assert '"gradient":true' in journal.read_text()
    truth = (np.exp(1) - 1) * (1 - np.cos(1)) + 1 / 3
    assert abs(result.mean - truth) < 0.1
    bought = [e for e in result.evaluations if e.gradient is not None]
    assert bought
    for e in bought:
        assert e.cost == 1.25
        np.testing.assert_allclose(e.gradient[2], 2 * e.x[2], rtol=1e-12)


def test_python_functions_in_problem_files(tmp_path):
    (tmp_path / "model_with_gradient.py").write_text(
        "def f(x):\n    return x[0] ** 2\n\ndef slope(x):\n    return [2 * x[0]]\n"
    )
    text = '[inputs]\na = {{ low = 0.0, high = 1.0 }}\n[[sources]]\npython = "model_with_gradient:f"\ngradient = {}\n'
    path = tmp_path / "problem.toml"
    path.write_text("budget = 4\n" + text.format('"model_with_gradient:slope"'))
    source = load_problem(path).sources[0]
    assert source.gradient(np.array([0.5])) == [1.0]
    assert source.gradient_cost is None
    path.write_text("budget = 4\n" + text.format("true"))  # an Observation that has it
    assert load_problem(path).sources[0].gradient is True
    for wrong in ("3", '"model_with_gradient:curve"'):
        path.write_text("budget = 4\n" + text.format(wrong))
        with pytest.raises(ProblemError, match="gradient"):
            load_problem(path)
