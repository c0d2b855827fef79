"""Whole runs: sources that misbehave, time-outs, workers, executors, interruption, and what a result shows."""

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

import amsbq
from amsbq import Observation, Source, integrate
from amsbq.execution import executors
from amsbq.execution.journal import read_journal
from amsbq.execution.state import read_state
from amsbq.external import Command
from amsbq.gp.threads import threads_for
from tests.design.test_integrator import COARSE, FINE, TRUTH, UNIT, fixed
from tests.execution.test_executors import eventually, is_running


def fine(x):
    return np.sin(6 * x[0]) + x[0]


def coarse(x):
    return 0.8 * np.sin(6 * x[0]) + 0.3


def pair(primary=FINE, secondary=COARSE, **options):
    return [Source(primary, name="fine", **options), Source(secondary, cost=0.1, name="coarse")]


def test_the_front_door():
    result = integrate(pair(), stats.uniform(0, 1), budget=5)
    low, high = result.interval(0.95)
    assert low < TRUTH < high
    assert result.quantile(0.5) == pytest.approx(result.mean, abs=result.std)
    assert result.spent == pytest.approx(sum(e.cost for e in result.evaluations))
    assert result.spent <= 5
    assert result.stopped == "budget"
    assert {e.status for e in result.evaluations} == {"ok"}
    assert (result.evaluations[-1].mean, result.evaluations[-1].std) == (result.mean, result.std)


def test_one_plain_function():
    result = integrate(lambda x: x[0] ** 2, stats.norm(0, 1), budget=8)
    assert result.mean == pytest.approx(1, abs=0.1)
    assert len(result.evaluations) == 8
    assert result.names == ["source 0"]


def test_x_is_a_vector_and_cannot_be_changed():
    def spoils(x):
        assert x.shape == (2,)
        x[0] = 3.0

    result = integrate(
        pair(spoils, lambda x: x.sum()), [(0, 1), (0, 1)], budget=2, model=fixed(amsbq.Uniform([0, 0], 1))
    )
    failed = [e for e in result.evaluations if e.source == 0]
    assert all("read-only" in e.reason for e in failed)


def raises(x):
    raise RuntimeError("diverged")


