"""Decisions: which evaluation has the best rate, conditioned on what was told and on the pending queries.

The k-th query draws its randomness from ``default_rng([seed, k])``, and hyperparameters are refitted on a schedule that
depends only on the number of observations: a run is a function of its seed and of what it was told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..gp.posterior import MultiSourceGP
from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import Belief
from ..inference.schedule import Learner
from ..inference.structures import ModelName, checked_order, model_named
from ..measures.adapters import NamedMeasureLike
from ..messages import warn
from ..outputs.beliefs import OutputsBelief
from ..outputs.evaluations import Evaluation, Query
from ..outputs.goals import Goals, Weights, checked_weights
from ..outputs.learner import OutputsLearner
from ..outputs.names import OutputsLike, by_output
from ..outputs.rates import AnyRate, SummedRate
from ..outputs.reduced_learner import learner_of
from ..quantities.targets import Target, checked_target, targeted
from ..ranges.learner import RangedLearner
from ..ranges.transforms import checked_range
from ..ranges.warping import WarpingLearner
from ..threads import threads_for
from ..validation import Array, Values, source_number
from . import initial as initial_design
from .acquisition import PATHOLOGIES, AcquisitionName, Rate, checked_kind
from .bulk import BulkAccounting
from .costs import SETTINGS as COSTS
from .costs import ConstantCost, DecisionCosts, affordable
from .failures import Failures, missing_text, rejection, retired_text
from .forecast import worth_of_cheap
from .initial import Initial, checked_design
from .search import Choice, Search
from .sources import SourcesLike


@dataclass(frozen=True)
class DecisionSettings:
    """How the rest of a budget is spent."""

    #: nothing more is asked if the rest of the budget, at the present rate, would take less than this off the log
    #: variance of the integral
    worthwhile: float = 0.01
    #: cheap evaluations that are planned ahead, before they use up what an evaluation of the primary source costs
    planned: int = 8
    #: a source that costs less than this share of a decision is asked for sets, of so many evaluations at most
    far_cheaper: float = 0.5
    largest_set: int = 32


SETTINGS = DecisionSettings()


class DecisionMaker(BulkAccounting):
    """The state of a run with a model, and the choice of what to evaluate next.

    Attributes
    ----------
    model : Model or MultiSourceGP
        The model of the sources, and ``model_name``, what to call it.
    acquisition : str
        The kind of utility.
    seed : int
        Seed of all randomness.
    learner : Learner
        The observations, and the belief that decisions are based on.
    failures : Failures
        The failures of each source.
    initial : list of Choice or None
        What the user wants to be evaluated first; None for the default design.
    order : list of int or None
        The sources in order of fidelity, if the user gave it.
    goals : Goals
        How accurate each of several outputs is to be, and how much it matters.
    rate : float
        The acquisition rate at which the latest query was chosen.
    target : str, Exceedance or Quantile
        What the evaluations are chosen to learn.
    range : OutputRange or None
        What is known of the values of all sources.
    deciding : DecisionCosts
        What decisions cost.
    """

    def __init__(
        self,
        sources: SourcesLike,
        measure: NamedMeasureLike,
        budget: float | None,
        model: ModelName | MultiSourceGP,
        acquisition: AcquisitionName,
        seed: int,
        initial: Initial | None,
        order: Sequence[int] | None = None,
        target: Target = "mean",
        outputs: OutputsLike | None = None,
        weights: Weights | None = None,
        output_range: tuple[float, float] | None = None,
        log: bool = False,
        decision_cost: float = 0.0,
    ) -> None:
        self.range, self.deciding = checked_range(output_range, log), DecisionCosts(decision_cost)
        self._set: list[Choice] = []  # evaluations that were decided on together, and are not asked yet
        super().__init__(sources, measure, budget, outputs)
        if self.range is not None:
            if self.outputs is not None:
                raise ValueError("output_range and log are for sources with one output: leave outputs out")
            self.sources = tuple(source.within(self.range.low, self.range.high) for source in self.sources)
        self.target = checked_target(target, self.outputs is not None)
        self.model = model if isinstance(model, MultiSourceGP) else model_named(model)
        if isinstance(self.model, MultiSourceGP):
            self.model.check_for(len(self.sources), self.measure)
        self.model_name = model if isinstance(model, str) else repr(model)
        self.acquisition, self.seed = checked_kind(acquisition), seed
        self.order = None if order is None else checked_order(order, len(self.sources))
        self.goals = Goals(importance=None if weights is None else checked_weights(weights, self.outputs))
        self.learner = self._new_learner(self.order or self.source_costs.dearest_first())
        self.rate, self.failures = math.nan, Failures(len(self.sources))
        #: of each output, where it was missing, and sources that seem to have none
        self.missing = [Failures(len(self.sources)) for _ in self.outputs or ()]
        self.initial: list[Choice] | None = None
        if initial is not None:
            self.initial = checked_design(initial, self.measure, self._used_source, self._price, self.budget)
        #: what is left of the initial design; None until it is made, and when observations have changed the default one
        self._planned: list[Choice] | None = None if self.initial is None else list(self.initial)
        self._initial_design()

    @property
    def starting(self) -> bool:
        """Whether the initial design is not yet asked completely, or the primary source has no value."""
        return bool(self._initial_design()) or not self.learner.has_primary

    @property
    def foreseen(self) -> bool:
        """Whether what is asked next does not depend on any answer: it is part of the initial design or of a set."""
        return bool(self._set) or any(self._possible(choice) for choice in self._initial_design())

    def _new_learner(self, order: Sequence[int] | None) -> Learner | OutputsLearner:
        """Return what learns from the values of the sources, of one output or of several."""
        if self.outputs is None:
            noise = [source.noise for source in self.sources]
            learning = (self.model, self.measure, noise, self.seed, self.names, order)
            return WarpingLearner(*learning) if self.range is None else RangedLearner(self.range, *learning)
        given = [by_output(source.noise, self.outputs) for source in self.sources]
        levels = [[level or 0.0 for level in of_output] for of_output in zip(*given, strict=True)]
        several = learner_of(self.outputs, self.model)
        return several(self.outputs, self.model, self.measure, levels, self.seed, self.names, order, WarpingLearner)

    def distances(self) -> Array:
        """Return how far each of several outputs is from its goal, shape (M,): see `Goals.distances`."""
        belief = self.learner.belief
        if not isinstance(belief, OutputsBelief):
            raise ValueError("distances are those of several outputs, after the first evaluations")
        return self.goals.distances(belief.estimate, self.learner.data.of_source(0).y)

    def _used_source(self, source: Any, name: str, among: range | None = None) -> int:
        """Return the number of a source if the model uses it, or if it is among others, or raise an error."""
        number_of_source = source_number(source, len(self.sources), name, self.names)
        if number_of_source not in (self._used() if among is None else among):
            why = "" if number_of_source not in self._usable() else ", of which others tell nothing"
            raise ValueError(f"{name} is {number_of_source}, but the model uses source 0 only{why}")
        return number_of_source

    def _usable(self) -> range:
        """Return the numbers of the sources that the model can use."""
        return range(len(self.sources) if isinstance(self.model, MultiSourceGP) or self.model.secondaries else 1)

    def _used(self) -> range:
        """Return the numbers of the sources that the model uses: those that can tell something of the primary one."""
        return range(1) if self.learner.alone else self._usable()

    def _available(self) -> list[int]:
        """Return the sources that can be asked: those of unknown cost one evaluation at a time."""
        waiting = {query.source for query in self._pending.values() if self.source_costs.unknown(query.source)}
        return [s for s in self._usable() if s not in self.failures.retired | waiting and s not in self.free]

    def _telling(self) -> list[int]:
        """Return the sources that can be asked, of those that the model uses."""
        return [source for source in self._available() if source in self._used()]

    def _options(self, sources: Sequence[int]) -> list[int]:
        """Return what can be asked of sources: values, and values with gradients, by numbers beyond the sources."""
        plain = [source for source in sources if self.sources[source].gradient is not True]
        return plain + [self.option(source, True) for source in sources if source in self.with_gradients]

    def _shown(self, choice: Choice) -> Choice:
        """Return a choice of an option as one of a source, with its gradient or without."""
        return replace(choice, source=self.source_of(choice.source), gradient=choice.source >= len(self.sources))

    def _rng(self, k: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, k])

    def _price(self, choice: Choice) -> float:
        return self.source_costs.expected(choice.source, choice.x) + self.deciding.expected  # with the decision on it

    def _possible(self, choice: Choice) -> bool:
        total = self.committed + self._price(choice) + self._cost_beside
        return self.source_of(choice.source) in self._available() and bool(affordable(total, self.budget))

    def _initial_design(self) -> list[Choice]:
        """Return what is left of the initial design: removing a choice takes it out of the design."""
        if self._planned is None:
            data, candidates = self.learner.data, initial_design.candidate_locations(self.measure, self._rng(0))
            sources, price, budget = self._available(), self._price, self.budget
            values = initial_design.default_design(candidates, data, sources, price, budget, self.names[0])
            options = {source: self.option(source, True) for source in sources if source in self.with_gradients}
            self._planned = initial_design.with_first_gradients(values, candidates, data, options, price, budget)
        return self._planned

    def _next_of_design(self) -> list[Choice]:
        """Return the next evaluation of the initial design that can be paid; there is one until a value is told."""
        waiting = set(self._usable()) - self.failures.retired - set(self._available())
        waiting |= {self.option(source, True) for source in waiting}
        choice = initial_design.next_planned(self._initial_design(), waiting, self._possible)
        if choice is not None:
            return [choice]
        if self.learner.belief is None:
            asked = {(q.source, *q.x) for q in self.pending} | {(e.source, *e.x) for e in self.evaluations}
            locations = initial_design.candidate_locations(self.measure, self._rng(0))
            more = [Choice(s, x) for x in locations for s in self._available() if (s, *x) not in asked]
            cheapest = min(more, key=self._price, default=None)
            if cheapest is not None and self._possible(cheapest):
                return [cheapest]
            self._stop("budget" if more else "exhausted")
        return []

    def _next(self, n: int) -> list[Choice]:
        """Return what to ask next, of n evaluations that are wanted: of the initial design, of a set, or the best."""
        return self._next_of_design() or self._next_of_set() or self._chosen(n)

    def _chosen(self, n: int) -> list[Choice]:
        """Return the n evaluations with the best joint rate."""
        belief = self.learner.belief
        if belief is None:
            return []
        avoided = self.failures.avoided(len(self.evaluations))
        committed = self.committed + self._cost_beside + self.deciding.expected
        options = self._options(self._telling())
        search = Search(self.measure, options, self._rng(self._n_asked), self.budget, committed, avoided)
        rate = self._next_rate(belief)
        points = initial_design.spread_out(self.measure, self._rng(0), self.learner.data, self._pending_options())
        one = None if points is None or n > 1 else search.best(rate, points)
        choices = search.best_set(rate, n) if n > 1 else [c for c in [one or search.best(rate)] if c is not None]
        # Where posteriors disagree, any of them says that little is left to gain; more evaluations tell which is right.
        rest = (self.budget - self.committed) / max(rate.within, np.finfo(float).tiny)
        if choices and not all(self._worthless(choice, rest) for choice in choices):
            return choices if n > 1 else self._or_set(self._or_last_primary(choices[0], rate, search), rate, search)
        too_expensive = any(not self._possible(Choice(s, self.measure.median)) for s in self._available())
        self._stop("budget" if too_expensive else "exhausted")
        return []

    def _or_set(self, choice: Choice, rate: AnyRate, search: Search) -> list[Choice]:
        """Return a choice, or the first of a set if it costs much less than the decision; the others are asked next."""
        cheap = self._price(choice) <= (1 + SETTINGS.far_cheaper) * self.deciding.expected
        first, *self._set = (search.rising_set(rate, SETTINGS.largest_set) if cheap else []) or [choice]
        return [first]

    def _next_of_set(self) -> list[Choice]:
        """Return the next evaluation of a set, unless it cannot be paid or strands one of the primary source."""
        primary = Choice(0, self.measure.median)
        if self._set and self._possible(self._set[0]) and not self._strands(self._set[0], self._price(primary)):
            return [self._set.pop(0)]
        self._set = []
        return []

    def _charge_decision(self, queries: list[Query]) -> None:
        """Charge the first of new queries, or the last one of a set, with the time since the last decision."""
        if queries and not self._set:
            queries[0] = replace(queries[0], decision=self.deciding.charge(self.budget - self.committed))
            self._pending[queries[0].id] = queries[0]

    def _best(
        self, rate: AnyRate, k: int = 0, committed: float = 0.0, *, sources: Sequence[int], budget: float = math.inf
    ) -> Choice | None:
        """Return the best of all evaluations, k queries from now; None if nothing is worth evaluating."""
        options = self._options(sources)
        choice = Search(self.measure, options, self._rng(self._n_asked + k), budget, committed).best(rate)
        return None if choice is None or self._worthless(choice) else choice

    def _worthless(self, choice: Choice, rest: float = math.inf) -> bool:
        """Return whether the rest of a budget, spent at the rate of a choice, would tell next to nothing."""
        return self.acquisition not in PATHOLOGIES and (choice.rate <= 0 or choice.rate * rest < SETTINGS.worthwhile)

    def _or_last_primary(self, cheap: Choice, rate: AnyRate, search: Search) -> Choice:
        """Return a cheap choice, or the best evaluation of the primary source if that would be stranded by cheap ones.

        It is if they leave too little to pay for it, and all that it could be spent on otherwise are worth less.
        """
        of_primary, unlimited = self._options([0]), self.acquisition in PATHOLOGIES or math.isinf(self.budget)
        if unlimited or cheap.source in of_primary or not set(of_primary) & set(search.sources):
            return cheap
        cost = self.source_costs.costs[0]
        if isinstance(cost, ConstantCost) and not self._strands(cheap, cost.cost):
            return cheap  # wherever the best location is: no need to search for it
        primary = search.among(of_primary).best(rate)
        if primary is None or not self._strands(cheap, self._price(primary)):
            return cheap
        cheap_ones, price = [source for source in search.sources if source not in of_primary], self._price(primary)
        otherwise = worth_of_cheap(rate, search.among(cheap_ones), self.committed, price, SETTINGS.planned)
        return primary if primary.rate * price >= otherwise else cheap

    def _strands(self, choice: Choice, price: float) -> bool:
        """Return whether fewer evaluations of that price can be paid after a choice than before it."""
        rest = self.budget * (1 + COSTS.rounding) - self.committed
        return math.isfinite(rest) and bool((rest - self._price(choice)) // price != rest // price)

    def _next_rate(self, belief: Belief | OutputsBelief) -> AnyRate:
        rate = self._having(self._rate(belief), self._pending_options() + self.failures.avoided(len(self.evaluations)))
        if not isinstance(rate, SummedRate) or not isinstance(belief, OutputsBelief) or belief.reduced:
            return rate
        # as if each output were observed where it was missing: it would be missing again
        known = [missing for missing, part in zip(self.missing, belief.parts, strict=True) if part is not None]
        avoided = [missing.avoided(len(self.evaluations)) for missing in known]
        return replace(rate, parts=tuple(map(self._having, rate.parts, avoided)))

    def _having(self, rate: AnyRate, points: Sequence[tuple[int, Array]]) -> AnyRate:
        """Return a rate conditioned on observations at (option, x) as well, whatever their values."""
        used = [(option, x) for option, x in points if self.source_of(option) in self._used()]
        options = np.array([option for option, _ in used], dtype=np.intp)
        return rate.having(options, np.array([x for _, x in used]).reshape(-1, self.measure.dim))

    def _rate(self, belief: Belief | OutputsBelief, every: int = 1) -> AnyRate:
        """Return the acquisition rate by a belief, made of every so many of its posteriors."""
        if not isinstance(belief, OutputsBelief):
            some = belief.posteriors.select(slice(None, None, every))
            return self._rate_of(targeted(some, belief, self.measure, self.target))
        rates = {}
        for m, part, some in belief.deciding(every):
            mean = targeted(some, part, self.measure, "mean")
            rates[m] = self._rate_of(mean, None if belief.reduced else m)
        weights = belief.part_weights(self.goals.weights(belief.estimate, self.learner.data.of_source(0).y))
        return SummedRate(tuple(rates.values()), weights[list(rates)])

    def _rate_of(self, posteriors: PosteriorBatch, output: int | None = None) -> Rate:
        between, used = float(np.var(posteriors.integral()[0])), posteriors.models.n_sources
        rate = Rate(
            posteriors.expecting_noise(),
            self.source_costs.of_options,
            self.acquisition,
            between,
            paid=self.deciding.expected,
            given=tuple(source for source in self.free if source < used),
            gradients=self.with_gradients,
            silent=frozenset(range(used, len(self.sources))),
        )
        if output is None or self.outputs is None:
            return rate
        name = self.outputs[output]
        lacking = {s for s in self._usable() if name not in (self.sources[s].outputs or ())}
        return replace(rate, silent=frozenset(lacking | self.missing[output].retired))

    def _use(self, made: Evaluation) -> None:
        source, x = made.source, made.x
        if not made.reason:
            # There are none beside a failure that was corrected, or if there was no bulk when this was told.
            for other, known in zip(self.free, made.free, strict=True) if made.free else ():
                if not rejection(known, self.sources[other].valid):
                    self.learner.add(other, x, known, 0.0)
            self._learn(made)
            self.failures.succeeded(source)
            self._note_missing(source, x, made.value)
            super()._use(made)
        elif self.failures.failed(source, x, len(self.evaluations)):
            self.stopped = "failures" if source == 0 else self.stopped
            warn(retired_text(self.names[source], source == 0, made.reason))

    def _learn(self, made: Evaluation) -> None:
        """Add an evaluation to what the model learns from."""
        gradient = (made.gradient,) if isinstance(self.learner, Learner) else ()
        self.learner.add(made.source, made.x, made.value, made.variance, *gradient)

    def _note_missing(self, source: int, x: Array, value: Values) -> None:
        """Note which of several outputs are missing in an evaluation, although its source should have them."""
        for m, (name, missing) in enumerate(zip(self.outputs or (), self.missing, strict=True)):
            if np.isfinite(value[m]):
                missing.succeeded(source)
            elif name in (self.sources[source].outputs or ()) and missing.failed(source, x, len(self.evaluations)):
                warn(missing_text(self.names[source], name))

    def _integral(self) -> tuple[Values, Values]:
        if not len(self.learner):
            return math.nan, math.nan
        with threads_for(len(self.learner)), self.deciding.timed():
            belief = self.learner.belief
            assert belief is not None
            estimate = belief.estimate
        return estimate.mean, estimate.std
