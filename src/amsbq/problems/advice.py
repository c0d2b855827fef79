"""Which method for a problem: by its inputs, its costs and its budget, before anything is evaluated.

The rules are those of docs/explanation/which-method.md. What they cannot know is said with each method: whether the
simulator is smooth, how well the other sources go with it, how long an evaluation takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..common.validation import numbers_text
from ..design.description import Problem
from ..design.ledger import Ledger

#: what is called, by the name of the method
CALLS = {
    "amsbq": "amsbq.integrate, or amsbq run",
    "Sobol' points": "amsbq.baselines.quasi_monte_carlo",
    "MLBLUE": "amsbq.baselines.mlblue",
    "a Gauss rule": "numpy.polynomial.legendre.leggauss",
}


@dataclass(frozen=True)
class AdviceSettings:
    """Where one method gives way to another."""

    #: evaluations of the primary source from which on an average has a good error bar that rests on no model
    many: int = 2000
    #: inputs above which few evaluations tell little of a function (docs/arena.md: wide, many-inputs)
    inputs: int = 10
    #: evaluations of the primary source that control variates need, for their pilot to tell correlations
    pilot: int = 20
    #: nodes for each input from which on a Gauss rule is accurate for functions that are analytic
    nodes: int = 5
    #: inputs above which a product of Gauss rules takes too many nodes
    gauss: int = 2


SETTINGS = AdviceSettings()


@dataclass(frozen=True)
class Advised:
    """One method: why it is a choice here, or when it is the better one."""

    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.method} ({CALLS[self.method]}): {self.reason}"


@dataclass(frozen=True)
class Facts:
    """What is known of a problem before anything is evaluated."""

    inputs: int
    affordable: list[float]  #: evaluations of each source that the budget pays for; NaN if that is not known
    independent: bool  #: whether the inputs are
    noisy: bool  #: whether the primary source is

    @classmethod
    def of(cls, problem: Problem) -> Facts:
        """Return what is known of a problem; costs that are functions of the inputs count at their medians."""
        costs, median = Ledger(problem).costs, problem.measure.median
        affordable = []
        for source in range(len(problem.sources)):
            unknown = costs.unknown(source) or math.isinf(problem.budget)
            price = math.nan if unknown else costs.expected(source, median)
            affordable.append(math.inf if price == 0 else problem.budget / price)
        noisy = problem.sources[0].noise not in (0, 0.0)
        return cls(problem.measure.dim, affordable, problem.measure.marginals is not None, noisy)


def advice(facts: Facts) -> list[Advised]:
    """Return the method to begin with, and after it those that are better under conditions nobody knows yet."""
    found = list(_fitting(facts))
    names = [each.method for each in found]
    return [each for i, each in enumerate(found) if each.method not in names[:i]]


def _fitting(facts: Facts) -> Iterator[Advised]:
    n, dim, several = facts.affordable[0], facts.inputs, len(facts.affordable) > 1
    runs = "evaluations of the primary source" if several else "evaluations"
    paid = f"the budget pays for {numbers_text(float(f'{n:.2g}'))} {runs}"
    if n >= SETTINGS.many:
        why = f"{paid}, and an average over so many has a good error bar that rests on no model."
        if several:
            yield Advised("MLBLUE", f"{why} It divides the budget among the sources by what a pilot tells of them.")
        yield Advised("Sobol' points", why)
        yield Advised("amsbq", "better if the simulator is smooth and an evaluation takes more than a second.")
        return
    if dim > SETTINGS.inputs:
        little = f"with {dim} inputs each evaluation tells little of the whole"
        if several and n >= SETTINGS.pilot:
            yield Advised("MLBLUE", f"{little}; correlations of the sources do not need to know its shape.")
        yield Advised("Sobol' points", f"{little}, and an average does not mind.")
        yield Advised(
            "amsbq", "better if few of the inputs matter, or another source is good: result.sensitivity() tells."
        )
        return
    learned = "the shapes of the sources and their relation" if several else "the shape of the simulator"
    known = f"{paid}, too few for averages" if math.isfinite(n) else "it asks for what tells most per cost"
    shape = f"{known}, and {learned} can be learned from them."
    yield Advised("amsbq", shape)
    nodes = math.floor(n ** (1 / dim) + 1e-9) if math.isfinite(n) else 0
    if dim <= SETTINGS.gauss and facts.independent and not facts.noisy and nodes >= SETTINGS.nodes:
        rule = f"{nodes} nodes for each input" if dim > 1 else f"{nodes} nodes"
        yield Advised("a Gauss rule", f"better if the simulator is analytic, without noise and kinks: {rule} will do.")
    if several and n >= SETTINGS.pilot:
        yield Advised("MLBLUE", "better if the simulator is rough or jumps, and the sources go well together.")
    yield Advised("Sobol' points", "better if the simulator is rough or jumps, or an evaluation takes milliseconds.")
