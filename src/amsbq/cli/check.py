"""``amsbq check``: every source of a problem evaluated once, to see what a run would do before any money is spent."""

from __future__ import annotations

import argparse
import math
import shlex
import time
from collections.abc import Iterator
from concurrent.futures import wait
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..common.validation import Array, numbers_text
from ..design.failures import recorded_reason, rejection
from ..design.observations import Observation, OutputsFunction
from ..design.sources import Source
from ..execution.evaluate import Outcome
from ..execution.executors import Dispatcher
from ..posterior.outputs import by_output
from ..problems.problem_file import ProblemFile, load_problem
from ..processes.pool import ResilientProcessPool
from ..simulators.answers import error_text
from ..simulators.commands import Command
from ..simulators.functions import PythonFunction
from ..simulators.numerals import Quantity
from ..simulators.output import as_answer
from ..simulators.umbridge import UMBridge
from .exits import ExitCode, UserError


@dataclass(frozen=True)
class CheckSettings:
    """How much is shown, and what is worth a remark."""

    #: lines shown of each filled template, and of the output of a failed evaluation
    lines: int = 20
    #: smallest reported factor between declared and measured cost ratios
    disagreement: float = 5.0
    #: seconds below which times say nothing about costs: starting a program takes as long
    shortest: float = 0.1
    #: smallest fraction of the workers that counts as running in parallel
    fair: float = 0.7


SETTINGS = CheckSettings()


@dataclass(frozen=True)
class Checked:
    """One evaluation of a source: its outcome, and the quantities in the output of a program, with units."""

    outcome: Outcome
    found: dict[str, Quantity]
    wrong: str  #: why the value is not acceptable; empty if it is


def check_command(options: argparse.Namespace) -> int:
    """Evaluate each source of a problem file once and print the results; nothing is written to a journal or charged."""
    problem = load_problem(options.problem)
    problem.require_functions()
    x = _location(problem, options.at or [])
    print(f"at {', '.join(f'{name} = {value:.6g}' for name, value in zip(problem.names, x, strict=True))}")
    it, checked = problem.integrator(), []
    names = it.names
    for number, (name, source) in enumerate(zip(names, problem.sources, strict=True)):
        cost = "measured: as reported, or else in seconds" if source.measured else f"{source.cost:g}"
        print(f"\n{name} ({'primary source' if number == 0 else 'secondary source'}, cost {cost})", flush=True)
        for line in _described(source, x):
            print(f"  {line}")
        checked.append(_evaluated(source, it.problem.sources[number].function, name, x, it.outputs))
        for line in _found(checked[-1], it.outputs):
            print(f"  {line}", flush=True)
    wrong = [name for name, one in zip(names, checked, strict=True) if one.wrong]
    print()
    for line in _outlook(problem, names, checked) if not wrong else []:
        print(line)
    if options.workers > 1 and not wrong:
        alone = checked[0].outcome.seconds
        print(_at_once(problem.sources[0], it.problem.sources[0].function, names[0], x, options.workers, alone))
    print(f"wrong: {', '.join(wrong)}" if wrong else f"all sources answer; continue with: amsbq run {options.problem}")
    return ExitCode.FAILED if wrong else ExitCode.DONE


def _location(problem: ProblemFile, given: list[str]) -> Array:
    """Return the medians of the inputs, (D,), except for those that the user sets as NAME=VALUE."""
    x = np.array(problem.measure.median, dtype=float)
    for pair in (pair for text in given for pair in text.split(",")):
        name, _, value = pair.partition("=")
        if name.strip() not in problem.names:
            raise UserError(f"--at takes NAME=VALUE of {', '.join(problem.names)}, got {pair!r}")
        try:
            x[problem.names.index(name.strip())] = float(value)
        except ValueError:
            raise UserError(f"--at takes NAME=VALUE with a number, got {pair!r}") from None
    try:
        problem.measure.check_points(x[None], "--at", problem.names)
    except ValueError as error:
        raise UserError(str(error)) from None
    return x


def _described(source: Source, x: Array) -> Iterator[str]:
    """Yield the call at x, with the input files that are written for it."""
    function: Any = source.function
    if isinstance(function, Command):
        arguments, texts = function.filled(x)
        yield f"command: {shlex.join(arguments)}"
        for name, text in texts.items():
            lines = text.splitlines()
            yield f"{name}:"
            yield from (f"  | {line}" for line in lines[: SETTINGS.lines])
            if len(lines) > SETTINGS.lines:
                yield f"  ... {len(lines) - SETTINGS.lines} more lines"
    elif isinstance(function, PythonFunction):
        yield f"python: {function.module}:{function.function}"
    elif isinstance(function, UMBridge):
        yield f"umbridge: {function.source_definition()['umbridge']}, model {function.model}"


