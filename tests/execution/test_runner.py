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
from functools import wraps

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq import Observation, Source, integrate, stopping
from amsbq.execution.state import read_state
from tests.design.test_integrator import COARSE, FINE, TRUTH, UNIT, fixed


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
        result = integrate(pair(secondary=MISBEHAVIOUR[name][0]), UNIT, budget=5, model="icm")
    low, high = result.interval(0.99)
    assert low < TRUTH < high
    assert sum(e.status == "failed" for e in result.evaluations) == 5


def test_nothing_ever_works():
    """A source that fails in the same way at once fails everywhere: the budget is not spent on finding out."""
    with pytest.raises(RuntimeError, match=r"no evaluation .*\(failures\).* diverged"):
        integrate(pair(raises, raises), UNIT, budget=20)


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


def test_a_rate_below_the_floor_stops_as_long_as_the_rule_is_given(tmp_path):
    options = {"model": fixed(), "journal": tmp_path / "run.jsonl"}
    result = integrate(pair(), UNIT, budget=5, stop=stopping.rate_below(2.0), **options)
    assert (result.stopped, result.integrator.rate < 2.0) == ("rate", True)
    assert "further evaluations are worth too little for their cost" in str(result)
    again = integrate(pair(), UNIT, budget=5, stop=stopping.rate_below(2.0), **options)
    assert (again.stopped, len(again.evaluations)) == ("rate", len(result.evaluations))
    assert integrate(pair(), UNIT, budget=5, **options).stopped == "budget"


@pytest.mark.parametrize(("workers", "most"), [(8, 2), (4, 5), (1, 3)])
def test_no_more_evaluations_than_are_allowed(workers, most):
    result = integrate(pair(), UNIT, budget=100, model=fixed(), workers=workers, max_evaluations=most)
    assert len(result.evaluations) == most


@pytest.mark.parametrize("down", [0, 1])
def test_a_resumed_run_tries_retired_sources_again(down, tmp_path):
    """A licence server that was down must not retire a source for ever."""
    is_down = [True]

    @wraps((FINE, COARSE)[down])
    def unreliable(x):
        return raises(x) if is_down[0] else (FINE, COARSE)[down](x)

    sources = pair(unreliable) if down == 0 else pair(secondary=unreliable)
    options = {"model": fixed(), "journal": tmp_path / "run.jsonl"}
    with warnings.catch_warnings(record=True, action="always") as issued:
        before = integrate(sources, UNIT, budget=8, **options)
    assert before.stopped == ("failures" if down == 0 else "budget")
    assert ("failed repeatedly" in str(before)) == (down == 0)
    if down == 1:
        assert "tried again when the run is resumed" in str(issued[0].message)
        assert "of coarse, which was retired" in str(amsbq.read_result(tmp_path / "run.jsonl").diagnose())
    is_down[0] = False
    after = integrate(sources, UNIT, budget=8 if down == 0 else 12, **options)
    new = after.evaluations[len(before.evaluations) :]
    assert any(e.source == down for e in new)
    assert {e.status for e in new} == {"ok"}
    assert after.stopped == "budget"
    assert read_state(tmp_path / "run.jsonl").stopped == "budget"


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


@pytest.mark.parametrize("recorded", [True, False])
def test_a_run_without_a_value_speaks_of_its_journal_only_if_it_has_one(tmp_path, recorded):
    journal = tmp_path / "run.jsonl" if recorded else None
    with pytest.raises(RuntimeError, match="no evaluation was successful") as raised:
        amsbq.integrate(lambda x: float("nan"), UNIT, budget=3, model="icm", journal=journal)
    assert ("the same call with the same journal continues" in str(raised.value)) == recorded


