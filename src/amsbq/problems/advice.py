"""Choice of a method from the inputs, the costs and the budget of a problem, before anything is evaluated.

The rules are those of docs/explanation/which-method.md. The reason for each method names what they cannot know: whether
the simulator is smooth, how well the other sources correlate with it, how long an evaluation takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ..common.validation import numbers_text
from ..design.description import Problem
from ..design.ledger import Ledger

#: the function or command of each method, by its name
CALLS = {
    "amsbq": "amsbq.integrate, or amsbq run",
    "Sobol' points": "amsbq.baselines.quasi_monte_carlo",
    "MLBLUE": "amsbq.baselines.mlblue",
    "a Gauss rule": "numpy.polynomial.legendre.leggauss",
}


@dataclass(frozen=True)
class AdviceSettings:
    """Thresholds between methods."""

    #: minimum number of evaluations of the primary source for which an average has a good error bar that depends on no
    #: model
    many: int = 2000
    #: inputs above which few evaluations say little about a function (docs/arena.md: wide, many-inputs)
    inputs: int = 10
    #: evaluations of the primary source that control variates need to estimate correlations in a pilot
    pilot: int = 20
    #: minimum number of nodes for each input with which a Gauss rule is accurate for analytic functions
    nodes: int = 5
    #: inputs above which a product of Gauss rules needs too many nodes
    gauss: int = 2


SETTINGS = AdviceSettings()


@dataclass(frozen=True)
class Advised:
    """One method, and why it suits the problem or when it would be better."""

    method: str
    reason: str

    def __str__(self) -> str:
        return f"{self.method} ({CALLS[self.method]}): {self.reason}"


@dataclass(frozen=True)
class Facts:
    """Properties of a problem that are known before anything is evaluated."""

    inputs: int
    affordable: list[float]  #: evaluations of each source that the budget covers; NaN if unknown
    independent: bool  #: whether the inputs are independent
    noisy: bool  #: whether the primary source is noisy

    @classmethod
    def of(cls, problem: Problem) -> Facts:
        """Return the facts of a problem; costs that are functions of the inputs are taken at their medians."""
        costs, median = Ledger(problem).costs, problem.measure.median
        affordable = []
        for source in range(len(problem.sources)):
            unknown = costs.unknown(source) or math.isinf(problem.budget)
            price = math.nan if unknown else costs.expected(source, median)
            affordable.append(math.inf if price == 0 else problem.budget / price)
        noisy = problem.sources[0].noise not in (0, 0.0)
        return cls(problem.measure.dim, affordable, problem.measure.marginals is not None, noisy)


def advice(facts: Facts) -> list[Advised]:
    """Return the method to begin with, followed by those that are better under conditions not known yet."""
    found = list(_fitting(facts))
    names = [each.method for each in found]
    return [each for i, each in enumerate(found) if each.method not in names[:i]]


def _fitting(facts: Facts) -> Iterator[Advised]:
    n, dim, several = facts.affordable[0], facts.inputs, len(facts.affordable) > 1
    runs = "evaluations of the primary source" if several else "evaluations"
    paid = f"the budget covers {numbers_text(float(f'{n:.2g}'))} {runs}"
    if n >= SETTINGS.many:
        why = f"{paid}, and an average over so many has a good error bar that depends on no model."
        if several:
            yield Advised("MLBLUE", f"{why} It divides the budget among the sources according to a pilot.")
        yield Advised("Sobol' points", why)
        yield Advised("amsbq", "better if the simulator is smooth and an evaluation takes more than a second.")
        return
    if dim > SETTINGS.inputs:
        little = f"with {dim} inputs each evaluation says little about the average"
        if several and n >= SETTINGS.pilot:
            yield Advised("MLBLUE", f"{little}; correlations between the sources do not depend on its shape.")
        yield Advised("Sobol' points", f"{little}, and an average does not need the shape.")
        yield Advised(
            "amsbq", "better if few of the inputs matter (see result.sensitivity()), or if another source is good."
        )
        return
    learned = "the shapes of the sources and their relation" if several else "the shape of the simulator"
    known = (
        f"{paid}, too few for averages" if math.isfinite(n) else "it chooses the most informative evaluation per cost"
    )
    shape = f"{known}, and {learned} can be learned from them."
    yield Advised("amsbq", shape)
    nodes = math.floor(n ** (1 / dim) + 1e-9) if math.isfinite(n) else 0
    if dim <= SETTINGS.gauss and facts.independent and not facts.noisy and nodes >= SETTINGS.nodes:
        rule = f"{nodes} nodes for each input" if dim > 1 else f"{nodes} nodes"
        yield Advised("a Gauss rule", f"better if the simulator is analytic, without noise and kinks: {rule} will do.")
    if several and n >= SETTINGS.pilot:
        yield Advised("MLBLUE", "better if the simulator is rough or jumps, and the sources correlate well.")
    yield Advised("Sobol' points", "better if the simulator is rough or jumps, or an evaluation takes milliseconds.")
