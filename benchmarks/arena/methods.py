"""The competitors by name: each turns a problem and a seed into a trajectory of estimates.

Active methods are run once, with the largest budget, and recorded as they go. The baselines are run again for each
budget. Estimators from fixed designs have one row for each size of the design.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np

import amsbq
from amsbq import baselines
from amsbq.inference.structures import ModelName
from benchmarks.arena import designs

from .problem import Moments, Problem
from .scores import BUDGETS, LEVELS, Row

#: packages and files of the library whose code decides what a model-based method, or a sampling one, returns
MODEL_CODE = ("validation.py", "measures", "gp", "inference", "ranges", "design", "api.py", "estimation.py")
SAMPLING_CODE = ("validation.py", "measures", "baselines")


@dataclass(frozen=True)
class MethodSettings:
    """How methods are run; results are made again when a number changes."""

    budget: float = BUDGETS[-1]  # of a run: ten primary evaluations are what most users can pay for
    #: of an active run, so that sources which cost nothing do not take minutes; it has what it found by then
    max_evaluations: int = 150
    #: of a stored trajectory: the last estimate in each cell of this width is kept
    cost_step: float = 0.5
    #: with which the baselines are run, one after the other
    baseline_budgets: tuple[float, ...] = (*BUDGETS[:2], 7.0, BUDGETS[-1])
    #: scrambled sequences among which Sobol points are divided: with more, there is no error bar at a budget of 5
    replicates: int = 4
    #: draws of a pilot, if the budget does not pay for the usual one
    small_pilots: tuple[int, ...] = (5, 4, 3, 2)
    #: scales below this share of the output's standard deviation are rounding errors
    least_scale: float = 1e-14
    #: raise it when the way in which runs are recorded changes otherwise
    version: int = 1


SETTINGS = MethodSettings()


@dataclass(frozen=True)
class Trajectory:
    """What a method returns: rows in the order of their costs, and the number of evaluations at the end."""

    rows: list[Row]
    evaluations: int


Run: TypeAlias = Callable[[Problem, Moments, int], Trajectory]


@dataclass(frozen=True)
class Method:
    """A competitor."""

    name: str
    run: Run
    code: tuple[str, ...]  # the part of the library that decides what it returns
    default: bool = True  # whether it runs unless methods are chosen by name
    needs_secondary: bool = False
    needs_levels: bool = False
    needs_constant_costs: bool = False
    given_data: bool = False  # whether it estimates from a fixed design

    def applies(self, problem: Problem) -> bool:
        """Return whether the method can solve a problem."""
        return not (
            (self.needs_secondary and len(problem.functions) < 2)
            or (self.needs_levels and not problem.ordered)
            or (self.needs_constant_costs and problem.varying_costs)
        )


def row(cost: float, estimate: amsbq.Estimate, truth: Moments) -> Row:
    """Compare an estimate with the truth, in standard deviations of the output."""
    error, unit = (estimate.mean - truth.mean) / truth.std, truth.std
    if np.isnan(estimate.scales).any():
        return Row(cost, error, math.nan)
    scales = np.maximum(estimate.scales, SETTINGS.least_scale * unit)
    blurred = amsbq.Estimate(estimate.centres, scales, estimate.weights, estimate.dof)
    ends = [blurred.interval(level) for level in LEVELS]
    intervals = tuple(((low - truth.mean) / unit, (high - truth.mean) / unit) for low, high in ends)
    surprise = -blurred.log_density(truth.mean) - math.log(unit)
    return Row(cost, error, blurred.std / unit, intervals, surprise, blurred.cdf(truth.mean))


def active(model: ModelName) -> Run:
    """Return `amsbq.integrate` with a model; its estimate is recorded after each evaluation."""

    def run(problem: Problem, truth: Moments, seed: int) -> Trajectory:
        cells: dict[int, Row] = {}
        seen = 0

        def record(it: amsbq.Integrator) -> None:
            nonlocal seen
            if len(it.evaluations) > seen and any(e.source == 0 for e in it.evaluations):
                cells[math.ceil(it.spent / SETTINGS.cost_step - 1e-9)] = row(it.spent, it.estimate(), truth)
            seen = len(it.evaluations)

        sources = problem.sources(seed)
        result = amsbq.integrate(
            sources[:1] if model == "vbq" else sources,
            problem.measure,
            budget=SETTINGS.budget,
            model=model,
            seed=seed,
            progress=record,
            max_evaluations=SETTINGS.max_evaluations,
        )
        return Trajectory(list(cells.values()), len(result.evaluations))

    return run


def baseline(name: str, piloted: bool = False) -> Run:
    """Return a method of `amsbq.baselines`, run with each budget that pays for its pilot, if it has one."""
    function = getattr(baselines, name)
    options = {"replicates": SETTINGS.replicates} if name == "quasi_monte_carlo" else {}

    def run(problem: Problem, truth: Moments, seed: int) -> Trajectory:
        rows, n = [], 0
        for budget in SETTINGS.baseline_budgets:
            for pilot in ({}, *({"pilot": size} for size in SETTINGS.small_pilots if piloted)):
                try:
                    result = function(
                        problem.sources(seed), problem.measure, budget=budget, seed=seed, **options, **pilot
                    )
                except ValueError as error:
                    if "pilot" not in str(error):
                        raise
                    continue
                rows.append(row(budget, result.estimate, truth))
                n = len(result.evaluations)
                break
        return Trajectory(rows, n)

    return run


def given(estimator: designs.Estimator) -> Run:
    """Return an estimator on fixed designs of all sizes."""

    def run(problem: Problem, truth: Moments, seed: int) -> Trajectory:
        rows, n = [], 0
        for sizes in designs.SIZES:
            data = designs.observe(problem, sizes, seed)
            rows.append(row(data.cost, estimator(problem, data, seed), truth))
            n = len(data.y)
        return Trajectory(rows, n)

    return run


def _methods() -> dict[str, Method]:
    model = partial(Method, code=MODEL_CODE)
    listed = [
        model("auto", active("auto")),
        *(model(name, active(name), default=False) for name in ("icm", "lmc", "ar", "vbq")),
        model("auto, given data", given(designs.by_model("auto")), given_data=True),
        *(
            model(f"{name}, given data", given(designs.by_model(name)), given_data=True, default=False)
            for name in ("icm", "ar")
        ),
        model("multilevel BQ, given data", given(designs.multilevel_bq), given_data=True, needs_levels=True),
        model("averages, given data", given(designs.averages), given_data=True, needs_levels=True),
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
        if hasattr(baselines, function):
            code = MODEL_CODE + SAMPLING_CODE if function == "multilevel_bq" else SAMPLING_CODE
            listed.append(
                Method(name, baseline(function, piloted=bool(needs) and function != "control_variate"), code, **needs)
            )
    return {method.name: method for method in listed}


METHODS = _methods()