def test_values_without_a_variance_are_the_same_failure_each_time():
    """However long they are: the quotation of what a simulator returned is cut."""
    calls = []

    def nan_variance(x):
        calls.append(x)
        return amsbq.Observation(float(x[0]) * 10.0 ** -len(calls), float("nan"))

    with pytest.raises(RuntimeError, match="the variance must be finite"):
        amsbq.integrate(nan_variance, UNIT, budget=9, model="icm")
    assert len(calls) == 2


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
@pytest.mark.parametrize("how", ["signal", "in the source"])
def test_interruption_keeps_what_is_known(how, on_interrupt, capfd):
    calls, before = [0], signal.getsignal(signal.SIGINT)  # which is ignored in the background of a shell

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
    assert signal.getsignal(signal.SIGINT) is before
    assert ("stopping after running evaluations" in capfd.readouterr().err) == (how == "signal")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_an_interrupt_makes_fail_is_made_again(workers, tmp_path):
    """Ctrl-C reaches the programs of a source as well."""
    calls = []

    def interrupted(x):
        calls.append(x)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            raise RuntimeError("its program was ended by signal 2")
        return FINE(x)

    options = {"budget": 6, "model": fixed(L=1), "workers": workers, "journal": tmp_path / "run.jsonl"}
    result = integrate(interrupted, UNIT, on_interrupt="return", **options)
    assert (result.stopped, result.pending) == ("interrupted", 1)
    resumed = integrate(interrupted, UNIT, **options)
    assert [e.status for e in resumed.evaluations] == ["ok"] * 6
    assert len(calls) == 7


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
        for options in ({}, {"rng": 0}, {"rng": np.random.default_rng(5)}, {"seed": by_seed.integrator.problem.seed})
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
    assert "the remaining budget does not cover another useful evaluation" in text
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


def counted_pair(calls, vectorized):
    """Two sources, and a list of the numbers of locations that the primary one was called with."""

    def fine(X):
        calls.append(len(X))
        return np.sin(3 * X[:, 0]) + X[:, 1]

    def coarse(X):
        return np.sin(3 * X[:, 0])

    if vectorized:
        return [amsbq.Source(fine, vectorized=True), amsbq.Source(coarse, cost=0.1, vectorized=True)]
    return [amsbq.Source(lambda x: fine(x[None])[0]), amsbq.Source(lambda x: coarse(x[None])[0], cost=0.1)]


CUBE = amsbq.Uniform([0, 0, 0], 1)
RUNS = {
    "initial design": (
        lambda *problem: amsbq.integrate(*problem, budget=6, initial=[(0, [0.1 * i, 0.5, 0.5]) for i in range(4)]),
        lambda sizes: sizes[0] == 4,
    ),
    "batches": (lambda *problem: amsbq.integrate(*problem, budget=10, workers=4), lambda sizes: max(sizes[1:]) >= 2),
    "Monte Carlo": (lambda *problem: amsbq.baselines.monte_carlo(*problem, budget=600), lambda sizes: len(sizes) == 3),
    "multi-fidelity": (
        lambda *problem: amsbq.baselines.multifidelity_monte_carlo(*problem, budget=200),
        lambda sizes: len(sizes) < 20,
    ),
    "adaptive": (
        lambda *problem: amsbq.baselines.control_variate(*problem, budget=50),
        lambda sizes: set(sizes) == {1},
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_vectorized_sources_are_called_once_for_several_evaluations(name):
    made, expected = RUNS[name]
    sizes, one_by_one = [], []
    found, same = (made(counted_pair(*how), CUBE) for how in ((sizes, True), (one_by_one, False)))
    assert expected(sizes)
    assert set(one_by_one) == {1}
    assert sum(sizes) == len(one_by_one)
    if name != "batches":  # threads end in another order
        assert [(e.source, e.value, e.mean) for e in found.evaluations] == [
            (e.source, e.value, e.mean) for e in same.evaluations
        ]


def test_a_vectorized_source_that_fails_is_asked_one_by_one():
    def picky(X):
        if len(X) > 1 and (X[:, 0] > 0.8).any():
            raise RuntimeError("not all of them")
        return np.where(X[:, 0] > 0.9, np.nan, X[:, 0])

    result = amsbq.baselines.monte_carlo(amsbq.Source(picky, vectorized=True), amsbq.Uniform(0, 1), budget=200)
    ok = [e for e in result.evaluations if e.status == "ok"]
    assert all(e.value == e.x[0] < 0.9 for e in ok)
    assert {e.reason for e in result.evaluations if e.status != "ok"} == {
        "ValueError: the value must be finite, got nan; the simulator returned nan"
    }
    assert len(ok) == sum(e.x[0] <= 0.9 for e in result.evaluations)
