"""The initial design: what is evaluated before there is a model to choose by.

By default all sources are evaluated at the same few locations: how they are related shows best where they are
compared. A user may give other evaluations instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..gp.data import Data
from ..measures.base import Measure
from ..validation import Array, brief, read_only
from .costs import affordable
from .search import Choice

Initial: TypeAlias = Sequence[tuple[int, ArrayLike]]
Pairs: TypeAlias = Sequence[tuple[int, Array]]
Price: TypeAlias = Callable[[Choice], float]  #: the expected cost of an evaluation


@dataclass(frozen=True)
class InitialDesignSettings:
    """The size of the default initial design."""

    #: locations at which all sources are evaluated: one cannot show a difference that varies; benchmarks/loop.py
    #: compares one, two and three
    shared_locations: int = 2
    #: largest share of the budget that the whole design may cost; the first location is evaluated in any case
    budget_share: float = 0.5
    #: locations at which a source is evaluated with its gradient: they show which inputs matter, for which the rate has
    #: no eyes, as it takes hyperparameters as known; from then on it decides. benchmarks/gradients.py compares numbers.
    gradient_locations: int = 5
    #: locations to fall back on while every evaluation fails
    candidates: int = 256
    #: inputs from which on locations are spread out while there are fewer observations than inputs
    many_inputs: int = 10


SETTINGS = InitialDesignSettings()


def candidate_locations(measure: Measure, rng: np.random.Generator) -> Array:
    """Return different locations (n, D) that cover the measure, in the order in which they are to be evaluated."""
    X = measure.sobol(SETTINGS.candidates, rng)
    return X[np.sort(np.unique(X, axis=0, return_index=True)[1])]


def spread_out(measure: Measure, rng: np.random.Generator, data: Data, pending: Pairs) -> Array | None:
    """Return the only location (1, D) to consider next, if there are many inputs and fewer observations than inputs.

    It is the next one of those that cover the measure: the largest rate would then be at the ends of inputs of which
    nobody knows whether they matter. None if all locations are to be considered.
    """
    if measure.dim < SETTINGS.many_inputs or len(data.y) >= measure.dim:
        return None
    taken = {x.tobytes() for x in [*data.X, *(x for _, x in pending)]}
    return next((x[None] for x in candidate_locations(measure, rng) if x.tobytes() not in taken), None)


def default_design(
    candidates: Array, data: Data, sources: Sequence[int], price: Price, budget: float, primary: str
) -> list[Choice]:
    """Return evaluations of all sources at shared locations.

    Locations at which the primary source was observed already come first, and what was observed is left out. There is
    at least one location; more are added if half of the budget pays for all of them.

    Parameters
    ----------
    candidates : (n, D) array
        Locations to choose from, in order.
    data : Data
        What was observed already.
    sources : list of int
        The sources to evaluate.
    price : function of a Choice
        The expected cost of an evaluation.
    budget : float
        In units of cost.
    primary : str
        Name of the primary source, for the error that is raised if the budget does not pay for it once.
    """
    data = data.values
    known = {(int(s), *x) for s, x in zip(data.s, data.X, strict=True)}
    different = {x.tobytes(): x for x in [*data.X[data.s == 0], *candidates]}
    locations = list(different.values())[: SETTINGS.shared_locations]
    design: list[Choice] = []
    total = 0.0
    for j, x in enumerate(locations):
        at_x = [Choice(source, x) for source in sources if (source, *x) not in known]
        prices = [price(choice) for choice in at_x]
        if not known and j == 0 and not affordable(prices[0], budget):
            raise ValueError(
                f"a budget of {budget:.6g} does not pay for one evaluation of {primary}, which costs {prices[0]:.6g}"
            )
        if j and total + sum(prices) > SETTINGS.budget_share * budget:
            break
        design += at_x
        total += sum(prices)
    return design


def with_first_gradients(
    design: Sequence[Choice], candidates: Array, data: Data, options: Mapping[int, int], price: Price, budget: float
) -> list[Choice]:
    """Return a design in which the first evaluations of sources that have gradients are with these.

    They are made with gradients, and more of them are added, as far as half of the budget pays for the whole design.

    Parameters
    ----------
    design : list of Choice
        Evaluations without gradients.
    candidates : (n, D) array
        Locations to choose from, in order.
    data : Data
        What was observed already.
    options : dict
        For each source that has gradients, its number as a source with these.
    price : function of a Choice
        The expected cost of an evaluation.
    budget : float
        In units of cost.
    """
    design, most = list(design), SETTINGS.budget_share * budget
    total = math.fsum(price(choice) for choice in design)
    for source, option in options.items():
        of_source = data.of_source(source)
        wanted = SETTINGS.gradient_locations - int(np.isfinite(of_source.gradients()).any(axis=1).sum())
        taken = {x.tobytes() for x in [*of_source.X, *(choice.x for choice in design if choice.source == source)]}
        for i, choice in enumerate(design):
            dearer = replace(choice, source=option)
            more = price(dearer) - price(choice)
            if choice.source == source and wanted > 0 and total + more <= max(most, total):
                design[i], total, wanted = dearer, total + more, wanted - 1
        for x in [x for x in candidates if x.tobytes() not in taken][: max(wanted, 0)]:
            if total + (more := price(Choice(option, x))) <= most:
                design, total = [*design, Choice(option, x)], total + more
    return design


def checked_design(
    initial: Initial, measure: Measure, source_number: Callable[[Any, str], int], price: Price, budget: float
) -> list[Choice]:
    """Return the evaluations that a user wants to begin with, or raise an error that says what is wrong with them.

    Parameters
    ----------
    initial : list of (source, x)
        What to evaluate first.
    measure : Measure
        The distribution of the inputs, in whose support all x must be.
    source_number : function of a value and its name in error messages
        Returns the number of a source, or raises an error.
    price : function of a Choice
        The expected cost of an evaluation.
    budget : float
        In units of cost; it must pay for all of them.
    """
    design = []
    for i, entry in enumerate(initial):
        if not isinstance(entry, Sequence) or len(entry) != 2:
            raise TypeError(f"initial must be a list of (source, x), got {brief(entry)} as its entry {i}")
        source = source_number(entry[0], f"source of initial[{i}]")
        design.append(Choice(source, checked_location(measure, entry[1], f"x of initial[{i}]")))
    total = math.fsum(price(choice) for choice in design)
    if not affordable(total, budget):
        raise ValueError(f"the initial evaluations cost {total:.6g}, more than the budget of {budget:.6g}")
    return design


def next_planned(planned: list[Choice], waiting: Collection[int], possible: Callable[[Choice], bool]) -> Choice | None:
    """Take the next choice out of what is left of a design, or return None if there is none.

    Parameters
    ----------
    planned : list of Choice
        What is left of the design; choices that are not possible are removed.
    waiting : set of int
        Sources that cannot be asked now, but later: their choices stay in the design.
    possible : function of a Choice
        Whether it can be asked and paid.
    """
    for choice in [choice for choice in planned if choice.source not in waiting]:
        planned.remove(choice)
        if possible(choice):
            return choice
    return None


def remove_planned(planned: list[Choice], options: Collection[int], x: Array) -> None:
    """Remove the first evaluation of a source, with its gradient or without, at x from a design, if it is there."""
    for i, choice in enumerate(planned):
        if choice.source in options and np.array_equal(choice.x, x):
            del planned[i]
            return


def checked_location(measure: Measure, x: ArrayLike, name: str = "x") -> Array:
    """Return one location as a read-only array of shape (D,), or raise an error if it is not in the support."""
    return read_only(measure.check_points(np.reshape(np.asarray(x), (1, -1)), name)[0].copy())
