"""The next query: the evaluation with the best rate, conditioned on all observations and on the pending queries.

The k-th query draws its randomness from ``default_rng([seed, k])``, and hyperparameters are refitted on a schedule that
depends only on the number of observations: a run is a function of its seed and of the answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from ..common.messages import warn
from ..posterior.learner import Learner
from ..posterior.posterior import Deciding, Posterior
from ..posterior.targets import targeted
from . import initial
from .acquisition import PATHOLOGIES, Rate, Rates
from .bulk import InBulk
from .costs import ConstantCost
from .description import Problem
from .evaluations import Choice, Evaluation, Option, StopReason
from .failures import Failures, missing_text, retired_text
from .forecast import worth_of_cheap
from .ledger import Ledger
from .search import SETTINGS as SEARCH
from .search import Search


@dataclass(frozen=True)
class DecisionSettings:
    """Settings for spending the rest of a budget."""

    #: no further evaluation is requested if the rest of the budget, spent at the current rate, would reduce the log
    #: variance of the integral by less than this
    worthwhile: float = 0.01
    #: cheap evaluations to plan ahead before they use up the cost of an evaluation of the primary source
    planned: int = 8
    #: a source that costs less than this share of a decision is evaluated in sets of at most ``largest_set``
    #: evaluations
    far_cheaper: float = 0.5
    largest_set: int = 32


SETTINGS = DecisionSettings()

AnyRate = TypeVar("AnyRate", Rate, Rates)


class Policy:
    """The choice of what to evaluate next.

    Parameters
    ----------
    problem : Problem
    ledger : Ledger
    learner : Learner
        The observations, and the posterior on which decisions are based.
    in_bulk : InBulk
    evaluations : list of Evaluation
        The evaluations of the run, to which others are appended.

    Attributes
    ----------
    failures : Failures
        The failures of each source.
    missing : list of Failures
        For each of several outputs, the locations at which it was missing, and the sources that seem to lack it.
    """

    def __init__(
        self, problem: Problem, ledger: Ledger, learner: Learner, in_bulk: InBulk, evaluations: list[Evaluation]
    ) -> None:
        self.problem, self.ledger, self.learner, self.in_bulk = problem, ledger, learner, in_bulk
        self.evaluations, self.failures = evaluations, Failures(len(problem.sources))
        self.missing = [Failures(len(problem.sources)) for _ in problem.outputs or ()]
        self._set: list[Choice] = []  # chosen jointly, not requested yet
        if problem.initial is not None:
            initial.check_cost(problem.initial, ledger)
        #: the remaining initial design; None until it is made, or if observations have changed the default one
        self._planned = None if problem.initial is None else list(problem.initial)
        self.initial_design()

    @property
    def used(self) -> range:
        """The sources that the model uses: those that are informative about the primary one."""
        return range(1) if self.learner.alone else self.problem.usable

    @property
    def available(self) -> list[int]:
        """The sources that can be evaluated; those of unknown cost only one evaluation at a time."""
        unknown = self.ledger.costs.unknown
        waiting = {query.source for query in self.ledger.pending.values() if unknown(query.source)}
        out = self.failures.retired | waiting | set(self.in_bulk.sources)
        return [source for source in self.problem.usable if source not in out]

    @property
    def worth_asking(self) -> list[int]:
        """The available ones among the sources that the model uses."""
        return [source for source in self.available if source in self.used]

    @property
    def foreseen(self) -> bool:
        """Whether the next query is part of the initial design or of a set, and so does not depend on any answer."""
        return bool(self._set) or any(self._possible(choice) for choice in self.initial_design())

    @property
    def within_set(self) -> bool:
        """Whether evaluations of a jointly chosen set are still to be requested."""
        return bool(self._set)

    def options(self, sources: Sequence[int]) -> list[Option]:
        """Return the options of sources: values, and values with gradients."""
        of = self.problem.sources
        plain = [Option(source) for source in sources if of[source].gradient is not True]
        return plain + [Option(source, True) for source in sources if of[source].gradient is not None]

    def next(self, n: int) -> tuple[list[Choice], StopReason | None]:
        """Return the next choices if n evaluations are requested, or why no further one is requested.

        They are part of the initial design or of a jointly chosen set, or have the best rate.
        """
        choices = self._next_of_design()
        if not choices and self.learner.posterior is None:
            return self._until_a_value()
        choices = choices or self._next_of_set()
        return (choices, None) if choices else self._chosen(n)

    def initial_design(self) -> list[Choice]:
        """Return the remaining initial design as a list; removing a choice from it takes it out of the design."""
        if self._planned is None:
            data, candidates = self.learner.data, initial.candidate_locations(self.problem.measure, self._rng(0))
            first = initial.first_sources(self.available, self.problem.model.fidelities)
            values = initial.default_design(candidates, data, first, self.ledger, self.problem.names[0])
            with_gradient = [source for source in first if self.problem.with_gradient(source)]
            known = self.learner.differentiated()
            self._planned = initial.with_first_gradients(values, candidates, data, known, with_gradient, self.ledger)
        return self._planned

    def observed(self) -> None:
        """Discard the default initial design after unsolicited observations, so that it is planned again."""
        if self.problem.initial is None and not self.ledger.asked:
            self._planned = None

    def rate(self, posterior: Posterior, every: int = 1) -> Rates:
        """Return the acquisition rate according to a posterior, using one in ``every`` of its members."""
        weights = np.ones(1)
        if self.problem.outputs is not None:
            weights = self.problem.goals.weights(posterior.estimate, self.learner.data.of_source(0).y)
        parts = posterior.deciding(weights, every)
        return Rates(tuple(map(self._rate_of, parts)), np.array([part.weight for part in parts]))

    def next_rate(self, posterior: Posterior) -> Rates:
        """Return the rate conditioned on the pending queries and, as if observed, on recent failures."""
        return self.having(self.rate(posterior), [*self._pending(), *self._failed()])

    def having(self, rate: AnyRate, choices: Sequence[Choice]) -> AnyRate:
        """Return the rate as if these choices had already been evaluated, whatever their values."""
        used = [choice for choice in choices if choice.source in self.used]
        X = np.array([choice.x for choice in used]).reshape(-1, self.problem.measure.dim)
        return rate.having([choice.option for choice in used], X)

    def after_pending(self, rate: Rates) -> Rates:
        """Return a rate conditioned on the pending queries."""
        return self.having(rate, self._pending())

    def best(
        self, rate: Rates, k: int = 0, committed: float = 0.0, *, sources: Sequence[int], budget: float = math.inf
    ) -> Choice | None:
        """Return the best evaluation k queries from now; None if nothing is worth evaluating."""
        rng = self._rng(self.ledger.asked + k)
        choice = Search(self.problem.measure, self.options(sources), rng, budget, committed).best(rate)
        return None if choice is None or self._worthless(choice) else choice

    def failed(self, made: Evaluation) -> StopReason | None:
        """Record a failure; return a reason to stop if it retires the primary source."""
        if not self.failures.failed(made.source, made.x, len(self.evaluations)):
            return None
        warn(retired_text(self.problem.names[made.source], made.source == 0, made.reason))
        return "failures" if made.source == 0 else None

    def succeeded(self, made: Evaluation) -> None:
        """Record a value, and which of several outputs it lacks although its source should have them."""
        self.failures.succeeded(made.source)
        for m, (name, missing) in enumerate(zip(self.problem.outputs or (), self.missing, strict=True)):
            if np.isfinite(made.value[m]):
                missing.succeeded(made.source)
            elif name in (self.problem.sources[made.source].outputs or ()) and missing.failed(
                made.source, made.x, len(self.evaluations)
            ):
                warn(missing_text(self.problem.names[made.source], name))

    def of_output(
        self, problem: Problem, ledger: Ledger, learner: Learner, evaluations: list[Evaluation], lacking: set[int]
    ) -> Policy:
        """Return a view of the policy for one of several outputs, which ``lacking`` sources do not have."""
        view = copy(self)
        view.problem, view.ledger, view.learner, view.evaluations = problem, ledger, learner, evaluations
        view.failures, view.missing = deepcopy(self.failures), []
        view.failures.retired |= lacking  # they are not informative about it
        return view

    def reinstate(self) -> None:
        """Give retired sources another chance."""
        for failures in (self.failures, *self.missing):
            failures.reinstate()

    def _rng(self, k: int) -> np.random.Generator:
        return np.random.default_rng([self.problem.seed, k])

    def _possible(self, choice: Choice) -> bool:
        return choice.source in self.available and self.ledger.affords(choice)

    def _pending(self) -> list[Choice]:
        return [Choice(query.source, query.x, gradient=query.gradient) for query in self.ledger.pending.values()]

    def _failed(self) -> list[Choice]:
        """Return choices at which sources failed recently."""
        return [Choice(source, x) for source, x in self.failures.avoided(len(self.evaluations))]

    def _missing(self, outputs: Sequence[int]) -> list[Choice]:
        """Return choices at which all of the given outputs were missing recently."""
        if not self.missing:
            return []
        found = [self.missing[m].avoided(len(self.evaluations)) for m in outputs]
        everywhere = set.intersection(*({(s, *x) for s, x in each} for each in found))
        return [Choice(s, x) for s, x in found[0] if (s, *x) in everywhere]

    def _next_of_design(self) -> list[Choice]:
        """Return the next affordable evaluation of the initial design."""
        waiting = set(self.problem.usable) - self.failures.retired - set(self.available)
        choice = initial.next_planned(self.initial_design(), waiting, self._possible)
        return [] if choice is None else [choice]

    def _until_a_value(self) -> tuple[list[Choice], StopReason | None]:
        """Return the cheapest evaluation at a location of the initial design that was not requested yet."""
        asked = {(q.source, *q.x) for q in self.ledger.pending.values()} | {(e.source, *e.x) for e in self.evaluations}
        locations = initial.candidate_locations(self.problem.measure, self._rng(0))
        more = [Choice(s, x) for x in locations for s in self.available if (s, *x) not in asked]
        cheapest = min(more, key=self.ledger.price, default=None)
        if cheapest is not None and self._possible(cheapest):
            return [cheapest], None
        return [], "budget" if more else "exhausted"

    def _next_of_set(self) -> list[Choice]:
        """Return the next evaluation of a set, unless it is unaffordable or strands one of the primary source."""
        primary = Choice(0, self.problem.measure.median)
        possible = self._set and self._possible(self._set[0])
        if possible and not self.ledger.strands(self._set[0], self.ledger.price(primary)):
            return [self._set.pop(0)]
        self._set = []
        return []

    def _chosen(self, n: int) -> tuple[list[Choice], StopReason | None]:
        """Return the n evaluations with the best joint rate."""
        posterior, problem, ledger = self.learner.posterior, self.problem, self.ledger
        assert posterior is not None
        avoided = self.failures.avoided(len(self.evaluations))
        committed = ledger.committed + ledger.beside + ledger.decisions.expected
        options, rng = self.options(self.worth_asking), self._rng(ledger.asked)
        search = Search(problem.measure, options, rng, problem.budget, committed, avoided)
        rate = self.next_rate(posterior)
        taken = [*self.learner.data.X, *(choice.x for choice in self._pending())]
        points = initial.spread_out(problem.measure, self._rng(0), len(self.learner.data.y), taken)
        one = None if points is None or n > 1 else search.best(rate, points)
        choices = search.best_set(rate, n) if n > 1 else [c for c in [one or search.best(rate)] if c is not None]
        # If posteriors disagree, each of them may see little left to gain; more evaluations show which is right.
        rest = (problem.budget - ledger.committed) / max(rate.within, np.finfo(float).tiny)
        if choices and not all(self._worthless(choice, rest) for choice in choices):
            return (
                choices if n > 1 else self._or_set(self._or_last_primary(choices[0], rate, search), rate, search)
            ), None
        too_expensive = any(not self._possible(Choice(s, problem.measure.median)) for s in self.available)
        return [], "budget" if too_expensive else "exhausted"

    def _or_set(self, choice: Choice, rate: Rates, search: Search) -> list[Choice]:
        """Return the choice; if it costs much less than a decision, extend it to a set, to be requested one by one."""
        cheap = self.ledger.price(choice) <= (1 + SETTINGS.far_cheaper) * self.ledger.decisions.expected
        first, *self._set = (search.rising_set(rate, SETTINGS.largest_set) if cheap else []) or [choice]
        return [first]

    def _worthless(self, choice: Choice, rest: float = math.inf) -> bool:
        """Return whether the rest of a budget, spent at the rate of a choice, would be almost uninformative."""
        pathological = self.problem.acquisition in PATHOLOGIES
        return not pathological and (choice.rate <= 0 or choice.rate * rest < SETTINGS.worthwhile)

    def _or_last_primary(self, cheap: Choice, rate: Rates, search: Search) -> Choice:
        """Return a cheap choice, or the best evaluation of the primary source if cheap ones would strand that.

        An evaluation is stranded if cheap ones leave too little budget for it. It is chosen if the cheap evaluations
        that its cost would cover are worth less.
        """
        of_primary, ledger = self.options([0]), self.ledger
        unlimited = self.problem.acquisition in PATHOLOGIES or math.isinf(ledger.budget)
        if unlimited or cheap.source == 0 or not set(of_primary) & set(search.options):
            return cheap
        cost = ledger.costs.costs[0]
        if isinstance(cost, ConstantCost) and not ledger.strands(cheap, cost.cost):
            return cheap  # wherever the best location is: no need to search for it
        primary = search.among(of_primary).best(rate)
        if primary is None or not ledger.strands(cheap, price := ledger.price(primary)):
            return cheap
        others = search.among([option for option in search.options if option.source != 0])
        points = search.points(rate, SEARCH.batch_starts)  # not polished: eight searches would take seconds
        otherwise = worth_of_cheap(rate, others, points, ledger.committed, price, SETTINGS.planned)
        return primary if primary.rate * price >= otherwise else cheap

    def _rate_of(self, part: Deciding) -> Rate:
        posteriors = targeted(part, self.problem.targets[part.important])
        means, used = posteriors.integral()[0], posteriors.models.n_sources
        between = float(part.weights @ (means - part.weights @ means) ** 2)
        knobs = self.problem.model.fidelities
        rate = Rate(
            posteriors.expecting_noise() if knobs is None else posteriors.expecting_noise(knobs.noise_of_all),
            self.ledger.costs.of_options(),
            self.problem.acquisition,
            part.weights,
            between,
            paid=self.ledger.decisions.expected,
            given=tuple(source for source in self.in_bulk.sources if source < used),
            uninformative=frozenset({*range(used, len(self.problem.sources)), *self._lacking(part.outputs)}),
        )
        return self.having(rate, self._missing(part.outputs))  # as if observed there: it would be missing again

    def _lacking(self, outputs: Sequence[int]) -> set[int]:
        """Return the sources that lack all of these outputs."""
        if self.problem.outputs is None:
            return set()
        names = {self.problem.outputs[m] for m in outputs}
        none = {s for s in self.problem.usable if not names & set(self.problem.sources[s].outputs or ())}
        return none | set.intersection(*(self.missing[m].retired for m in outputs))
