"""The initial design: the evaluations made before there is a model to choose them.

By default all sources are evaluated at the same few locations, where their relation shows best. A user may give other
evaluations instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..common.validation import Array
from ..gp.data import Data
from ..inference.structures import Fidelities
from ..measures.base import Measure
from .costs import affordable
from .evaluations import Choice
from .ledger import Ledger


@dataclass(frozen=True)
class InitialDesignSettings:
    """The size of the default initial design."""

    #: locations at which all sources are evaluated: a single one cannot show a difference that varies;
    #: benchmarks/loop.py compares one, two and three
    shared_locations: int = 2
    #: number of levels of one simulator in the design, plus one per knob; they include the finest and the coarsest
    levels: int = 3
    #: largest share of the budget that the whole design may cost; the first location is evaluated in any case
    budget_share: float = 0.5
    #: locations at which a source is evaluated with its gradient, to learn which inputs matter. The acquisition rate
    #: cannot value this, because it treats hyperparameters as known; benchmarks/gradients.py compares other numbers
    gradient_locations: int = 5
    #: locations to fall back on while every evaluation fails
    candidates: int = 256
    #: minimum number of inputs for which locations are spread out while there are fewer observations than inputs
    many_inputs: int = 10


SETTINGS = InitialDesignSettings()


def candidate_locations(measure: Measure, rng: np.random.Generator) -> Array:
    """Return distinct locations (n, D) that cover the measure, in the order of evaluation."""
    X = measure.sobol(SETTINGS.candidates, rng)
    return X[np.sort(np.unique(X, axis=0, return_index=True)[1])]


def spread_out(measure: Measure, rng: np.random.Generator, n: int, taken: Sequence[Array]) -> Array | None:
    """Return the only location (1, D) to consider next if inputs are many and outnumber the observations.

    It is the next unused one of the locations that cover the measure, because the largest rate would be at the ends of
    inputs that may not matter at all. None means that all locations are to be considered.
    """
    if measure.dim < SETTINGS.many_inputs or n >= measure.dim:
        return None
    known = {x.tobytes() for x in taken}
    return next((x[None] for x in candidate_locations(measure, rng) if x.tobytes() not in known), None)


def first_sources(sources: Sequence[int], fidelities: Fidelities | None) -> list[int]:
    """Return the sources of the initial design: among many levels of one simulator, a few that are far apart."""
    return list(sources) if fidelities is None else fidelities.spread(sources, SETTINGS.levels + len(fidelities.knobs))


def default_design(candidates: Array, data: Data, sources: Sequence[int], ledger: Ledger, primary: str) -> list[Choice]:
    """Return evaluations of all sources at shared locations.

    Locations at which the primary source was already observed come first; existing observations are not repeated. There
    is at least one location; more are added as long as half of the budget covers all of them.

    Parameters
    ----------
    candidates : (n, D) array
        Locations to choose from, in order.
    data : Data
        Existing observations.
    sources : list of int
        The sources to evaluate.
    ledger : Ledger
        Costs and budget.
    primary : str
        Name of the primary source, for the error if the budget does not cover one evaluation of it.
    """
    data = data.values
    known = {(int(s), *x) for s, x in zip(data.s, data.X, strict=True)}
    different = {x.tobytes(): x for x in [*data.X[data.s == 0], *candidates]}
    locations = list(different.values())[: SETTINGS.shared_locations]
    design: list[Choice] = []
    total = 0.0
    for j, x in enumerate(locations):
        at_x = [Choice(source, x) for source in sources if (source, *x) not in known]
        prices = [ledger.price(choice) for choice in at_x]
        if not known and j == 0 and not affordable(prices[0], ledger.budget):
            raise ValueError(
                f"a budget of {ledger.budget:.6g} does not cover one evaluation of {primary}, which costs "
                f"{prices[0]:.6g}"
            )
        if j and total + sum(prices) > SETTINGS.budget_share * ledger.budget:
            break
        design += at_x
        total += sum(prices)
    return design


def with_first_gradients(
    design: Sequence[Choice],
    candidates: Array,
    data: Data,
    known: Sequence[int],
    sources: Sequence[int],
    ledger: Ledger,
) -> list[Choice]:
    """Add gradients to a design: the first evaluations of sources that have gradients are made with these.

    Further evaluations with gradients are added as long as half of the budget covers the whole design.

    Parameters
    ----------
    design : list of Choice
        Evaluations without gradients.
    candidates : (n, D) array
        Locations to choose from, in order.
    data : Data
        Existing observations.
    known : list of int
        The source of each existing evaluation with a gradient.
    sources : list of int
        The sources that have gradients.
    ledger : Ledger
        Costs and budget.
    """
    design, most, price = list(design), SETTINGS.budget_share * ledger.budget, ledger.price
    total = math.fsum(price(choice) for choice in design)
    for source in sources:
        wanted = SETTINGS.gradient_locations - list(known).count(source)
        taken = {
            x.tobytes()
            for x in [*data.of_source(source).X, *(choice.x for choice in design if choice.source == source)]
        }
        for i, choice in enumerate(design):
            dearer = replace(choice, gradient=True)
            more = price(dearer) - price(choice) if choice.source == source else 0.0
            if choice.source == source and wanted > 0 and total + more <= max(most, total):
                design[i], total, wanted = dearer, total + more, wanted - 1
        for x in [x for x in candidates if x.tobytes() not in taken][: max(wanted, 0)]:
            if total + (more := price(Choice(source, x, gradient=True))) <= most:
                design, total = [*design, Choice(source, x, gradient=True)], total + more
    return design


def check_cost(design: Sequence[Choice], ledger: Ledger) -> None:
    """Raise ValueError if the budget does not cover all evaluations of a design."""
    total = math.fsum(ledger.price(choice) for choice in design)
    if not affordable(total, ledger.budget):
        raise ValueError(f"the initial evaluations cost {total:.6g}, more than the budget of {ledger.budget:.6g}")


def next_planned(planned: list[Choice], waiting: Collection[int], possible: Callable[[Choice], bool]) -> Choice | None:
    """Remove the next possible choice from a design and return it; None if there is none.

    Parameters
    ----------
    planned : list of Choice
        The remaining design; choices that are not possible are removed from it.
    waiting : set of int
        Sources that cannot be evaluated now, but can be later: their choices stay in the design.
    possible : function of a Choice
        Whether the choice can be requested and afforded.
    """
    for choice in [choice for choice in planned if choice.source not in waiting]:
        planned.remove(choice)
        if possible(choice):
            return choice
    return None


def remove_planned(planned: list[Choice], source: int, x: Array) -> None:
    """Remove the first evaluation of a source at x, with or without its gradient, from a design, if it is in it."""
    for i, choice in enumerate(planned):
        if choice.source == source and np.array_equal(choice.x, x):
            del planned[i]
            return
