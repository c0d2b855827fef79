"""Simulators that are not functions of this process: real programs, and a real UM-Bridge server on loopback."""

import contextlib
import json
import os
import pickle
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

import amsbq
from amsbq.execution.evaluate import RETRY_PAUSES, evaluate
from amsbq.simulators.commands import Command
from amsbq.simulators.functions import PythonFunction
from amsbq.simulators.umbridge import UMBridge

X = np.array([0.25, 3.0])
UNIT = amsbq.Uniform(0, 1)


def python(code, **options):
    return Command([sys.executable, "-c", code], ["a", "b"], **options)


def test_inputs_are_in_the_arguments_and_on_standard_input():
    command = Command(["awk", "BEGIN { print {a} + 2 * {b} }"], ["a", "b"])
    assert command(X) == amsbq.Observation(6.25)
    echo = python("import json, sys; x = json.load(sys.stdin); print(x['a'] * x['b'])")
    assert echo(X) == amsbq.Observation(0.75)


def test_inputs_arrive_to_the_last_bit():
    command = Command([sys.executable, "-c", "import sys; print(repr(float(sys.argv[1])))", "{a}"], ["a"])
    for value in (0.1 + 0.2, 1e-300, 2 / 3):
        assert command(np.array([value])).value == value


def test_the_last_line_counts_and_may_be_json():
    noisy = python('print(\'starting\'); print(\'{"value": 1.5, "variance": 0.01, "cost": 7}\')')
    assert noisy(X) == amsbq.Observation(1.5, 0.01, 7.0)


def test_no_shell_is_involved(tmp_path):
    target = tmp_path / "owned"
    command = Command(["echo", f"1; touch {target}"], ["a", "b"])
    with pytest.raises(RuntimeError, match="not a number"):
        command(X)
    assert not target.exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.stderr.write('no\\nlicence\\n'); sys.exit(3)", r"exit code 3; it printed: no \| licence"),
        ("pass", "it printed nothing"),
        ("print('hello')", "not a number: hello"),
        ('print(\'{"value": 1, "colour": 2}\')', "not a number"),
        ("print('{\"val\": 1}')", "not a number"),
        ("print('[1, 2]')", "not a number"),
        ("print('true')", "not a number"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by signal SIGSEGV"),
    ],
)
def test_what_goes_wrong_is_said(code, said):
    with pytest.raises(RuntimeError, match=said):
        python(code)(X)


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path):
    marker = tmp_path / "alive"
    code = f"import subprocess, time; subprocess.run(['sh', '-c', 'sleep 6; touch {marker}'])"
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=r"more than 0\.5 s, and was killed"):
        python(code, timeout=0.5)(X)
    assert time.monotonic() - start < 5
    time.sleep(6.2)
    assert not marker.exists()


def test_braces_that_are_no_placeholders_stay():
    command = Command(["echo", '{"a": {"b": {a}}} {{a}}'], ["a"])
    with pytest.raises(RuntimeError, match=r'not a number: \{"a": \{"b": 0.25\}\} \{a\}'):
        command(X[:1])


@pytest.mark.parametrize(
    ("argument", "filled"),
    [
        ("{flow rate:.3f}", "0.250"),
        ("{flow rate}", "0.25"),
        ("{T-in [K]}", "3.0"),
        ("{T-in [K]:>6.1f}|", "   3.0|"),
        ("{a:b:+.1e}", "+4.5e+00"),
        ("{{flow rate}} {{flow rate:.3f}} {{other}} {{other:.3f}}", "{flow rate} {flow rate:.3f} {other} {other:.3f}"),
        ("{ print $1 } {} {2,3} {k: v} {{ k }}", "{ print $1 } {} {2,3} {k: v} {{ k }}"),
    ],
)
def test_names_and_formats_in_arguments(argument, filled, tmp_path):
    code = "import sys; open('argument', 'w').write(sys.argv[1]); print(1)"
    command = Command([sys.executable, "-c", code, argument], ["flow rate", "T-in [K]", "a:b"], tmp_path)
    command(np.array([0.25, 3.0, 4.5]))
    assert (tmp_path / "argument").read_text() == filled