def _evaluated(source: Source, function: Any, name: str, x: Array, outputs: tuple[str, ...] | None) -> Checked:
    """Evaluate a source as a run would, with the given function and outputs."""
    found: dict[str, Quantity] = {}
    own = source.outputs or outputs or ()
    if isinstance(source.function, Command):
        command = source.function.numbered(name, "check", source.valid)

        def function(x: Array) -> Observation | dict[str, float]:
            found.update(command.quantities(x))
            return as_answer(found)

        if outputs is not None:
            function = OutputsFunction(function, outputs, own)
    pool = ResilientProcessPool(1) if isinstance(source.function, PythonFunction) else None
    with pool or nullcontext(), closing(Dispatcher(pool, threads=True)) as dispatcher:
        started = dispatcher.start(function, x, source.timeout)
        try:
            outcome = started.future.result(source.timeout)
        except TimeoutError:
            outcome = started.time_out()
        except Exception as error:  # the process died
            outcome = Outcome(None, error_text(error), 0.0)
    observation = outcome.observation
    wrong = recorded_reason(outcome.reason) if observation is None else ""
    if observation is not None:
        value, variance = observation.value, observation.variance
        if outputs is None:
            wrong = rejection(value, source.valid, variance)
        else:
            each = zip(outputs, value.tolist(), by_output(source.valid, outputs), variance.tolist(), strict=True)
            why = {name: rejection(*of_output) for name, *of_output in each if name in own}
            wrong = "; ".join(f"{name}: {reason}" for name, reason in why.items() if reason)
    return Checked(outcome, found, wrong)


def _at_once(source: Source, function: Any, name: str, x: Array, workers: int, alone: float) -> str:
    """Return a sentence on how many of the requested parallel evaluations of the primary source really run at once."""
    if alone < SETTINGS.shortest:
        return f"{name} takes {alone:.2g} s, too short to measure how many run at once"
    called: list[Any] = [function] * workers
    if isinstance(source.function, Command):  # each in a separate work directory
        called = [source.function.numbered(name, f"check-{i}", source.valid) for i in range(workers)]
    pool = ResilientProcessPool(workers) if isinstance(source.function, PythonFunction) else None
    with pool or nullcontext(), closing(Dispatcher(pool, threads=True)) as dispatcher:
        if pool is not None:  # processes take a moment to start
            wait([pool.submit(time.sleep, SETTINGS.shortest) for _ in range(workers)])
        began = time.monotonic()
        wait([dispatcher.start(each, x, source.timeout).future for each in called], source.timeout)
        took = time.monotonic() - began
    found = min(workers * alone / max(took, alone), float(workers))
    said = f"{workers} of {name} at once took {took:.3g} s, and one alone {alone:.3g} s: {found:.2g} run in parallel"
    if found > SETTINGS.fair * workers:
        return said
    return f"{said}. They share a resource, such as cores, memory or licences: more workers than that bring no gain"


def _found(checked: Checked, outputs: tuple[str, ...] | None) -> Iterator[str]:
    """Yield lines on an evaluation: its time, its values and its errors."""
    outcome, observation = checked.outcome, checked.outcome.observation
    yield f"took {outcome.seconds:.3g} s"
    for name, quantity in checked.found.items():
        yield f"{name} = {quantity.value:.10g} {quantity.unit}".rstrip()
    if observation is not None and not checked.found:
        yield f"value = {numbers_text(observation.value, 10, names=outputs)}"
    if observation is not None and np.any(observation.variance) and "variance" not in checked.found:
        yield f"variance = {numbers_text(observation.variance)}"
    if not checked.wrong:
        return
    yield f"WRONG: {checked.wrong}"
    for name, text in (("standard output", outcome.log.stdout), ("standard error", outcome.log.stderr)):
        lines = text.rstrip().splitlines()
        if lines:
            yield f"the end of its {name}:"
            yield from (f"  | {line}" for line in lines[-SETTINGS.lines :])
    if outcome.log.folder:
        yield f"its work directory: {outcome.log.folder}"


def _outlook(problem: ProblemFile, names: list[str], checked: list[Checked]) -> Iterator[str]:
    """Yield how many evaluations of each source the budget buys, and where costs and times disagree."""
    costs = [_cost(source, one) for source, one in zip(problem.sources, checked, strict=True)]
    seconds = [one.outcome.seconds for one in checked]
    buys: list[str] = []
    if math.isinf(problem.budget):
        goals = problem.described.goals
        ends = {"its tolerance is reached": goals.relative, "more evaluations do not pay": goals.error_cost}
        given = [end for end, goal in ends.items() if goal is not None]
        yield f"there is no budget: the run ends when {' or '.join(given)}"
    for name, cost, took in zip(names, costs, seconds, strict=True):
        if cost > 0 and problem.budget < math.inf:
            number = math.floor(problem.budget / cost * (1 + 1e-9))  # 0.3 / 0.1 is a little below 3
            buys.append(f"{number} of {name} ({_duration(number * took)})")
    if buys:
        kept = problem.kept(problem.budget)
        rest = f", besides the {kept:g} reserved for certify," if kept else ""
        yield f"a budget of {problem.budget:g}{rest} buys {' or '.join(buys)}, one at a time"
    for name, cost, took in list(zip(names, costs, seconds, strict=True))[1:]:
        if cost <= 0 or min(costs[0], took) <= 0 or seconds[0] < SETTINGS.shortest:
            continue
        by_cost, by_clock = costs[0] / cost, seconds[0] / took
        if max(by_cost / by_clock, by_clock / by_cost) > SETTINGS.disagreement:
            yield (
                f"{name} is {by_cost:.3g} times cheaper than {names[0]} by its cost, and {by_clock:.3g} times faster"
            )


def _cost(source: Source, checked: Checked) -> float:
    """Return the cost of an evaluation: the reported one, the declared one, or its time in seconds."""
    observation = checked.outcome.observation
    if observation is not None and observation.cost is not None:
        return observation.cost
    return checked.outcome.seconds if isinstance(source.cost, str) else float(source.cost)  # type: ignore[arg-type]


def _duration(seconds: float) -> str:
    """Return a time in the largest unit in which it is at least 1.5.

    >>> _duration(90), _duration(7200)
    ('1.5 min', '2 h')
    """
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} s"
