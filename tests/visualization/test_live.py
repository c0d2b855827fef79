"""``amsbq watch`` in a real browser, and ``amsbq compare``."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import numpy as np
import pytest

import amsbq
from amsbq.cli.main import main
from amsbq.design.run import answer, record
from amsbq.execution.journal import Journal
from amsbq.execution.resume import begin_or_resume
from amsbq.visualization.live import LiveContent
from tests.visualization.test_report import browser, browser_needed  # noqa: F401 (a fixture)
from tests.waiting import eventually


class Run:
    """A run that makes one evaluation at a time, when the test wants it, and writes its journal."""

    def __init__(self, path):
        sources = [amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)]
        self.it = amsbq.Integrator(sources, {"load": (0, 1), "size": (0, 1)}, budget=20, model="icm")
        self.journal = Journal(path)
        self.log = begin_or_resume(self.journal, self.it, {"inputs": ["load", "size"]})

    def step(self):
        query = self.it.ask()
        self.log.asked(query)
        value = float(np.sin(5 * query.x[0]) + query.x[1] + 0.1 * query.source)
        made = answer(self.it, query, amsbq.Observation(value), "", query.cost)
        self.log.answered(made, query.cost)
        record(self.it, made)
        self.log.known()


@pytest.fixture
def run(tmp_path):
    run = Run(tmp_path / "run.jsonl")
    with run.journal:
        for _ in range(6):
            run.step()
        yield run


@pytest.fixture
def address(run):
    """Where the command serves the page of the run."""
    command = [sys.executable, "-m", "amsbq", "watch", str(run.journal.path)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watch:
        yield re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", watch.stdout.readline())[0]
        watch.send_signal(signal.SIGINT)
        _, errors = watch.communicate(timeout=60)
        assert watch.returncode == 0
        assert "Traceback" not in errors


def answered(address, path, method="GET", host=None):
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    connection.request(method, path, body=b"x" if method != "GET" else None, headers={"Host": host or parts.netloc})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response.status, response.headers, body


@pytest.mark.front_door
def test_nothing_without_the_token_and_nothing_but_get(run, address, capsys):
    before, inside = run.journal.path.read_bytes(), urlsplit(address).path
    assert answered(address, inside)[0] == 200
    for path in (
        "/",
        "/content",
        f"/{'a' * 32}/",
        f"/{'a' * 32}/content",
        inside.upper(),
        "/../run.jsonl",
    ):
        status, _, body = answered(address, path)
        assert (status, body) == (404, b"")
    assert answered(address, f"{inside}../run.jsonl")[0] == 404
    assert answered(address, inside, host="attacker.example:80")[0] == 403
    for method in ("POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"):
        assert answered(address, f"{inside}content", method)[0] == 501
    headers = answered(address, inside)[1]
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer"
    assert run.journal.path.read_bytes() == before
    assert main(["watch", str(run.journal.path), "--port", str(urlsplit(address).port)]) == 2  # it is taken
    assert "cannot be used" in capsys.readouterr().err


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET http://[::1 HTTP/1.1",
        b"GET //[x] HTTP/1.1",
        b"GET " + b"a" * 70000 + b" HTTP/1.1",
        b"GET / HTTP/9.9.9",
        b"GET",
        b"\x00\xff\xfe",
        b"GET /?" + b"&".join([b"a=1"] * 10_000) + b" HTTP/1.1",
    ],
    ids=lambda line: line[:24].decode("latin-1"),
)
def test_a_request_that_makes_no_sense_is_refused(run, address, request_line):
    """The fixture looks for a traceback on the terminal."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as connection:
        connection.sendall(request_line + b"\r\nHost: " + parts.netloc.encode() + b"\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b" 200 " not in answer.partition(b"\r\n")[0]
    assert answered(address, parts.path)[0] == 200


@browser_needed
@pytest.mark.browser
def test_the_page_follows_the_run_and_keeps_choices(run, address, browser, tmp_path):  # noqa: F811
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    complaints = []
    page.on("console", lambda message: complaints.append(message.text) if message.type != "log" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    page.wait_for_selector("#plot-sources")  # what needs the model is there, though not when the page was loaded
    page.wait_for_selector("#findings details:nth-child(2)")
    page.locator("#plot-sources").scroll_into_view_if_needed()
    page.wait_for_selector("#plot-sources .picture")
    page.select_option("#input-sources", "1")
    page.locator("#plot-sources text.title", has_text="size").wait_for()
    page.locator("#evaluations th", has_text="value").locator("button").click()
    page.locator("#findings summary").last.click()
    opened = page.locator("#findings [open] b").inner_text()
    page.locator("#plot-sources").scroll_into_view_if_needed()
    on_screen = "document.getElementById('plot-sources').getBoundingClientRect().top"
    place = page.evaluate(on_screen)

    delays = []
    for number in (7, 8, 9):
        run.step()
        start = time.monotonic()
        latest = run.it.evaluations[-1]
        mean, std = amsbq.Estimate([latest.mean], [latest.std]).summary().split(" (std)")[0].split(" ± ")
        page.wait_for_function(
            """([n, mean, std]) => document.querySelectorAll('#evaluations tbody tr').length === n
            && document.getElementById('mean').textContent === mean
            && document.getElementById('std').textContent === std""",
            arg=[number, mean, std],
        )
        delays.append(time.monotonic() - start)
    assert sorted(delays)[1] < 10, delays  # seconds if nothing else is busy: here, other tests are
    markers = page.locator("#plot-convergence .picture g > path[transform]")
    assert markers.count() == sum(np.isfinite(e.mean) for e in run.it.evaluations)
    assert opened in page.locator("#findings [open] b").all_inner_texts()
    assert page.locator("#plot-sources text.title", has_text="size").count() == 1
    assert abs(page.evaluate(on_screen) - place) < 2  # pixels, although findings above may have come and gone
    assert page.input_value("#input-sources") == "1"
    assert page.locator("#evaluations th", has_text="value").get_attribute("aria-sort") == "ascending"
    page.screenshot(path=tmp_path / "live.png")
    assert page.inner_text("#state") == "— the run continues"

    run.log.stopped("interrupted", run.it.result())
    page.wait_for_selector("text=Stopped: it was interrupted")
    assert complaints == []
    page.close()


@browser_needed
@pytest.mark.browser
@pytest.mark.parametrize("script", [True, False])
def test_a_page_that_is_loaded_again_has_the_newest_state(run, address, browser, script):  # noqa: F811
    """Also where scripts are not run, so that the page cannot ask for it afterwards."""
    page = browser.new_context(java_script_enabled=script).new_page()
    page.goto(address)
    before = page.locator("#spent").inner_text()
    run.step()

    def newest():
        page.reload()
        spent = page.locator("#spent").inner_text()
        return spent != before and spent == f"Spent {run.it.spent:.6g} of 20. "[: len(spent)]

    assert eventually(newest)
    latest = run.it.evaluations[-1]
    expected = amsbq.Estimate([latest.mean], [latest.std]).summary().split(" ± ")[0]
    assert page.locator("#mean").inner_text() == expected
    page.context.close()


def test_a_journal_that_is_damaged_meanwhile_is_told_and_the_page_stays(run):
    with LiveContent(run.journal.path) as live:
        run.step()
        assert eventually(lambda: len(live.current()["rows"]) == 7)
        intact = run.journal.path.read_bytes()
        with run.journal.path.open("ab") as file:
            file.write(b"nonsense\n")
        assert eventually(lambda: "is damaged" in live.trouble)
        assert len(live.current()["rows"]) == 7
        run.journal.path.write_bytes(intact)
        run.step()
        assert eventually(lambda: live.trouble == "" and len(live.current()["rows"]) == 8)


def test_a_journal_that_is_not_there_is_one_line(tmp_path, capsys):
    assert main(["watch", str(tmp_path / "nowhere.jsonl")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_runs_are_compared(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    for name, budget in (("few", 3), ("many", 6)):
        amsbq.integrate(
            lambda x: float(x[0] ** 2), (0, 1), budget=budget, model="icm", journal=tmp_path / f"{name}.jsonl"
        )
    (tmp_path / "other").mkdir()
    os.link(tmp_path / "few.jsonl", tmp_path / "other" / "few.jsonl")
    picture = tmp_path / "both.png"
    paths = [str(tmp_path / f"{name}.jsonl") for name in ("few", "many")]
    assert main(["compare", *paths, "--output", str(picture)]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "integral", "±", "std", "95", "%", "interval", "spent", "evaluations", "stopped"]
    for row, name, spent in zip(rows, ("few", "many"), (3, 6), strict=True):
        result = amsbq.read_result(tmp_path / f"{name}.jsonl")
        said, low, high = re.fullmatch(r"(.*) \(std\), 95 % between (.*) and (.*)", result.estimate.summary()).groups()
        assert row.startswith(f"{name:4}  {said}")
        assert f"{spent} of {spent}" in row
        assert f"{low} to {high}" in row
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["compare", paths[0], str(tmp_path / "other" / "few.jsonl"), "--output", str(picture)]) == 0
    assert [row.split()[0] for row in capsys.readouterr().out.splitlines()[1:]] == [f"{tmp_path.name}/few", "other/few"]
    assert main(["compare", *paths, "--output", str(tmp_path / "both.nonsense")]) == 2


def test_the_picture_of_a_comparison(tmp_path):
    pytest.importorskip("matplotlib")
    results = {
        name: amsbq.integrate(lambda x: float(x[0] ** 2), (0, 1), budget=budget, model="icm")
        for name, budget in (("few", 3), ("_many$", 6))
    }
    left, right = amsbq.plots.compare(results).axes
    assert [line.get_xdata()[-1] for line in left.lines] == [3, 6]
    assert [text.get_text() for text in right.get_yticklabels()] == ["few", "\u200b_many\\$"]
    for line, result in zip(right.lines[::2], results.values(), strict=True):
        assert tuple(line.get_xdata()) == result.interval(0.95)