@pytest.mark.parametrize(
    "placeholder",
    ["flow  rate", "flow-rate", "Flow rate", "flow rate + 1", "-b", "a+b", "b!r", "b/2", " b ", "c:.3f", "c", "T [k]"],
)
def test_what_looks_like_an_input_and_is_none_is_refused(placeholder):
    names = ["flow rate", "b", "T [K]"]
    with pytest.raises(ValueError, match=r"which is not an input; valid names: \{flow rate\}, \{b\}, \{T \[K\]\}"):
        Command(["run", f"--x={{{placeholder}}}"], names)
    Command(["run", f"--x={{{{{placeholder}}}}}"], names)


def test_formats_that_python_does_not_have_are_refused():
    for form in ("d", ".3q", "nonsense"):
        with pytest.raises(ValueError, match=f"but '{form}' is not a number format"):
            Command(["run", f"{{a:{form}}}"], ["a"])
    with pytest.raises(ValueError, match=r"'a\{b' cannot be part of a command"):
        Command(["run", "{a{b}"], ["a{b"])


def test_a_program_may_print_more_than_is_kept():
    """It prints 300 MB on each output, and the memory of this process grows by far less."""
    code = (
        "import sys\n"
        "for _ in range(300): sys.stdout.write('x' * 999_999 + chr(10)); sys.stderr.write('y' * 999_999 + chr(10))\n"
        "print(2.5)"
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert python(code)(X) == amsbq.Observation(2.5)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # kB


def test_a_last_line_that_was_cut_is_no_number():
    with pytest.raises(RuntimeError, match=r"not a number: \.\.\. 1111"):
        python("print('1' * 3_000_000)")(X)
    with pytest.raises(RuntimeError, match=r"not a number: \.\.\. 0000"):
        python("print('0' * 3_000_000 + '7')")(X)


def test_a_program_need_not_read_its_input():
    names = [f"a{i}" for i in range(20_000)]
    for program in (["echo", "3"], [sys.executable, "-c", "import sys; print(sys.stdin.read().count('a'))"]):
        assert Command(program, names)(np.zeros(20_000)).value in (3.0, 20_000.0)


def test_wrong_commands_are_refused():
    with pytest.raises(
        ValueError,
        match=r"contains \{c\}, which is not an input; valid names: \{a\}, \{b\}. For literal braces, write \{\{c\}\}",
    ):
        Command(["run", "{c}"], ["a", "b"])
    with pytest.raises(TypeError, match="list of strings"):
        Command("run {a}", ["a"])


def test_functions_by_name(tmp_path):
    (tmp_path / "my_simulator_module.py").write_text("def f(x):\n    return x[0] * 2\nnumber = 3\n")
    function = PythonFunction("my_simulator_module:f", tmp_path)
    assert pickle.loads(pickle.dumps(function))(X) == 0.5
    with pytest.raises(TypeError, match="cannot be called"):
        PythonFunction("my_simulator_module:number", tmp_path).resolved()
    with pytest.raises(ValueError, match="'module:function'"):
        PythonFunction("my_simulator_module")


TRUTH = (1 - np.cos(5)) / 5 + 0.5
FINE, COARSE = "sin(5 * x) + x", "sin(5 * x) + 0.2"


def close_to_truth(result):
    low, high = result.interval(0.99)
    return abs(result.mean - TRUTH) < 0.02 and low < TRUTH < high


def test_programs_in_another_language(tmp_path):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "fine.c").write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <math.h>\n"
        "int main(int argc, char **argv) { double x = atof(argv[1]);"
        ' printf("computing\\n%.17g\\n", sin(5 * x) + x); return 0; }\n'
    )
    subprocess.run([compiler, "fine.c", "-o", "fine", "-lm"], cwd=tmp_path, check=True)
    sources = [
        amsbq.Source(Command(["./fine", "{x}"], ["x"], tmp_path), name="fine"),
        amsbq.Source(Command(["awk", "BEGIN { print sin(5 * {x}) + 0.2 }"], ["x"]), cost=0.1, name="coarse"),
    ]
    assert close_to_truth(amsbq.integrate(sources, UNIT, budget=6, model="lmc"))


