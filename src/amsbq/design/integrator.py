"""All decisions of a run, and none of its work: what to evaluate next, what it may cost, what is known so far.

The k-th query draws its randomness from ``default_rng([seed, k])``, and hyperparameters are learned on a schedule that
depends only on how many observations there are: a run is a function of its seed and of what it was told.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from ..gp.posterior import MultiSourceGP, Posterior
from ..gp.threads import threads_for
from ..inference.belief import Belief, FixedBelief
from ..inference.estimate import Estimate
from ..inference.schedule import Learner
from ..inference.structures import model_named
from ..validation import (
    Array,
    brief,
    count,
    non_negative_number,
    number,
    positive_number,
    read_only,
    source_number,
)
from .accounting import Accounting, Evaluation, Query
from .acquisition import PATHOLOGIES, Rate, checked_kind
from .costs import affordable
from .failures import PATIENCE, Failures
from .forecast import Forecast
from .search import Choice, Search

SHARED = 2  #: locations of the initial design, at which all sources are evaluated


FORECASTING = 2  #: every second of the posteriors to decide by takes part in forecasts, which are many decisions


FORECAST_STEPS = 300  #: at most


LOCATIONS = 256  #: to be evaluated before there is a model to choose by, if it comes to that


class Integrator(Accounting):
    """Decides what to evaluate next, for people whose simulations are run by somebody or something else.

    Parameters
    ----------
    sources : list of Source
        The primary one, whose integral is wanted, first. Plain callables are sources of cost 1.
    measure : measure, or anything that `as_measure` takes
        The distribution of the inputs.
    budget : float, optional
        In units of cost. What is spent and what is set aside for queries on their way never exceed it, if costs are
        known.
    model : str or MultiSourceGP
        As in `estimate`.
    acquisition : str
        "mi" or "ivr"; "ip" and "nv" to see them fail: `amsbq.acquisition.utility`.
    seed : int
    initial : list of (source, x), optional
        What to evaluate first. By default two locations from the measure, at which all sources are evaluated: what they
        have in common shows where they are compared.

    Attributes
    ----------
    spent, reserved : float
        The cost of all evaluations, and what is set aside for those that are asked and not yet told.
    evaluations : list of Evaluation
    pending : list of Query
    stopped : str or None
        Why nothing more is asked: "budget", or "exhausted" if nothing is left to learn.

    Examples
    --------
    >>> import numpy as np
    >>> import amsbq
    >>> sources = [amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)]
    >>> it = amsbq.Integrator(sources, amsbq.Uniform(0, 1), budget=4)
    >>> while (query := it.ask()) is not None:
    ...     value = np.sin(5 * query.x[0]) if query.source == 0 else np.sin(5 * query.x[0]) + 0.1
    ...     it.tell(query, value)
    >>> low, high = it.estimate().interval(0.95)
    >>> bool(low < (1 - np.cos(5)) / 5 < high)
    True
    """

    def __init__(
        self,
        sources: Any,
        measure: Any,
        *,
        budget: float | None = None,
        model: str | MultiSourceGP = "auto",
        acquisition: str = "mi",
        seed: int = 0,
        initial: Sequence[tuple[int, ArrayLike]] | None = None,
    ) -> None:
        super().__init__(sources, measure, budget)
        self.model = self._checked_model(model)
        self.model_name = model if isinstance(model, str) else repr(model)
        self.acquisition, self.seed = checked_kind(acquisition), count(seed, "seed")
        self.learner = Learner(self.model, self.measure, [source.noise for source in self.sources], self.seed)
        self.failures = Failures(len(self.sources))
        self.rate = math.nan  #: at which the latest query was chosen
        self.replaying = False  #: whether it is told of the past: nothing is made of it until that is over
        self._own_design = initial is None
        self._initial = self._design() if initial is None else self._given_design(initial)
        if acquisition in PATHOLOGIES:
            warnings.warn(f"acquisition {acquisition!r}: {PATHOLOGIES[acquisition]}", stacklevel=2)

    @property
    def starting(self) -> bool:
        """Whether there is more to come of the initial design, or nothing is known of the primary source."""
        return bool(self._initial) or not (self.learner.data.s == 0).any()

    @overload
    def ask(self) -> Query | None: ...

    @overload
    def ask(self, n: int) -> list[Query]: ...

    def ask(self, n: int | None = None) -> Query | list[Query] | None:
        """What to evaluate next: the best rate, given what is known and what is on its way.

        Parameters
        ----------
        n : int, optional
            Ask for so many at once, chosen together: a list, shorter than n if the budget does not allow more.

        Returns
        -------
        A `Query`, or None if nothing more is to be asked; if nothing is pending either, ``stopped`` says why.
        """
        wanted = 1 if n is None else count(n, "n")
        queries: list[Query] = []
        with threads_for(len(self.learner)):
            while len(queries) < wanted and self.stopped is None:
                choices = self._next_of_design() or self._chosen(wanted - len(queries))
                queries += [self._issued(choice.source, choice.x, choice.rate) for choice in choices]
                self.rate = queries[-1].rate if queries else self.rate
                if not choices:
                    break
        if n is not None:
            return queries
        return queries[0] if queries else None

    def observe(self, source: int, x: ArrayLike, value: float, variance: float = 0.0) -> None:
        """A value that is there already, and costs nothing."""
        source, x = source_number(source, len(self.sources)), self._point(x)
        y, noise = number(value, "value"), non_negative_number(variance, "variance")
        self.learner.add(source, x, y, noise)
        self.evaluations.append(Evaluation(None, source, x, y, noise, 0.0, "ok", ""))
        if self._own_design and not self._asked:
            self._initial = self._design()

    def estimate(self) -> Estimate:
        """What is known of the integral: hyperparameters learned from all that was told, whatever its order."""
        with threads_for(len(self.learner)):
            return self.learner.estimate()

    def rates(self, X: ArrayLike) -> Array:
        """What the next evaluation would be worth for its cost, of each source at each X_i: shape (sources, n)."""
        with threads_for(len(self.learner)):
            belief = self.learner.belief
            if belief is None:
                raise ValueError("nothing is known yet: look at rates after the first evaluations")
            rate = self._next_rate(belief)
            points = self.measure.check_points(X)
            return rate.values(self._used(), points)

    def preview(self) -> Choice | None:
        """What would be asked next, if there were money for it; None if nothing is worth it."""
        with threads_for(len(self.learner)):
            belief = self.learner.belief
            if belief is None:
                return None
            search = Search(self.measure, self._available(), self._rng(self._asked))
            choice = search.best(self._next_rate(belief))
            return None if choice is None or self._worthless(choice) else choice

    def forecast(self, budget: float, sources: Sequence[int] | None = None, steps: int = FORECAST_STEPS) -> Forecast:
        """The standard deviation to be expected, if the budget were spent by today's model.

        The variance of an integral does not depend on the values to come, so with fixed hyperparameters the future can
        be computed. Where they are learned it is an estimate, and says so.

        Parameters
        ----------
        budget : float
            In total, with what is spent already.
        sources : list of ints, optional
            Only those that are to be evaluated from now on: what would it be without some of them?
        steps : int
            No more evaluations than that.

        Returns
        -------
        A list of (total cost, standard deviation), from now until the budget is spent.
        """
        budget = positive_number(budget, "budget")
        among = self._available() if sources is None else [self._used_source(s, "sources") for s in sources]
        unknown = [self.names[source] for source in among if self.source_costs.unknown(source)]
        if unknown:
            raise ValueError(f"what {unknown[0]} costs is not known yet: forecast after its first evaluation")
        with threads_for(len(self.learner)):
            belief = self.learner.belief
            if belief is None:
                raise ValueError("nothing is known yet: forecast after the first evaluations")
            exact = isinstance(belief, FixedBelief)
            every = 1 if exact else FORECASTING
            on_its_way = [(q.source, q.x) for q in self.pending] + [(c.source, c.x) for c in self._initial]
            rate = self._rate(belief.posteriors[::every], on_its_way)
            now = belief.estimate.std
            before = np.mean([posterior.integral()[1] for posterior in belief.posteriors[::every]])
            rows, k = [], self._asked
            cost = self.committed + math.fsum(self._price(choice) for choice in self._initial)
            while True:
                left = np.mean([posterior.integral()[1] for posterior in rate.posteriors])
                rows.append((cost, float(now * np.sqrt(left / before))))
                search = Search(self.measure, among, self._rng(k), budget, cost)
                choice = search.best(rate) if len(rows) <= steps else None
                if choice is None or self._worthless(choice):
                    return Forecast(rows, exact)
                x = choice.x[None]
                rate, k = rate.having(np.array([choice.source]), x), k + 1
                cost += self.source_costs.expected(choice.source, choice.x)

    def _checked_model(self, model: Any) -> Any:
        if not isinstance(model, MultiSourceGP):
            return model_named(model)
        if model.n_sources != len(self.sources):
            raise ValueError(f"the model is one of {model.n_sources} sources, but there are {len(self.sources)}")
        if not self.measure.same_as(model.measure):
            raise ValueError(f"the model is one for {model.measure!r}, but the measure is {self.measure!r}")
        return model

    def _used_source(self, source: Any, name: str) -> int:
        number_of_source = source_number(source, len(self.sources), name)
        if number_of_source not in self._used():
            raise ValueError(f"{name} is {number_of_source}, but the model uses source 0 only")
        return number_of_source

    def _rng(self, k: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, k])

    def _point(self, x: ArrayLike, name: str = "x") -> Array:
        """One location, shape (D,)."""
        return read_only(self.measure.check_points(np.reshape(np.asarray(x), (1, -1)), name)[0].copy())

    def _locations(self) -> Array:
        """Different ones, in the order in which they are to be evaluated before there is a model to choose by."""
        X = self.measure.sobol(LOCATIONS, self._rng(0))
        return X[np.sort(np.unique(X, axis=0, return_index=True)[1])]

    def _design(self) -> list[Choice]:
        """Locations at which all sources are evaluated, if half of the budget pays for them, and at least one."""
        data = self.learner.data
        known = {(int(s), *x) for s, x in zip(data.s, data.X, strict=True)}
        locations = np.concatenate([data.X[data.s == 0], self._locations()])[:SHARED]
        design: list[Choice] = []
        total = 0.0
        for j, x in enumerate(locations):
            at_x = [Choice(source, x) for source in self._available() if (source, *x) not in known]
            prices = [self._price(choice) for choice in at_x]
            if not known and j == 0 and not affordable(prices[0], self.budget):
                raise ValueError(
                    f"a budget of {self.budget:.6g} does not pay for one evaluation of {self.names[0]}, which costs "
                    f"{prices[0]:.6g}"
                )
            if j and total + sum(prices) > 0.5 * self.budget:
                break
            design += at_x
            total += sum(prices)
        return design

    def _given_design(self, initial: Any) -> list[Choice]:
        design = []
        for i, entry in enumerate(initial):
            if not isinstance(entry, Sequence) or len(entry) != 2:
                raise TypeError(f"initial must be a list of (source, x), got {brief(entry)} as its entry {i}")
            source = self._used_source(entry[0], f"source of initial[{i}]")
            design.append(Choice(source, self._point(entry[1], f"x of initial[{i}]")))
        total = math.fsum(self._price(choice) for choice in design)
        if not affordable(total, self.budget):
            raise ValueError(f"the initial evaluations cost {total:.6g}, more than the budget of {self.budget:.6g}")
        return design

    def _price(self, choice: Choice) -> float:
        return self.source_costs.expected(choice.source, choice.x)

    def _possible(self, choice: Choice) -> bool:
        return choice.source in self._available() and self._can_pay(choice.source, choice.x)

    def _next_of_design(self) -> list[Choice]:
        """The next one of the initial design that can be paid; until something is told, there is always one."""
        for choice in list(self._initial):
            if choice.source not in self.failures.retired and choice.source not in self._available():
                continue  # its turn will come
            self._initial.remove(choice)
            if self._possible(choice):
                return [choice]
        if self.learner.belief is None:
            asked = {(q.source, *q.x) for q in self.pending} | {(e.source, *e.x) for e in self.evaluations}
            more = [Choice(s, x) for x in self._locations() for s in self._available() if (s, *x) not in asked]
            cheapest = min(more, key=self._price, default=None)
            if cheapest is not None and self._possible(cheapest):
                return [cheapest]
            self._stop("budget" if more else "exhausted")
        return []

    def _chosen(self, n: int) -> list[Choice]:
        """Those with the best rate."""
        belief = self.learner.belief
        if belief is None:
            return []
        avoided = self.failures.avoided(len(self.evaluations))
        search = Search(self.measure, self._available(), self._rng(self._asked), self.budget, self.committed, avoided)
        rate = self._next_rate(belief)
        choices = search.best_set(rate, n) if n > 1 else [c for c in [search.best(rate)] if c is not None]
        if choices and not all(self._worthless(choice) for choice in choices):
            return choices
        too_expensive = any(not self._possible(Choice(s, self.measure.median)) for s in self._available())
        self._stop("budget" if too_expensive else "exhausted")
        return []

    def _next_rate(self, belief: Belief) -> Rate:
        known = [(q.source, q.x) for q in self.pending] + self.failures.avoided(len(self.evaluations))
        return self._rate(belief.posteriors, known)

    def _rate(self, posteriors: Sequence[Posterior], points: Sequence[tuple[int, Array]]) -> Rate:
        """The rate, given what is on its way, and what is avoided, as if these were known."""
        known = [(source, x) for source, x in points if source < posteriors[0].gp.n_sources]
        sources = np.array([source for source, _ in known], dtype=np.intp)
        X = np.array([x for _, x in known]).reshape(-1, self.measure.dim)
        return Rate(posteriors, self.source_costs.costs, self.acquisition).having(sources, X)

    def _worthless(self, choice: Choice) -> bool:
        return choice.rate <= 0 and self.acquisition not in PATHOLOGIES

    def _available(self) -> list[int]:
        """The sources that can be asked: of unknown cost only one at a time."""
        waiting = {query.source for query in self._pending.values() if self.source_costs.unknown(query.source)}
        return [source for source in self._used() if source not in self.failures.retired | waiting]

    def _used(self) -> range:
        """The sources that the model knows."""
        return range(len(self.sources) if isinstance(self.model, MultiSourceGP) or self.model.secondaries else 1)

    def _retire(self, source: int, reason: str) -> None:
        if source == 0:
            self.stopped = "exhausted"
        what = "the run ends with what it knows" if source == 0 else "the run goes on without it"
        warnings.warn(
            f"{self.names[source]} failed {PATIENCE} times in a row and is retired; {what}. The last time: {reason}",
            stacklevel=3,
        )

    def _record(self, query: Query, value: float, noise: float, cost: float, reason: str = "") -> None:
        super()._record(query, value, noise, cost, reason)
        if not reason:
            self.learner.add(query.source, query.x, value, noise)

    def reissue(self, query: Query) -> None:
        super().reissue(query)
        self.rate = query.rate
        planned = [i for i, c in enumerate(self._initial) if c.source == query.source and np.array_equal(c.x, query.x)]
        if planned and math.isnan(query.rate):
            del self._initial[planned[0]]

    def _heard(self, evaluation: Evaluation) -> None:
        """Of a success, or of a failure, whose neighbourhood is left alone for a while."""
        source = evaluation.source
        if evaluation.status == "ok":
            self.failures.succeeded(source)
        elif self.failures.failed(source, evaluation.x, len(self.evaluations) - 1):
            self._retire(source, evaluation.reason)
        if not self.replaying:
            self.note_what_is_known()

    def note_what_is_known(self) -> None:
        """Of the integral, beside the latest evaluation."""
        with threads_for(len(self.learner)):
            belief = self.learner.belief
            if belief is None or not (self.learner.data.s == 0).any():
                return
            estimate = belief.estimate
            self.evaluations[-1] = replace(self.evaluations[-1], mean=estimate.mean, std=estimate.std)