MISBEHAVIOUR = {
    "raises": (raises, "RuntimeError: diverged"),
    "NaN": (lambda x: np.nan, "must be finite"),
    "inf": (lambda x: np.inf, "must be finite"),
    "string": (lambda x: "0.3", "must be a number"),
    "None": (lambda x: None, "must be a number"),
    "array": (lambda x: np.ones(3), "one number, got shape"),
    "complex": (lambda x: 1j, "must be a number"),
    "negative variance": (lambda x: Observation(1.0, -1.0), "the variance must not be negative"),
    "cost of zero": (lambda x: Observation(1.0, 0.0, 0.0), "the cost must be positive"),
    "exits": (lambda x: sys.exit(3), "SystemExit"),
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_sources_that_misbehave_now_and_then(name, workers):
    """One in four evaluations of the secondary source."""
    bad, reason = MISBEHAVIOUR[name]
    calls, lock = [0], threading.Lock()

    def secondary(x):
        with lock:
            calls[0] += 1
            broken = calls[0] % 4 == 0
        return bad(x) if broken else COARSE(x)

    result = integrate(pair(secondary=secondary), UNIT, budget=4, model=fixed(), workers=workers)
    failed = [e for e in result.evaluations if e.status == "failed"]
    assert failed
    assert all(reason in e.reason and e.cost == 0.1 for e in failed)
    assert result.stopped == "budget"
    assert abs(result.mean - TRUTH) < 4 * result.std


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_a_secondary_source_that_never_works(name):
    with pytest.warns(UserWarning, match="coarse failed 5 times in a row and is retired"):
        result = integrate(pair(secondary=MISBEHAVIOUR[name][0]), UNIT, budget=5)
    low, high = result.interval(0.99)
    assert low < TRUTH < high
    assert sum(e.status == "failed" for e in result.evaluations) == 5


def test_nothing_ever_works():
    with pytest.warns(UserWarning, match="retired"), pytest.raises(RuntimeError, match=r"no evaluation .* diverged"):
        integrate(pair(raises, raises), UNIT, budget=20)


def test_sources_that_take_for_ever():
    """Their threads are left behind; the run, and then the interpreter, go on without them."""
    calls = [0]

    def secondary(x):
        calls[0] += 1
        if calls[0] % 4 == 0:
            time.sleep(3600)
        return COARSE(x)

    start = time.monotonic()
    sources = [Source(FINE), Source(secondary, cost=0.1, timeout=0.2)]
    result = integrate(sources, UNIT, budget=3, model=fixed())
    assert time.monotonic() - start < 60
    failed = [e for e in result.evaluations if e.status == "failed"]
    assert failed
    assert all("timeout of 0.2 s" in e.reason for e in failed)
    assert result.stopped == "budget"


def test_the_interpreter_ends_while_a_source_does_not():
    code = (
        "import time, amsbq\n"
        "slow = amsbq.Source(lambda x: time.sleep(3600), cost=0.1, timeout=0.05)\n"
        "print(amsbq.integrate([lambda x: x[0], slow], (0, 1), budget=3, model='vbq').stopped)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "budget"


def test_the_interpreter_ends_while_a_thread_of_a_pool_hangs():
    code = (
        "import time, amsbq\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "slow = amsbq.Source(lambda x: time.sleep(3600), cost=0.1, timeout=0.2)\n"
        "with ThreadPoolExecutor(1) as pool:\n"
        "    initial = [(1, [0.5]), (0, [0.5]), (0, [0.2])]\n"
        "    fine = lambda x: x[0]\n"
        "    result = amsbq.integrate([fine, slow], (0, 1), budget=2.1, model='icm', executor=pool, initial=initial)\n"
        "print([e.status for e in result.evaluations])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.strip() == "['failed', 'ok', 'ok']"


def test_tolerances():
    loose = integrate(pair(), UNIT, budget=30, model=fixed(), abs_tol=0.1)
    tight = integrate(pair(), UNIT, budget=30, model=fixed(), rel_tol=0.01)
    assert (loose.stopped, tight.stopped) == ("tolerance", "tolerance")
    assert loose.spent < tight.spent < 30
    low, high = tight.interval(0.95)
    assert high - low <= 2 * 0.01 * abs(tight.mean)


def test_stop_rules_are_plain_functions():
    result = integrate(pair(), UNIT, budget=30, model=fixed(), max_evaluations=7)
    assert (len(result.evaluations), result.stopped) == (7, "evaluations")
    result = integrate(
        pair(), UNIT, budget=30, model=fixed(), stop=lambda it: "three" if len(it.evaluations) >= 3 else None
    )
    assert (len(result.evaluations), result.stopped) == (3, "three")
    assert "three" in str(result)


@pytest.mark.parametrize("kind", ["threads", "thread pool", "process pool"])
def test_workers_and_executors(kind):
    if kind == "threads":
        result = integrate(pair(fine, coarse), UNIT, budget=4, model=fixed(), workers=4)
    else:
        pool = {"thread pool": ThreadPoolExecutor, "process pool": ProcessPoolExecutor}[kind]
        with pool(2) as executor:
            result = integrate(pair(fine, coarse), UNIT, budget=4, model=fixed(), executor=executor, workers=2)
    assert result.stopped == "budget"
    assert result.spent <= 4
    assert abs(result.mean - TRUTH) < 4 * result.std
    assert {e.status for e in result.evaluations} == {"ok"}


@pytest.mark.parametrize(("workers", "most"), [(8, 2), (4, 5), (1, 3)])
def test_no_more_evaluations_than_are_allowed(workers, most):
    result = integrate(pair(), UNIT, budget=100, model=fixed(), workers=workers, max_evaluations=most)
    assert len(result.evaluations) == most


def crash(x):
    if x[0] > 0.6:
        os._exit(1)
    return fine(x)


def pending_after_a_broken_executor(executor, path, function=fine, match="the executor does not work", workers=2):
    """The state after a run that its executor has ended: nothing is lost, failed, or charged for what is pending."""
    source = Source(function, name="fine")
    with pytest.raises(RuntimeError, match=match):
        integrate(source, UNIT, budget=20, model=fixed(L=1), executor=executor, workers=workers, seed=3, journal=path)
    state = read_state(path)
    assert state.pending
    assert state.stopped == ""
    assert all(e.status == "ok" and e.cost == 1.0 for e in state.evaluations)
    return state


def test_a_worker_process_that_dies_ends_the_run_and_is_not_charged(tmp_path):
    with ProcessPoolExecutor(1) as executor:
        state = pending_after_a_broken_executor(executor, tmp_path / "run.jsonl", crash, "BrokenProcessPool", 1)
    assert len(state.pending) == 1
    result = integrate(
        Source(fine), UNIT, budget=20, model=fixed(L=1), seed=3, journal=tmp_path / "run.jsonl", max_evaluations=12
    )
    assert [e.id for e in result.evaluations] == list(range(12))
    assert np.array_equal(result.evaluations[len(state.evaluations)].x, state.pending[0].x)
    assert result.spent == 12


class Unreliable(ThreadPoolExecutor):
    """An executor that after a few calls takes no more, or cancels them."""

    def __init__(self, after, how):
        super().__init__(2)
        self.calls, self.how = [0] * after, how

    def submit(self, fn, /, *args, **kwargs):
        if self.calls:
            self.calls.pop()
            return super().submit(fn, *args, **kwargs)
        if self.how == "cancels":
            future = Future()
            future.cancel()
            future.set_running_or_notify_cancel()
            return future
        raise RuntimeError("cannot schedule new futures after shutdown")


@pytest.mark.parametrize("how", ["raises", "cancels"])
def test_an_executor_that_stops_to_work_ends_the_run(how, tmp_path, capfd):
    """What it still evaluates is kept: it is paid for."""

    def slow(x):
        time.sleep(0.2)
        return FINE(x)

    with Unreliable(5, how) as executor:
        match = "cannot schedule new futures" if how == "raises" else "CancelledError"
        state = pending_after_a_broken_executor(executor, tmp_path / "run.jsonl", slow, match)
    assert len(state.evaluations) == 5
    assert len(state.pending) == 1
    assert "the executor does not work; stopping after what is running" in capfd.readouterr().err


def test_functions_that_cannot_be_sent_end_the_run(tmp_path):
    with ProcessPoolExecutor(1) as executor:
        state = pending_after_a_broken_executor(executor, tmp_path / "run.jsonl", lambda x: x[0], "pickle")
    assert state.evaluations == []


class KilledWorker(Exception):
    """As Dask raises it for a call that has ended several of its workers."""


def test_a_call_that_ends_all_workers_of_a_cluster_has_failed():
    class Cluster(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            future = Future()
            future.set_exception(KilledWorker("4 workers have died"))
            return future

    with (
        Cluster() as executor,
        pytest.warns(UserWarning, match="retired"),
        pytest.raises(RuntimeError, match="4 workers"),
    ):
        integrate(Source(fine), UNIT, budget=20, model=fixed(L=1), executor=executor)


@pytest.mark.parametrize("down", [0, 1])
def test_a_resumed_run_tries_retired_sources_again(down, tmp_path):
    """A licence server that was down must not retire a source for ever."""
    working = [FINE, COARSE]
    broken = [raises if source == down else working[source] for source in (0, 1)]
    options = {"model": fixed(), "journal": tmp_path / "run.jsonl"}
    with pytest.warns(UserWarning, match="tried again when the run is resumed"):
        before = integrate(pair(*broken), UNIT, budget=8, **options)
    assert before.stopped == ("failures" if down == 0 else "budget")
    assert f"of {before.names[down]}, which was retired" in str(amsbq.read_result(tmp_path / "run.jsonl").diagnose())
    after = integrate(pair(*working), UNIT, budget=8 if down == 0 else 12, **options)
    new = after.evaluations[len(before.evaluations) :]
    assert any(e.source == down for e in new)
    assert {e.status for e in new} == {"ok"}
    assert after.stopped == "budget"
    assert read_state(tmp_path / "run.jsonl").stopped == "budget"


def test_waiting_for_a_turn_is_no_timeout():
    def slow(x):
        time.sleep(0.2)
        return FINE(x)

    with ThreadPoolExecutor(1) as executor:
        source = Source(slow, timeout=5.0)
        result = integrate(source, UNIT, budget=6, model=fixed(L=1), executor=executor, workers=6)
    assert {e.status for e in result.evaluations} == {"ok"}


def slow_but_in_time(x):
    time.sleep(1.0)
    return fine(x)


def test_waiting_in_the_queue_of_a_process_pool_is_no_timeout():
    """A pool of one process says of two calls that they are running."""
    with ProcessPoolExecutor(1) as executor:
        source = Source(slow_but_in_time, timeout=1.7)
        result = integrate(source, UNIT, budget=4, model=fixed(L=1), executor=executor, workers=4)
    assert [e.reason for e in result.evaluations] == [""] * 4


def hang_at_first(folder, x):
    """Hang in two calls, in a program and then in Python, and work from then on."""
    calls = len(list(folder.glob("call *")))
    (folder / f"call {calls}").touch()
    if calls == 0:
        program = subprocess.Popen(["sleep", "3600"])
        (folder / "pid").write_text(str(program.pid))
        program.wait()
    if calls == 1:
        time.sleep(3600)
    return fine(x)


def executor_named(name):
    if name == "dask":
        distributed = pytest.importorskip("distributed")
        cluster = distributed.LocalCluster(1, threads_per_worker=1, processes=False, dashboard_address=None)
        return distributed.Client(cluster, set_as_default=False)
    return {"thread pool": ThreadPoolExecutor, "process pool": ProcessPoolExecutor}[name](1)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", ["thread pool", "process pool", "dask"])
def test_time_outs_hold_in_every_executor(name, tmp_path):
    """There is one worker only: all later evaluations need that of those that hung."""
    with executor_named(name) as executor:
        source = Source(partial(hang_at_first, tmp_path), timeout=1.0, cost="measured")
        result = integrate(
            source, UNIT, budget=50, model=fixed(L=1), executor=executor, workers=2, max_evaluations=5, progress=False
        )
        by_id = sorted(result.evaluations, key=lambda e: e.id)
        assert [e.status for e in by_id] == ["failed", "failed", "ok", "ok", "ok"]
        assert all("timeout of 1 s" in e.reason and e.cost == 1.0 for e in by_id[:2])
        assert "its thread cannot be ended, and goes on" in by_id[1].reason
    program = int((tmp_path / "pid").read_text())
    if name == "process pool":  # of a process with one call at a time it is known what that has started
        assert eventually(lambda: not is_running(program))
    else:
        os.kill(program, signal.SIGKILL)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
def test_a_timeout_kills_the_program_of_a_command(pool, workers, tmp_path):
    command = Command(["sh", "-c", "echo $$ >> pids; sleep 3600 & echo $! >> pids; wait; echo {x}"], ["x"], tmp_path)
    sources, initial = [FINE, Source(command, timeout=0.5, cost=0.1)], [(1, [0.5]), (0, [0.5])]
    with nullcontext() if pool is None else pool(workers) as executor:
        result = integrate(
            sources, UNIT, budget=5, executor=executor, workers=workers, initial=initial, max_evaluations=2
        )
    failed = [e for e in result.evaluations if e.source == 1]
    assert failed
    assert {e.reason for e in failed} == {"it took more than the timeout of 0.5 s"}
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) == 2 * len(failed)
    assert eventually(lambda: not any(is_running(pid) for pid in pids))


def test_an_executor_whose_threads_all_hang_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "SETTINGS", replace(executors.SETTINGS, stalled=1.0))
    done = threading.Event()
    with ThreadPoolExecutor(2) as executor:
        for _ in range(2):
            executor.submit(done.wait)
        source = Source(FINE, timeout=0.5)
        with pytest.raises(RuntimeError, match="no evaluation has begun or ended for 2 s, although none may take more"):
            integrate(source, UNIT, budget=5, executor=executor, workers=2, journal=tmp_path / "run.jsonl")
        done.set()
    assert len(read_state(tmp_path / "run.jsonl").pending) == 2
    assert read_state(tmp_path / "run.jsonl").evaluations == []


def test_runs_that_end_before_they_begin():
    def interrupt(x):
        raise KeyboardInterrupt

    with pytest.raises(RuntimeError, match=r"the run has stopped \(done\)"):
        integrate(FINE, UNIT, budget=3, model=fixed(L=1), stop=lambda it: "done")
    for on_interrupt in ("raise", "return"):
        with pytest.raises(KeyboardInterrupt) as caught:
            integrate(interrupt, UNIT, budget=3, model=fixed(L=1), on_interrupt=on_interrupt)
        assert caught.value.result is None


def test_a_cost_function_that_fails_later_ends_the_run(tmp_path):
    calls = [0]

    def price(x):
        calls[0] += 1
        if calls[0] > 2000:
            raise RuntimeError("no price")
        return 1.0

    sources = [Source(FINE, cost=price, name="fine"), Source(COARSE, cost=0.1)]
    with pytest.raises(ValueError, match=r"cost of fine at x = .* raised RuntimeError: no price"):
        integrate(sources, UNIT, budget=50, model=fixed(), journal=tmp_path / "run.jsonl")
    assert amsbq.read_result(tmp_path / "run.jsonl").spent > 0


def test_what_is_running_is_told_before_an_error_ends_the_run(tmp_path):
    """It is paid for."""
    started = threading.Event()

    def slow(x):
        started.set()
        time.sleep(0.3)
        return FINE(x)

    def broken(it):
        if it.pending:
            started.wait(60)
            raise RuntimeError("a stop rule of the user")

    with pytest.raises(RuntimeError, match="a stop rule of the user"):
        integrate(slow, UNIT, budget=9, model=fixed(L=1), workers=2, stop=broken, journal=tmp_path / "run.jsonl")
    result = amsbq.read_result(tmp_path / "run.jsonl")
    assert (len(result.evaluations), result.pending) == (1, 0)


def test_workers_do_not_wait_for_each_other():
    """One of eight does not end before the others have made a dozen evaluations."""
    others, lock, enough, waited = [0], threading.Lock(), threading.Event(), []

    def secondary(x):
        with lock:
            others[0] += 1
            first = others[0] == 1
            if others[0] > 12:
                enough.set()
        if first:
            waited.append(enough.wait(120))
        return COARSE(x)

    integrate(pair(secondary=secondary), UNIT, budget=40, model=fixed(), workers=8, max_evaluations=60)
    assert waited == [True]


def test_eight_workers_with_random_delays_keep_to_the_budget():
    rng, lock, spent = np.random.default_rng(0), threading.Lock(), []

    def delayed(function, cost):
        def evaluate(x):
            with lock:
                spent.append(cost)
                pause = rng.exponential(0.03)
            time.sleep(pause)
            return function(x)

        return evaluate

    sources = [Source(delayed(FINE, 1.0)), Source(delayed(COARSE, 0.05), cost=0.05)]
    result = integrate(sources, UNIT, budget=6, model=fixed(), workers=8)
    assert sum(spent) <= 6 + 1e-9
    assert result.spent == pytest.approx(sum(spent))
    assert result.stopped == "budget"


def test_measured_costs_are_the_seconds_that_it_took():
    def slow(x):
        time.sleep(0.03 * (1 + x[0]))
        return FINE(x)

    result = integrate(
        [Source(slow, cost="measured"), Source(COARSE, cost="measured")], UNIT, budget=0.5, model=fixed()
    )
    primary = [e for e in result.evaluations if e.source == 0]
    assert all(0.03 <= e.cost < 0.5 for e in primary)
    assert all(e.cost < 0.03 for e in result.evaluations if e.source == 1)


def test_sources_report_variance_and_cost():
    def reports(x):
        return Observation(FINE(x), variance=1e-4, cost=0.5)

    result = integrate(pair(reports), UNIT, budget=4, model=fixed())
    primary = [e for e in result.evaluations if e.source == 0]
    assert {(e.variance, e.cost) for e in primary} == {(1e-4, 0.5)}


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
@pytest.mark.parametrize("how", ["signal", "in the source"])
def test_interruption_keeps_what_is_known(how, on_interrupt, capfd):
    calls = [0]

    def interrupted(x):
        calls[0] += 1
        if calls[0] == 9:
            if how == "signal":
                os.kill(os.getpid(), signal.SIGINT)
            else:
                raise KeyboardInterrupt
        return COARSE(x)

    options = {"budget": 30, "model": fixed(), "on_interrupt": on_interrupt}
    if on_interrupt == "return":
        result = integrate(pair(secondary=interrupted), UNIT, **options)
    else:
        with pytest.raises(KeyboardInterrupt) as caught:
            integrate(pair(secondary=interrupted), UNIT, **options)
        result = caught.value.result
    assert result.stopped == "interrupted"
    assert np.isfinite(result.mean)
    assert sum(e.source == 1 for e in result.evaluations) == (9 if how == "signal" else 8)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert ("stopping after what is running" in capfd.readouterr().err) == (how == "signal")


def test_progress_is_given_the_integrator():
    seen = []
    result = integrate(pair(), UNIT, budget=3, model=fixed(), progress=seen.append)
    assert set(map(id, seen)) == {id(result.integrator)}
    assert len(seen) == 2 * len(result.evaluations)  # asked, and told


def test_a_generator_gives_the_seed():
    by_generator = integrate(pair(), UNIT, budget=3, model=fixed(), rng=np.random.default_rng(5))
    by_seed = integrate(pair(), UNIT, budget=3, model=fixed(), seed=int(np.random.default_rng(5).integers(2**31)))
    assert [e.x.tolist() for e in by_generator.evaluations] == [e.x.tolist() for e in by_seed.evaluations]
    assert by_generator.mean == by_seed.mean
    x = np.linspace(0.05, 0.95, 6)
    estimates = [
        amsbq.estimate(0, x, np.sin(6 * x), UNIT, **options)
        for options in ({}, {"rng": 0}, {"rng": np.random.default_rng(5)}, {"seed": by_seed.integrator.seed})
    ]
    assert estimates[0].interval() == estimates[1].interval()
    assert estimates[2].interval() == estimates[3].interval() != estimates[0].interval()
    for call in (lambda **o: integrate(pair(), UNIT, budget=3, **o), lambda **o: amsbq.estimate(0, x, x, UNIT, **o)):
        with pytest.raises(ValueError, match="either seed or rng"):
            call(seed=1, rng=1)


def test_bad_input_costs_nothing():
    calls = []

    def counted(x):
        calls.append(x)
        return 0.0

    bad = ({"budget": -1}, {"workers": 0}, {"rel_tol": 0}, {"abs_tol": "small"}, {"max_evaluations": 1.5})
    for arguments in (*bad, {"max_evaluations": 0}, {"executor": "threads"}, {"on_interrupt": "ignore"}):
        with pytest.raises((TypeError, ValueError)):
            integrate(pair(counted, counted), UNIT, **{"budget": 5, **arguments})
    with pytest.raises(TypeError, match="fine has no function to call"):
        integrate([Source(name="fine")], UNIT, budget=5)
    assert not calls


def test_what_a_result_shows():
    def now_and_then(x):
        return np.nan if x[0] > 0.8 else COARSE(x)

    sources = [Source(FINE, name="<b>fine</b>"), Source(now_and_then, cost=0.1, name="coarse")]
    result = integrate(sources, UNIT, budget=4, model=fixed())
    text = str(result)
    assert f"{result.mean:.3f} ± {result.std:.3f}" in text
    assert "the budget does not pay for more" in text
    assert "of 4" in text
    html = result._repr_html_()
    assert "&lt;b&gt;fine&lt;/b&gt;" in html
    assert "<b>fine" not in html
    assert html.count("<tr>") == 3
    table = result.to_pandas()
    assert len(table) == len(result.evaluations)
    assert list(table.columns[:4]) == ["id", "source", "x0", "value"]
    assert table["cost"].sum() == pytest.approx(result.spent)
    assert set(table["status"]) == {"ok", "failed"}


def test_progress_on_a_terminal():
    """In a real one: the bar, the estimate, and how often each source was evaluated."""
    code = (
        "import amsbq\n"
        "sources = [lambda x: x[0] ** 2, amsbq.Source(lambda x: x[0], cost=0.1, name='cheap')]\n"
        "amsbq.integrate(sources, (0, 1), budget=3, model='icm')\n"
    )
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "140"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=follower, stdout=follower, env=environment) as process:
        os.close(follower)
        seen = b""
        while True:
            readable, _, _ = select.select([leader], [], [], 120)
            try:
                chunk = os.read(leader, 65536) if readable else b""
            except OSError:
                chunk = b""
            if not chunk:
                break
            seen += chunk
    os.close(leader)
    assert process.returncode == 0
    text = seen.decode()
    assert "±" in text
    assert "of 3" in text
    assert "cheap" in text


def test_no_progress_without_a_terminal(capfd):
    integrate(pair(), UNIT, budget=2.5, model=fixed())
    assert capfd.readouterr() == ("", "")


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_runs_in_several_threads_leave_nothing_changed():
    """Neither the number of threads of linear algebra nor the filters of warnings, which all threads share."""
    filters, shown = list(warnings.filters), warnings.showwarning

    def run(seed):
        integrate(pair(), [stats.beta(2, 3 + 0.1 * seed)], budget=2.5, model="icm", seed=seed)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        for _ in range(3):
            threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert blas_threads() == before
            assert warnings.filters == filters
            assert warnings.showwarning is shown


def test_the_limit_of_threads_is_lifted_when_nobody_needs_it():
    """In whatever order its users come and go."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = threads_for(10), threads_for(20)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
    assert set(before) == {2}


@pytest.mark.filterwarnings("ignore:the mesh is coarse")
def test_warnings_of_sources_are_not_those_of_the_model(tmp_path):
    """They come from other threads while the model is learned."""

    def warns(x):
        for _ in range(20):
            warnings.warn("the mesh is coarse", stacklevel=1)
            time.sleep(0.005)
        return FINE(x)

    integrate(pair(warns, warns), UNIT, budget=3, model="icm", workers=4, journal=tmp_path / "run.jsonl")
    fits = [event for event in read_journal(tmp_path / "run.jsonl")[1] if event["event"] == "fitted"]
    assert fits
    assert not any("mesh" in message for fit in fits for message in fit["warnings"])