SERVER = """
import functools, math, sys, umbridge
from aiohttp import web
web.run_app = functools.partial(web.run_app, host="127.0.0.1")
class Forward(umbridge.Model):
    def __init__(self): super().__init__("forward")
    def get_input_sizes(self, config): return [1]
    def get_output_sizes(self, config): return [1, 2]
    def __call__(self, parameters, config):
        [[x]] = parameters
        if config.get("raises"): raise RuntimeError("the mesh has collapsed")
        if config.get("nan"): return [[float("nan")], [0.0, 0.0]]
        level = config.get("level", 0)
        return [[math.sin(5 * x) + (x if level == 0 else 0.2)], [1.0, 1e32]]
    def supports_evaluate(self): return True
umbridge.serve_models([Forward()], int(sys.argv[1]), max_workers=int(sys.argv[2]))
"""


@pytest.fixture(scope="module", params=[1, 4])
def server(request):
    pytest.importorskip("umbridge")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port), str(request.param)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            break
        except OSError:
            time.sleep(0.1)
    yield url
    process.kill()
    process.wait()


def test_a_um_bridge_server_with_two_levels(server):
    sources = [
        amsbq.Source(UMBridge(server, "forward", {"level": 0}, timeout=30), name="fine"),
        amsbq.Source(UMBridge(server, "forward", {"level": 1}, timeout=30), cost=0.1, name="coarse"),
    ]
    result = amsbq.integrate(sources, UNIT, budget=6, model="lmc", workers=2)
    assert not any(e.status == "failed" for e in result.evaluations)
    assert close_to_truth(result)


def test_what_a_server_says_when_it_fails(server):
    x = np.array([0.5])
    with pytest.raises(RuntimeError, match="status 500"):
        UMBridge(server, config={"raises": True})(x)
    with pytest.raises(RuntimeError, match="nan"):
        UMBridge(server, config={"nan": True})(x)
    with pytest.raises(RuntimeError, match="no output 3"):
        UMBridge(server, output=3)(x)
    with pytest.raises(ValueError, match="takes 1 inputs, got 2"):
        UMBridge(server)(X)
    with pytest.raises(RuntimeError, match="the server answered"):
        UMBridge(server, "backward")(x)
    assert UMBridge(server, output=1)(x) == 1.0


def test_an_absurd_value_is_a_failed_evaluation(server):
    sources = [
        amsbq.Source(UMBridge(server), name="fine"),
        amsbq.Source(UMBridge(server, output=2), cost=0.1, name="broken", valid=(-10, 10)),
    ]
    with pytest.warns(UserWarning, match="broken failed 5 times in a row and is retired"):
        result = amsbq.integrate(sources, UNIT, budget=4, model="icm")
    assert all("outside the valid range" in e.reason for e in result.evaluations if e.source == 1)


def test_a_server_that_is_not_there(monkeypatch):
    monkeypatch.setattr("amsbq.execution.evaluate.RETRY_PAUSES", (0.01, 0.01))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    source = UMBridge(f"http://127.0.0.1:{port}")
    with pytest.raises(ConnectionError, match="cannot be reached"):
        source(np.array([0.5]))
    with pytest.raises(RuntimeError, match=r"no evaluation was successful.*cannot be reached"):
        amsbq.integrate(source, UNIT, budget=3, model="icm")


def test_what_a_retry_can_mend_is_tried_again(monkeypatch):
    monkeypatch.setattr("amsbq.execution.evaluate.RETRY_PAUSES", (0.01, 0.01))
    calls = []

    def flaky(x):
        calls.append(x)
        if len(calls) % 3:
            raise ConnectionResetError("try again")
        return float(x[0])

    result = amsbq.integrate(flaky, UNIT, budget=3, model="icm")
    assert [e.status for e in result.evaluations] == ["ok"] * 3
    assert len(calls) == 9


class Clock:
    """Time that passes only when somebody lets it."""

    now = 0.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.mark.parametrize(("refusals", "found"), [(0, 3.5), (2, 3.5), (99, None)])
def test_pauses_between_retries_are_not_charged(monkeypatch, refusals, found):
    clock, calls = Clock(), []
    monkeypatch.setattr("amsbq.execution.evaluate.time", clock)

    def flaky(x):
        calls.append(x)
        clock.sleep(0.5)
        if len(calls) <= refusals:
            raise ConnectionRefusedError("busy")
        clock.sleep(1.0)
        return 3.5

    outcome = evaluate(flaky, X)
    tried = min(refusals, len(RETRY_PAUSES) + 1)
    assert outcome.seconds == pytest.approx(0.5 * tried + (0.0 if found is None else 1.5))
    assert clock.now == pytest.approx(outcome.seconds + sum(RETRY_PAUSES[:tried]))
    assert outcome.observation == (None if found is None else amsbq.Observation(found))
    assert outcome.reason == ("ConnectionRefusedError: busy" if found is None else "")


