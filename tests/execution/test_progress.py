"""Lines of progress, where there is no terminal; the bar is tested with whole runs."""

import pytest

import amsbq
from amsbq.execution.progress import LineProgress, progress_display


def integrator():
    sources = [amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)]
    return amsbq.Integrator(sources, [(0, 1), (0, 1)], budget=4, model="icm")


def lines(capsys):
    return capsys.readouterr().err.splitlines()


def test_one_line_for_each_evaluation(capsys):
    it, show = integrator(), LineProgress()
    show(it)
    assert lines(capsys) == []
    for query in it.ask(3):
        it.tell(query, 0.25 + query.x.sum())
    show(it)
    show(it)
    made = [sum(e.source == source for e in it.evaluations) for source in (0, 1)]
    latest = it.evaluations[-1]
    totals = f"{made[0] + 0.1 * made[1]:.4g} of 4 · {made[0]} fine, {made[1]} coarse"
    integral = amsbq.Estimate([latest.mean], [latest.std]).summary().split(" (std)")[0]
    assert lines(capsys) == [f"{totals} · {integral}"] * 3


def test_verbose_lines_say_what_was_found(capsys):
    it, show = integrator(), LineProgress(verbose=True)
    show(it)
    first, second = it.ask(2)
    it.tell(first, 1.5)
    it.fail(second, "no mesh")
    show(it)
    told, _, failed, total = lines(capsys)
    assert told == f"{first.id}: {it.names[first.source]}({first.x[0]:.4g}, {first.x[1]:.4g}) = 1.5"
    assert failed == f"{second.id}: {it.names[second.source]}({second.x[0]:.4g}, {second.x[1]:.4g}) = failed, no mesh"
    assert " · 1 failed · " in total


def test_a_resumed_run_starts_with_its_latest_evaluation(capsys):
    it, show = integrator(), LineProgress()
    for query in it.ask(3):
        it.tell(query, query.x.sum())
    show(it)
    assert len(lines(capsys)) == 1
    it.tell(it.ask(), 0.5)
    show(it)
    assert len(lines(capsys)) == 1


def test_names_in_the_bar_are_text(capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    names = ["[/]", "[red]fine[/red]", "a[bold"]
    it = amsbq.Integrator([amsbq.Source(name=name) for name in names], [(0, 1)], budget=4, model="icm")
    with progress_display(it, True) as progress:
        it.tell(it.ask(), 1.0)
        progress(it)
    assert "1 [/], 0 [red]fine[/red], 0 a[bold" in capsys.readouterr().err


def test_a_callable_is_called(capfd):
    it, seen = integrator(), []
    with progress_display(it, seen.append) as progress:
        progress(it)
    assert seen == [it]
    with progress_display(it, False) as progress:
        progress(it)
    assert capfd.readouterr() == ("", "")
