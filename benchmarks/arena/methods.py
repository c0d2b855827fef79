"""The competitors by name: each turns a problem, a stage and a seed into a trajectory of estimates for each output.

A stage is a budget, with a separate run for each, or a set of given data. Active methods are recorded as they go; the
others have one estimate, at the end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

import amsbq
from amsbq import baselines
from amsbq.inference.structures import ModelName
from benchmarks.arena import designs

from .problem import Moments, Problem
from .scores import LEVELS, Row

#: packages and files of the library that determine the results of model-based methods, and of sampling methods
MODEL_CODE = ("common", "measures", "gp", "inference", "posterior", "design", "api.py", "estimation.py")
SAMPLING_CODE = ("common", "measures", "baselines")

Stage: TypeAlias = str
BUDGETS: tuple[Stage, ...] = ("3", "5", "10")  #: of every family, in primary evaluations
LONG_BUDGET: Stage = "20"  #: of families in which a good method has converged by then
LONG_FAMILIES = ("smooth", "dependent", "varying-cost", "one-source")
TRACED = ("10", LONG_BUDGET)  #: budgets for which the whole trajectory is kept, for certified costs


@dataclass(frozen=True)
class MethodSettings:
    """Settings of methods; results are recomputed when a number changes."""

    #: of an active run, so that sources which cost nothing do not take minutes; it has what it found by then
    max_evaluations: int = 150
    #: seconds of the processor after which an active run is stopped; it has what it found by then
    cpu_limit: float = 120.0
    #: of a stored trajectory: the last estimate in each cell of this width is kept
    cost_step: float = 0.5
    #: scrambled sequences among which Sobol points are divided: with more, there is no error bar at a budget of 5
    replicates: int = 4
    #: draws of a pilot, if the budget does not pay for the usual one
    small_pilots: tuple[int, ...] = (5, 4, 3, 2)
    #: scales below this share of the output's standard deviation are rounding errors
    least_scale: float = 1e-14
    #: at which peers evaluate sources that cost nothing: 10,000 evaluations for a primary one
    least_cost: float = 1e-4
    #: of the logarithm of an integral: estimates below it are zero or negative
    least_log: float = -50.0
    #: raise it when the way in which runs are recorded changes otherwise
    version: int = 2


SETTINGS = MethodSettings()


@dataclass(frozen=True)
class Trajectory:
    """The estimates of one output by a method: rows in the order of their costs, and how the run ended."""

    rows: list[Row]
    evaluations: int
    stopped: str = ""


Run: TypeAlias = Callable[[Problem, Sequence[Moments], Stage, int], list[Trajectory]]


@dataclass(frozen=True)
class Method:
    """A competitor."""

    name: str
    run: Run
    code: tuple[str, ...]  # the part of the library that determines its results
    default: bool = True  # whether it runs unless methods are chosen by name
    active: bool = False  # whether it chooses its evaluations one after the other
    given_data: bool = False  # whether it estimates from a fixed design
    needs_secondary: bool = False
    needs_levels: bool = False
    needs_knobs: bool = False
    needs_constant_costs: bool = False

    def stages(self, problem: Problem) -> tuple[Stage, ...]:
        """Return the stages at which the method solves a problem; none if it cannot."""
        if (
            (problem.design and not self.given_data)
            or (self.given_data and not (problem.plain or problem.design))
            or (self.needs_secondary and (len(problem.functions) < 2 or problem.log))
            or (self.needs_levels and not problem.ordered)
            or (self.needs_knobs and not problem.knobs)
            or (self.needs_constant_costs and problem.varying_costs)
        ):
            return ()
        if self.given_data:
            return designs.OWN if problem.design else tuple(designs.SIZES)
        return (*BUDGETS, LONG_BUDGET) if problem.family in LONG_FAMILIES else BUDGETS


def row(cost: float, estimate: amsbq.Estimate, truth: Moments) -> Row:
    """Compare an estimate with the truth, in standard deviations of the output."""
    error, unit = (estimate.mean - truth.mean) / truth.std, truth.std
    if not np.isfinite(estimate.std):
        return Row(cost, error, math.nan)
    scales = np.maximum(estimate.scales, SETTINGS.least_scale * unit)
    blurred = amsbq.Estimate.from_dict(estimate.to_dict() | {"scales": scales})
    ends = [blurred.interval(level) for level in LEVELS]
    intervals = tuple(((low - truth.mean) / unit, (high - truth.mean) / unit) for low, high in ends)
    surprise = -blurred.log_density(truth.mean) - math.log(unit)
    return Row(cost, error, blurred.std / unit, intervals, surprise, blurred.cdf(truth.mean))


def log_row(cost: float, estimate: amsbq.Estimate) -> Row:
    """Compare the logarithm of an estimate with zero: the estimate is in units of the true integral."""

    def log(value: float) -> float:
        return max(math.log(value), SETTINGS.least_log) if value > 0 else SETTINGS.least_log

    if not np.isfinite(estimate.std):
        return Row(cost, log(estimate.mean), math.nan)
    low, high = np.transpose([estimate.interval(level) for level in LEVELS])
    intervals = tuple((log(a), log(b)) for a, b in zip(low, high, strict=True))
    std = (intervals[-1][1] - intervals[-1][0]) / 3.92
    return Row(cost, log(estimate.mean), std, intervals, -estimate.log_density(1.0), estimate.cdf(1.0))


def active(model: ModelName, declared: bool = False) -> Run:
    """Return `amsbq.integrate` with a model; its estimate is recorded after each evaluation.

    With ``declared``, the knobs of the sources are declared.
    """

    def run(problem: Problem, truths: Sequence[Moments], stage: Stage, seed: int) -> list[Trajectory]:
        cells: list[dict[int, Row]] = [{} for _ in truths]
        seen, began = 0, time.process_time()

        def record(it: amsbq.Integrator) -> None:
            nonlocal seen
            if len(it.evaluations) > seen and any(e.source == 0 for e in it.evaluations):
                found = it.estimate()
                cell = math.ceil(it.spent / SETTINGS.cost_step - 1e-9)
                for rows, estimate, truth in zip(cells, found if problem.outputs else [found], truths, strict=True):
                    rows[cell] = row(it.spent, estimate, truth)
            seen = len(it.evaluations)

        def limit(it: amsbq.Integrator) -> str | None:
            return "processor time" if it.evaluations and time.process_time() - began > SETTINGS.cpu_limit else None

        sources = problem.sources(seed, declared)
        result = amsbq.integrate(
            sources[:1] if model == "vbq" else sources,
            problem.measure,
            budget=float(stage),
            model=model,
            seed=seed,
            progress=record,
            max_evaluations=SETTINGS.max_evaluations,
            stop=limit,
            outputs=problem.outputs or None,
            log=problem.log,
        )
        kept = slice(None) if stage in TRACED else slice(-1, None)
        return [Trajectory(list(rows.values())[kept], len(result.evaluations), result.stopped) for rows in cells]

    return run


def baseline(name: str, piloted: bool = False) -> Run:
    """Return a method of `amsbq.baselines`, with the largest pilot that the budget pays for, if it has one."""
    function = getattr(baselines, name)
    options = {"replicates": SETTINGS.replicates} if name == "quasi_monte_carlo" else {}
    pilots = ({}, *({"pilot": size} for size in SETTINGS.small_pilots if piloted))

    def one(problem: Problem, compared: Callable[[float, amsbq.Estimate], Row], stage: Stage, seed: int) -> Trajectory:
        for pilot in pilots:
            try:
                result = function(
                    problem.sources(seed), problem.measure, budget=float(stage), seed=seed, **options, **pilot
                )
            except ValueError as error:
                if "pilot" not in str(error):
                    raise
                continue
            return Trajectory([compared(float(stage), result.estimate)], len(result.evaluations))
        return Trajectory([], 0)

    def run(problem: Problem, truths: Sequence[Moments], stage: Stage, seed: int) -> list[Trajectory]:
        payable = problem.costing_at_least(SETTINGS.least_cost)
        if problem.log:
            return [one(payable.exponential(truths[0].mean), log_row, stage, seed)]
        alone = [payable.alone(m) for m in range(len(truths))] if problem.outputs else [payable]
        pairs = zip(alone, truths, strict=True)
        return [one(each, partial(row, truth=truth), stage, seed) for each, truth in pairs]

    return run


def given(estimator: designs.Estimator) -> Run:
    """Return an estimator on a fixed design."""

    def run(problem: Problem, truths: Sequence[Moments], stage: Stage, seed: int) -> list[Trajectory]:
        data = designs.at_stage(problem, stage, seed)
        return [Trajectory([row(data.cost, estimator(problem, data, seed), truths[0])], len(data.y))]

    return run


def _methods() -> dict[str, Method]:
    model = partial(Method, code=MODEL_CODE)
    chosen = partial(model, active=True)
    data = partial(model, given_data=True)
    listed = [
        chosen("auto", active("auto")),
        chosen("vbq", active("vbq")),
        *(chosen(name, active(name), default=False) for name in ("icm", "lmc", "ar")),
        chosen("auto, knobs declared", active("auto", declared=True), default=False, needs_knobs=True),
        data("auto, given data", given(designs.by_model("auto"))),
        data(
            "auto, knobs declared, given data",
            given(designs.by_model("auto", declared=True)),
            default=False,
            needs_knobs=True,
        ),
        data("vbq, given data", given(designs.by_model("vbq"))),
        *(data(f"{name}, given data", given(designs.by_model(name)), default=False) for name in ("icm", "ar")),
        data("multilevel BQ, given data", given(designs.multilevel_bq), needs_levels=True),
        data("averages, given data", given(designs.averages), needs_levels=True),
    ]
    secondary = {"needs_secondary": True, "needs_constant_costs": True}
    peers: list[tuple[str, str, dict[str, bool]]] = [
        ("Monte Carlo", "monte_carlo", {}),
        ("Sobol points", "quasi_monte_carlo", {}),
        ("control variates", "control_variate", {"needs_secondary": True}),
        ("multilevel Monte Carlo", "multilevel_monte_carlo", secondary | {"needs_levels": True}),
        ("multi-fidelity Monte Carlo", "multifidelity_monte_carlo", secondary),
        ("MLBLUE", "mlblue", secondary),
        ("multilevel BQ", "multilevel_bq", secondary | {"needs_levels": True}),
    ]
    for name, function, needs in peers:
        code = MODEL_CODE + SAMPLING_CODE if function == "multilevel_bq" else SAMPLING_CODE
        piloted = bool(needs) and function != "control_variate"
        listed.append(Method(name, baseline(function, piloted=piloted), code, **needs))
    return {method.name: method for method in listed}


METHODS = _methods()