class Handler(BaseHTTPRequestHandler):
    """A server that answers as the test wants; what it is asked for is collected."""

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.asked.append((self.command, self.path, self.rfile.read(length)))
        asked_for_sizes = self.path in ("/InputSizes", "/OutputSizes")
        answer = self.server.sizes if asked_for_sizes else self.server.answers.pop(0)
        if callable(answer):
            answer(self)
        else:
            self.reply(json.dumps(answer).encode())

    def do_GET(self):
        self.server.asked.append((self.command, self.path, b""))
        self.reply(b'{"output": [[99.0]], "inputSizes": [1]}')

    def reply(self, body, status=200, length=None, **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body) if length is None else length, **headers}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *message):
        pass


def sizes_of(*inputs, outputs=(1,)):
    return {"inputSizes": inputs, "outputSizes": outputs}


@pytest.fixture
def fake():
    """Starts servers on loopback; each has a url, what it was asked for, and its answers."""
    servers = []

    def start(*answers):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.asked, server.answers, server.sizes = [], list(answers), sizes_of(1)
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(fake, status):
    other = fake()
    for where in (f"{other.url}/Evaluate", "/elsewhere", "file:///etc/passwd"):
        server = fake(lambda handler, where=where: handler.reply(b"", status, Location=where))
        with pytest.raises(RuntimeError, match=f"status {status}.*"):
            UMBridge(server.url)(X[:1])
        asked = [("POST", "/InputSizes"), ("POST", "/OutputSizes"), ("POST", "/Evaluate")]
        assert [(method, path) for method, path, _ in server.asked] == asked
    assert other.asked == []


@pytest.mark.parametrize(
    "answer",
    [
        {"output": [["1.5"]]},
        {"output": [[True]]},
        {"output": [[None]]},
        {"output": [[float("nan")]]},
        {"output": [[10**400]]},
        {"output": [1.5]},
        {"output": ["12"]},
        {"output": "12"},
        {"output": {"0": [1.5]}},
        {"output": [[]]},
        {"output": [[0.5, 1, 2], [3]]},
        {"output": [[0.5, 1.0]]},
        {"output": [[0.5], [1.0]]},
        {"output": [[[0.5]]]},
        {"outputs": [[1.5]]},
        [[1.5]],
        1.5,
    ],
)
def test_servers_answer_with_numbers(fake, answer):
    with pytest.raises(RuntimeError, match="the server answered"):
        UMBridge(fake(answer).url)(X[:1])


def test_answers_without_end(fake):
    def long(handler):
        with contextlib.suppress(OSError):
            handler.reply(b" " * 50 * 2**20 + b'{"output": [[1.5]]}')

    def dripping(handler):
        with contextlib.suppress(OSError):
            handler.reply(b"", length=1000)
            for _ in range(1000):
                handler.wfile.write(b" ")
                time.sleep(0.02)

    def dripping_headers(handler):
        with contextlib.suppress(OSError):
            for number in range(1000):
                handler.wfile.write(b"HTTP/1.0 200 OK\r\n" if not number else b"X-%d: 1\r\n" % number)
                time.sleep(0.02)

    with pytest.raises(RuntimeError, match="longer than 10 MB"):
        UMBridge(fake(long).url)(X[:1])
    with pytest.raises(RuntimeError, match="longer than 10 MB"):
        UMBridge(fake(lambda handler: handler.reply(b"x" * 50 * 2**20, 500)).url)(X[:1])
    for slow in (dripping, dripping_headers):
        start = time.monotonic()
        with pytest.raises(RuntimeError, match=r"no answer from .* within 0\.5 s"):
            UMBridge(fake(slow).url, timeout=0.5)(X[:1])
        assert time.monotonic() - start < 15


@pytest.mark.parametrize(
    "sizes",
    [sizes_of(2), sizes_of("1"), sizes_of(True), {"inputSizes": 1}, {"sizes": [1]}, sizes_of(1, outputs=("1",))],
)
def test_wrong_input_sizes_are_asked_for_again(fake, sizes):
    server = fake({"output": [[1.5]]})
    right, server.sizes = server.sizes, sizes
    source = UMBridge(server.url)
    with pytest.raises((RuntimeError, ValueError), match=r"takes 2 inputs|has no sizes of (in|out)put vectors"):
        source(X[:1])
    server.sizes = right
    assert source(X[:1]) == 1.5


