"""The integrator: ask what to evaluate next, tell what came of it, and estimate the integral."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Self, overload

from numpy.typing import ArrayLike

from ..gp.posterior import MultiSourceGP
from ..inference.belief import Belief, FixedBelief
from ..inference.structures import ModelName
from ..measures.adapters import NamedMeasureLike, named_measure
from ..messages import collected_warnings, warn
from ..outputs.beliefs import OutputsBelief
from ..outputs.estimates import AnyEstimate
from ..outputs.evaluations import Evaluation, Query
from ..outputs.goals import Weights
from ..outputs.learner import OutputsLearner
from ..outputs.names import OutputsLike, output_number
from ..quantities.targets import Target, target_estimate
from ..threads import threads_for
from ..validation import Array, RNGLike, count, seed_number, source_number
from .accounting import StopReason, locked
from .acquisition import PATHOLOGIES, AcquisitionName
from .bulk import Bulk
from .costs import affordable
from .decisions import DecisionMaker
from .forecast import SETTINGS as AHEAD
from .forecast import Forecast, budget_ahead, forecast_rows, planned_first
from .initial import Initial, checked_location, remove_planned
from .search import Choice
from .sources import SourcesLike


class Integrator(DecisionMaker):
    """The decisions of a run, without its result: `amsbq.Integrator` is this class with a result, and explains it."""

    def __init__(
        self,
        sources: SourcesLike,
        measure: NamedMeasureLike,
        *,
        budget: float | None = None,
        model: ModelName | MultiSourceGP = "auto",
        acquisition: AcquisitionName = "mi",
        seed: RNGLike = None,
        initial: Initial | None = None,
        order: Sequence[int] | None = None,
        rng: RNGLike = None,
        names: Sequence[str] | None = None,
        target: Target = "mean",
        outputs: OutputsLike | None = None,
        weights: Weights | None = None,
        output_range: tuple[float, float] | None = None,
        log: bool = False,
        decision_cost: float = 0.0,
    ) -> None:
        drawn = seed_number(seed, rng)
        known = (target, outputs, weights, output_range, log, decision_cost)
        super().__init__(sources, measure, budget, model, acquisition, drawn, initial, order, *known)
        if names is not None:
            _, self.inputs = named_measure(measure, names)
        if acquisition in PATHOLOGIES:
            warn(f"acquisition {acquisition!r}: {PATHOLOGIES[acquisition]}")

    @overload
    def ask(self) -> Query | None: ...

    @overload
    def ask(self, n: int) -> list[Query]: ...

    @locked
    def ask(self, n: int | None = None) -> Query | list[Query] | None:
        """Return what to evaluate next: the best rate, conditioned on all observations and on the pending queries.

        Parameters
        ----------
        n : int, optional
            Ask for that many at once, chosen jointly: a list, shorter than n if the budget does not allow more.

        Returns
        -------
        A `Query`, or None if nothing more is to be asked; if nothing is pending either, ``stopped`` says why.
        """
        wanted = 1 if n is None else count(n, "n")
        queries: list[Query] = []
        self.evaluate_bulk()
        with threads_for(len(self.learner)), self.deciding.timed():
            while len(queries) < wanted and self.stopped is None and (choices := self._next(wanted - len(queries))):
                queries += [self._issued(choice.source, choice.x, choice.rate) for choice in choices]
                self.rate = queries[-1].rate
        self._charge_decision(queries)
        return queries if n is not None else next(iter(queries), None)

    @locked
    def observe(
        self,
        source: int | str,
        x: ArrayLike,
        value: ArrayLike | Mapping[str, ArrayLike],
        variance: ArrayLike | Mapping[str, ArrayLike] = 0.0,
        gradient: ArrayLike | None = None,
    ) -> None:
        """Add a value that exists already and costs nothing.

        Its entry in ``evaluations`` has NaN for the mean and the standard deviation of the integral: it is used when
        the integral is next estimated, so that many observations can be added quickly.

        Parameters
        ----------
        source : int or str
            Number or name of the source.
        x : (D,) array
            The location.
        value : float; with several outputs M numbers, or a dictionary by name
            The value of the source; NaN for an output that has none.
        variance : float, or M numbers
            Variance of the noise on this value.
        gradient : D numbers, optional
            The derivatives of the value by each input, NaN where they are not known.
        """
        source, x = source_number(source, len(self.sources), names=self.names), checked_location(self.measure, x)
        (y, noise), slopes = self._checked(source, value, variance), self.checked_gradient(x, gradient)
        if self.range is not None:
            self.range.check(y)
        self.evaluations.append(Evaluation(None, source, x, y, noise, 0.0, "ok", "", gradient=slopes))
        self._learn(self.evaluations[-1])
        if self.initial is None and not self._n_asked:
            self._planned = None

    @locked
    def estimate(self) -> AnyEstimate:
        """Return the distribution of the integral, conditioned on all that was told or observed.

        Right after `tell`, mean and standard deviation are those of the latest evaluation. Hyperparameters are those of
        the latest scheduled refit, whose warnings are issued again; nothing is learned that was learned before. With
        several outputs, these are `Estimates`.
        """
        belief = self._known_belief("there is nothing to estimate from: tell or observe something first")
        for message in self.learner.refit_warnings:
            warn(message)
        with threads_for(len(self.learner)):
            return belief.estimate

    @locked
    def predict(self, source: int | str, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and variance (n,), or (n, M), of a source without its noise, averaged over hyperparameters.

        Parameters
        ----------
        source : int or str
            Number or name of the source.
        X : (n, D) array
            Locations.
        """
        number_of_source, points = self._used_source(source, "source", self._usable()), self.measure.check_points(X)
        nothing = "there is nothing to predict from: tell or observe something first"
        belief = self._known_belief(nothing, whole=number_of_source not in self._used())
        with threads_for(len(self.learner)):
            mean, std = belief.predict(number_of_source, points)
        return mean, std**2

    @locked
    def rates(self, X: ArrayLike) -> Array:
        """Return the acquisition rate of each source at each X_i: shape (sources, n)."""
        with threads_for(len(self.learner)):
            belief = self.learner.belief
            if belief is None:
                raise ValueError("nothing is known yet: look at rates after the first evaluations")
            return self._next_rate(belief).values(self._usable(), self.measure.check_points(X))

    @locked
    def preview(self) -> Choice | None:
        """Return what would be asked next if the budget were unlimited; None if nothing is worth evaluating."""
        with threads_for(len(self.learner)):
            belief = self.learner.belief
            best = None if belief is None else self._best(self._next_rate(belief), sources=self._telling())
        return best and self._shown(best)

    @locked
    def forecast(self, budget: float, sources: Sequence[int | str] | None = None, steps: int = AHEAD.steps) -> Forecast:
        """Return the standard deviation to expect if the budget were spent by the present model.

        Parameters
        ----------
        budget : float
            Total budget, with what is spent or reserved already: no less than that.
        sources : list of int or str, optional
            The only sources to be evaluated from now on: what would it be without the others?
        steps : int
            The largest number of evaluations to look ahead.

        Returns
        -------
        A list of (total cost, standard deviation), from now until the budget is spent. It is exact if hyperparameters
        are fixed; where they are learned it is an estimate, and its attribute ``exact`` says so.
        """
        budget = budget_ahead(budget, self.committed)
        among = self._telling() if sources is None else [self._used_source(s, "sources") for s in sources]
        unknown = [self.names[source] for source in among if self.source_costs.unknown(source)]
        if unknown:
            raise ValueError(f"what {unknown[0]} costs is not known yet: forecast after its first evaluation")
        with threads_for(len(self.learner)):
            belief = self.learner.belief
            if belief is None:
                raise ValueError("nothing is known yet: forecast after the first evaluations")
            exact, std = isinstance(belief, FixedBelief), target_estimate(belief, self.measure, self.target).std
            now = self._rate(belief, 1 if exact else AHEAD.every)
            rate = self._having(now, self._pending_options())
            planned = [choice for choice in self._initial_design() if self.source_of(choice.source) in among]
            best = partial(self._best, sources=among, budget=budget)
            following = planned_first(planned, self._price, budget, best)
            before, cost, power = now.variance(), self.committed, 1.0 if exact else AHEAD.learning
            rows, choices = forecast_rows(belief, std, before, rate, cost, following, self._price, steps, power)
        return Forecast(rows, exact, self.outputs, [self._shown(choice) for choice in choices])

    @locked
    def of_output(self, output: str | int) -> Self:
        """Return an integrator of one of several outputs alone, by its name or number, with its values so far.

        It is for looking at: what is told to it, or asked of it, does not count in the run.
        """
        if self.outputs is None or not isinstance(self.learner, OutputsLearner):
            raise KeyError(f"there is one output, and no {output!r}: name several, as in outputs=['peak', 'time']")
        m, view = output_number(self.outputs, output), copy(self)
        lacking = {s for s, source in enumerate(self.sources) if self.outputs[m] not in (source.outputs or ())}
        view.outputs, view.learner, view.missing = None, self.learner.of_output(m), []
        view.evaluations = [e.of_output(m) for e in self.evaluations if e.source not in lacking]
        view.sources, view.failures = tuple(s.of_output(self.outputs, m) for s in self.sources), deepcopy(self.failures)
        view.failures.retired |= lacking  # they would tell nothing of it
        view._pending = {number: query for number, query in self._pending.items() if query.source not in lacking}
        return view

    def _known_belief(self, otherwise: str, whole: bool = False) -> Belief | OutputsBelief:
        """Return the belief conditioned on all observations, of all sources or not, or raise an error."""
        with threads_for(len(self.learner)):
            belief = (self.learner.whole if whole else self.learner.belief) if len(self.learner) else None
        if belief is None:
            raise ValueError(otherwise)
        return belief

    def _reinstate(self) -> None:
        """Give retired sources another chance, also if nothing was left to evaluate without them."""
        if self.failures.retired and self.stopped in ("failures", "exhausted"):
            self.stopped = None
        for failures in (self.failures, *self.missing):
            failures.reinstate()

    def _restore(
        self,
        queries: Sequence[Query],
        evaluations: Sequence[Evaluation],
        fitted: dict[str, Any] | None,
        stopped: StopReason | None,
        unknown: int = 0,
        bulk: Sequence[Bulk] = (),
    ) -> None:
        """Set the state of a new integrator to that of a run, without deciding or learning anything again.

        Parameters
        ----------
        queries, bulk : list of Query, list of Bulk
            All that were asked, in order, and evaluations in bulk.
        evaluations : list of Evaluation
            All that answer one of them, in the order in which they were told.
        fitted : dict or None
            The latest refit that is known, as `Learner.fitted` returned it.
        stopped : str or None
            Why nothing more is asked.
        unknown : int
            How many of the last evaluations do not have the integral after them; for these it is evaluated.
        """
        self._restore_bulk(bulk, begun=bool(queries))
        planned = self._initial_design()  # before any answer changes it
        for query in queries:
            self._n_asked, self.rate = query.id + 1, query.rate
            self.deciding.charged(query.decision)
            if math.isnan(query.rate):
                remove_planned(planned, {query.source, self.option(query.source, True)}, query.x)
        for number_of_evaluation, e in enumerate(evaluations, 1):
            with collected_warnings():  # they were issued when it happened
                self._use(e)
            self._charge_for(e)
            if fitted is not None and len(self.learner) >= fitted["n"] != self.learner.refitted_at:
                self.learner.restore(fitted)
                fitted = None
            if number_of_evaluation > len(evaluations) - unknown:
                mean, std = self._integral()
                e = replace(e, mean=mean, std=std)
            self.evaluations.append(e)
        answered = {e.id for e in evaluations}
        for query in queries:  # the budget may be smaller than it was when they were asked
            if query.id not in answered and affordable(self.committed + query.cost + query.decision, self.budget):
                self._pending[query.id] = query
        self.stopped = self.stopped or stopped
