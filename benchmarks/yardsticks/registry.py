"""All yardsticks by their source, and what is run on them: the same for each problem of a source."""

from __future__ import annotations

from benchmarks.arena.families import family
from benchmarks.arena.methods import METHODS, Stage
from benchmarks.arena.problem import Problem
from benchmarks.arena.store import Job

from .ensembles import ensembles
from .evidence import log_evidence
from .functions import functions
from .multi_index import multi_index
from .options import options

#: family -> function that returns its members, in the order of the report
MAKERS = {
    "asian-options": options,
    "pyapprox-ensembles": ensembles,
    "uqtestfuns": functions,
    "vbmc-evidence": log_evidence,
    "multi-index": multi_index,
}
#: budgets in primary evaluations; likelihoods have one source and need more
BUDGETS: tuple[Stage, ...] = ("5", "10")
LIKELIHOOD_BUDGETS: tuple[Stage, ...] = ("20", "40")
#: methods of the arena; those that use secondary sources need one
PLAYERS = ("auto", "vbq", "Sobol points", "Monte Carlo", "multi-fidelity Monte Carlo", "MLBLUE")
SEEDS = range(5)


def problems() -> list[Problem]:
    """Return all problems."""
    return [problem for name in MAKERS for problem in family(name)]


def budgets_of(problem: Problem) -> tuple[Stage, ...]:
    """Return the budgets of a problem."""
    return LIKELIHOOD_BUDGETS if problem.log else BUDGETS


def players_of(problem: Problem) -> list[str]:
    """Return the methods that can solve a problem; with one source, `auto` and `vbq` are the same question."""
    alone = len(problem.functions) == 1
    return [name for name in PLAYERS if METHODS[name].stages(problem) and not (alone and name == "vbq")]


def jobs(chosen: list[Problem], seeds: range, players: tuple[str, ...] = PLAYERS) -> list[Job]:
    """Return all runs; those of one seed come together, so that the first part is whole."""
    return [
        (problem.key, name, budget, seed)
        for seed in seeds
        for problem in chosen
        for name in players_of(problem)
        if name in players
        for budget in budgets_of(problem)
    ]