def test_input_sizes_are_asked_for_again_after_an_error(fake):
    def split(handler):
        handler.reply(b"two inputs, please", 400)

    server = fake({"output": [[1.5]]}, {"output": [[2.5]]}, split, {"output": [[3.5]]})
    server.sizes = sizes_of(2)
    source = UMBridge(server.url)
    assert [source(X), source(X)] == [1.5, 2.5]
    server.sizes = sizes_of(1, 1)
    with pytest.raises(RuntimeError, match="two inputs, please"):
        source(X)
    assert source(X) == 3.5
    assert [path for _, path, _ in server.asked].count("/InputSizes") == 2
    assert json.loads(server.asked[-1][2])["input"] == [[0.25], [3.0]]


def cut_short(handler):
    handler.reply(b'{"output": [[1.5', length=1000)


def cut_short_in_chunks(handler):
    handler.protocol_version = "HTTP/1.1"
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"100\r\n" + b'{"output": [[1.5')


def closed(handler):
    handler.close_connection = True


@pytest.mark.parametrize("broken", [cut_short, cut_short_in_chunks, closed])
def test_an_answer_that_is_cut_short_is_asked_for_again(fake, broken, monkeypatch):
    monkeypatch.setattr("amsbq.execution.evaluate.RETRY_PAUSES", (0.01, 0.01))
    server = fake(broken, {"output": [[1.5]]})
    outcome = evaluate(UMBridge(server.url), X[:1])
    assert outcome.observation == amsbq.Observation(1.5)
    outcome = evaluate(UMBridge(fake(broken, broken, broken).url), X[:1])
    assert outcome.observation is None
    assert outcome.reason.startswith("ConnectionError: http://127.0.0.1")


def test_a_server_may_take_longer_than_any_life(fake):
    assert UMBridge(fake({"output": [[1.5]]}).url, timeout=1e10)(X[:1]) == 1.5


def test_um_bridge_needs_a_url():
    with pytest.raises(ValueError, match="http://"):
        UMBridge("127.0.0.1:4242")


def test_documented_json_is_what_is_sent():
    echo = python("import sys; print(len(sys.stdin.read()))")
    assert echo(X).value == len(json.dumps({"a": 0.25, "b": 3.0}))


def test_a_dask_cluster_that_loses_a_worker():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids = client.run(os.getpid)
        assert len(pids) == 2
        killed = []

        def stop(it):
            if len(it.evaluations) >= 4 and not killed:
                killed.append(next(iter(pids.values())))
                os.kill(killed[0], 9)

        sources = [amsbq.Source(dask_fine, name="fine"), amsbq.Source(dask_coarse, cost=0.1, name="coarse")]
        result = amsbq.integrate(sources, UNIT, budget=5, model="icm", executor=client, workers=2, stop=stop)
    assert killed
    assert close_to_truth(result)


def test_the_documented_dask_cluster_listens_on_this_machine_only():
    distributed, psutil = pytest.importorskip("distributed"), pytest.importorskip("psutil")
    page = Path(__file__).parents[2] / "docs" / "how-to" / "cluster.md"
    found = re.search(r'here = (".*?").*?(LocalCluster\(.*?\)) as cluster', page.read_text("utf-8"), re.DOTALL)
    with eval(found[2], {"here": json.loads(found[1]), "LocalCluster": distributed.LocalCluster}):
        listening = [at.laddr.ip for at in psutil.Process().net_connections("tcp") if at.status == "LISTEN"]
    assert set(listening) == {"127.0.0.1"}


def dask_fine(x):
    return float(np.sin(5 * x[0]) + x[0])


def dask_coarse(x):
    return float(np.sin(5 * x[0]) + 0.2)


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "SIGTERM"), (signal.SIGRTMIN + 3, signal.SIGRTMIN + 3)])
def test_a_program_that_a_signal_has_ended(number, name):
    """Most real-time signals have no name."""
    with pytest.raises(RuntimeError, match=f"ended by signal {name}"):
        Command(["sh", "-c", f"kill -{int(number)} $$"], ["x"])(np.array([0.5]))
