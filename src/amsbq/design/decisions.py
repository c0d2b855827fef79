"""`Decisions`: what to evaluate next, and the integral given the answers; `amsbq.Integrator` returns a `Result` too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from ..common.messages import collected_warnings, warn
from ..common.threads import threads_for
from ..common.validation import Array, Values, count, source_number
from ..posterior.estimates import AnyEstimate
from ..posterior.learner import Learner
from ..posterior.outputs import output_number
from ..posterior.posterior import Posterior
from ..posterior.targets import target_estimate
from .acquisition import PATHOLOGIES
from .bulk import Bulk, InBulk, bulk_counts
from .costs import affordable
from .description import Problem
from .evaluations import Choice, Evaluation, Option, Query, StopReason
from .failures import usable
from .forecast import SETTINGS as AHEAD
from .forecast import Forecast, budget_ahead, forecast_rows, planned_first
from .initial import remove_planned
from .policy import Policy
from .run import Run, locked

AnyDecisions = TypeVar("AnyDecisions", bound="Decisions")


class Decisions(Run):
    """The decisions of a run, without any evaluation. Users have `amsbq.Integrator`, which explains them.

    Attributes
    ----------
    learner : Learner
        The observations, and the posterior.
    policy : Policy
        Chooses what to evaluate next.
    rate : float
        The acquisition rate at which the latest query was chosen.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.in_bulk = InBulk(problem, self.ledger, bulk_counts(problem, self.ledger))
        order = problem.modelled_order(problem.known_order or self.ledger.costs.dearest_first())
        learning = (problem.model, problem.measure, problem.noise, problem.seed, problem.modelled, order)
        self.learner = Learner(*learning, outputs=problem.outputs, ranges=problem.ranges)
        self.policy = Policy(problem, self.ledger, self.learner, self.in_bulk, self.evaluations)
        self.rate = math.nan
        if problem.acquisition in PATHOLOGIES:
            warn(f"acquisition {problem.acquisition!r}: {PATHOLOGIES[problem.acquisition]}")

    @property
    def starting(self) -> bool:
        """Whether part of the initial design is still to be evaluated, or the primary source has no value."""
        return bool(self.policy.initial_design()) or not self.learner.has_primary

    @overload
    def ask(self) -> Query | None: ...

    @overload
    def ask(self, n: int) -> list[Query]: ...

    @locked
    def ask(self, n: int | None = None) -> Query | list[Query] | None:
        """Return the evaluation with the best rate, conditioned on all observations and on the pending queries.

        All sources that cost nothing are evaluated in bulk first.

        Parameters
        ----------
        n : int, optional
            Number of evaluations to choose jointly; returns a list, shorter than n if the budget does not allow more.

        Returns
        -------
        A `Query`, or None if there is nothing more to ask; if nothing is pending either, ``stopped`` says why.
        """
        wanted = 1 if n is None else count(n, "n")
        self._evaluate_in_bulk()
        queries: list[Query] = []
        with threads_for(len(self.learner)), self.ledger.decisions.timed():
            while len(queries) < wanted and self.stopped is None:
                choices, reason = self.policy.next(wanted - len(queries))
                if not choices:
                    self.stopped = None if self.ledger.pending else reason  # a pending answer may change it
                    break
                queries += [self.ledger.issue(choice) for choice in choices]
                self.rate = queries[-1].rate
        if queries and not self.policy.within_set:  # the last one of a set is charged for all of it
            queries[0] = self.ledger.charge_decision(queries[0])
        return queries if n is not None else next(iter(queries), None)

    @locked
    def observe(
        self,
        source: int | str,
        x: ArrayLike,
        value: ArrayLike | Mapping[str, ArrayLike],
        variance: ArrayLike | Mapping[str, ArrayLike] = 0.0,
        gradient: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> None:
        """Add an existing value, at no cost.

        Its entry in ``evaluations`` has NaN for the mean and the standard deviation of the integral: the value is used
        when the integral is next estimated, so that many observations can be added quickly.

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
        gradient : D numbers; with several outputs (M, D), or a dictionary by output; optional
            The derivatives of the value with respect to each input, NaN where they are not known.
        """
        source, x = source_number(source, len(self.sources), names=self.names), self.problem.location(x)
        (y, noise), slopes = self._checked(source, value, variance), self._checked_gradient(source, x, gradient)
        for known, each in zip(self.problem.ranges, np.atleast_1d(y), strict=True):
            if known is not None and np.isfinite(each):
                known.check(each)
        self.evaluations.append(Evaluation(None, source, x, y, noise, 0.0, "ok", "", gradient=slopes))
        self._learn(self.evaluations[-1])
        self.policy.observed()

    @locked
    def estimate(self) -> AnyEstimate:
        """Return the posterior distribution of the integral given all observations.

        Right after `tell`, mean and standard deviation are those of the latest evaluation. Hyperparameters are those of
        the latest scheduled refit, whose warnings are issued again; no refit is repeated. With several outputs, the
        result is `Estimates`.
        """
        posterior = self._known_posterior("there is nothing to estimate from: tell or observe something first")
        for message in self.learner.refit_warnings:
            warn(message)
        with threads_for(len(self.learner)):
            return self.problem.labels.of_estimate(posterior.estimate, self.outputs)

    @locked
    def predict(self, source: int | str, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and variance (n,), or (n, M), of a source without its noise, averaged over hyperparameters.

        Parameters
        ----------
        source : int or str
            Number or name of the source; "limit" is what sources tend to as they are refined, in runs with
            ``limit=True``.
        X : (n, D) array
            Locations.
        """
        number_of_source, points = (
            self.problem.predicted_number(source),
            self.measure.check_points(X, inputs=self.problem.inputs),
        )
        nothing = "there is nothing to predict from: tell or observe something first"
        posterior = self._known_posterior(nothing)
        if not posterior.includes(number_of_source):
            posterior = self._known_posterior(nothing, whole=True)
        with threads_for(len(self.learner)):
            mean, std = posterior.predict(number_of_source, points)
        return mean, std**2

    @locked
    def rates(self, X: ArrayLike) -> Array:
        """Return the acquisition rate of each source at each X_i: shape (sources, n)."""
        with threads_for(len(self.learner)):
            posterior = self.learner.posterior
            if posterior is None:
                raise ValueError("nothing is known yet: look at rates after the first evaluations")
            usable = [Option(source) for source in self.problem.usable]
            return self.policy.next_rate(posterior).values(
                usable, self.measure.check_points(X, inputs=self.problem.inputs)
            )

    @locked
    def preview(self) -> Choice | None:
        """Return the next evaluation if the budget were unlimited; None if nothing is worth evaluating."""
        with threads_for(len(self.learner)):
            posterior = self.learner.posterior
            if posterior is None:
                return None
            return self.policy.best(self.policy.next_rate(posterior), sources=self.policy.worth_asking)

    @locked
    def forecast(self, budget: float, sources: Sequence[int | str] | None = None, steps: int = AHEAD.steps) -> Forecast:
        """Return the expected standard deviation if the budget were spent according to the current model.

        Parameters
        ----------
        budget : float
            Total budget, including what is spent or reserved already.
        sources : list of int or str, optional
            The only sources to be evaluated from now on, to see what the others would contribute.
        steps : int
            The largest number of evaluations to look ahead.

        Returns
        -------
        A list of (total cost, standard deviation), from now until the budget is spent. It is exact if hyperparameters
        are fixed. If they are learned it is an estimate, and ``exact`` is False.
        """
        budget, policy, price = budget_ahead(budget, self.ledger.committed), self.policy, self.ledger.price
        among = policy.worth_asking if sources is None else [self._used_source(source) for source in sources]
        unknown = [self.names[source] for source in among if self.ledger.costs.unknown(source)]
        if unknown:
            raise ValueError(f"the cost of {unknown[0]} is not known yet: forecast after its first evaluation")
        with threads_for(len(self.learner)):
            posterior = self.learner.posterior
            if posterior is None:
                raise ValueError("nothing is known yet: forecast after the first evaluations")
            std = target_estimate(posterior, self.problem.targets).std
            exact = self.problem.model.given
            now = policy.rate(posterior, 1 if exact else AHEAD.every)
            planned = [choice for choice in policy.initial_design() if choice.source in among]
            following = planned_first(planned, price, budget, partial(policy.best, sources=among, budget=budget))
            power, cost = 1.0 if exact else AHEAD.learning, self.ledger.committed
            rate = policy.after_pending(now)
            rows, choices = forecast_rows(posterior, std, now.variance(), rate, cost, following, price, steps, power)
        return Forecast(rows, exact, self.outputs, choices, self.problem.labels, self.problem.targets)

    def _known_posterior(self, otherwise: str, whole: bool = False) -> Posterior:
        """Return the posterior given all observations, of all sources if ``whole``, or raise ValueError."""
        with threads_for(len(self.learner)):
            posterior = (self.learner.whole() if whole else self.learner.posterior) if len(self.learner) else None
        if posterior is None:
            raise ValueError(otherwise)
        return posterior

    def _evaluate_in_bulk(self) -> None:
        """Evaluate sources that cost nothing, unless that was done; this class has no means to evaluate them."""

    def _use_bulk(self, bulk: Bulk) -> None:
        self.in_bulk.made.append(bulk)
        self.ledger.charge(bulk.cost)
        for row in zip(bulk.X, bulk.values, bulk.variances, strict=True):
            self.learner.add(bulk.source, *row)
        for m, (mean, std) in enumerate(zip(np.atleast_1d(bulk.mean), np.atleast_1d(bulk.std), strict=True)):
            if np.isfinite(mean):
                self.learner.integrals[m] += ((bulk.source, float(mean), float(std) ** 2),)

    def _used_source(self, source: int | str) -> int:
        """Return the index of a source if the model uses it, or raise an error."""
        found = self.problem.source_number(source, "sources")
        if found not in self.policy.used:
            raise ValueError(
                f"sources is {found}, but the model uses only source 0, and others are not informative about it"
            )
        return found

    def _use(self, made: Evaluation) -> None:
        if made.reason:
            self.stopped = self.policy.failed(made) or self.stopped
            return
        # No values accompany a corrected failure, nor an answer before which nothing was evaluated in bulk.
        for other, (value, variance) in zip(self.in_bulk.sources, made.free, strict=True) if made.free else ():
            known, reason = usable(self.sources[other].valid, self.outputs, value, variance)
            if not reason:
                self.learner.add(other, made.x, known, variance)
        self._learn(made)
        self.policy.succeeded(made)
        super()._use(made)

    def _learn(self, made: Evaluation) -> None:
        """Add an evaluation to the data of the model."""
        self.learner.add(made.source, made.x, made.value, made.variance, made.gradient)

    def _integral(self) -> tuple[Values, Values]:
        if not len(self.learner):
            return math.nan, math.nan
        with threads_for(len(self.learner)), self.ledger.decisions.timed():
            posterior = self.learner.posterior
            assert posterior is not None
            estimate = posterior.estimate
        return estimate.mean, estimate.std

    def _foreseen(self) -> bool:
        return self.policy.foreseen


@locked
def of_output(it: AnyDecisions, output: str | int) -> AnyDecisions:
    """Return a view of the decisions on one of several outputs, by its name or number, with its values so far.

    It is read-only in effect: queries and answers of the view do not count in the run.
    """
    if it.outputs is None:
        raise KeyError(
            f"there is no output {output!r}: there is only a single one. To integrate several, name them, as in "
            "outputs=['peak', 'time']"
        )
    m, view = output_number(it.outputs, output), copy(it)
    lacking = {s for s, source in enumerate(it.sources) if it.outputs[m] not in (source.outputs or ())}
    view.problem, view.learner, view.ledger = it.problem.of_output(m), it.learner.of_output(m), copy(it.ledger)
    view.ledger.pending = {k: query for k, query in it.ledger.pending.items() if query.source not in lacking}
    view.evaluations = [e.of_output(m) for e in it.evaluations if e.source not in lacking]
    view.policy = it.policy.of_output(view.problem, view.ledger, view.learner, view.evaluations, lacking)
    view._describe()
    return view


def tell_bulk(it: Decisions, source: int, X: Array, values: Array, variances: Array, reason: str = "") -> Bulk:
    """Learn from all evaluations of a source in bulk, and return their summary: see `InBulk.summary`."""
    bulk = it.in_bulk.summary(source, X, values, variances, reason)
    it._use_bulk(bulk)
    return bulk


def reinstate(it: Decisions) -> None:
    """Give retired sources another chance, even if the run stopped because nothing was left without them."""
    if it.policy.failures.retired and it.stopped in ("failures", "exhausted"):
        it.stopped = None
    it.policy.reinstate()


def restore(
    it: Decisions,
    queries: Sequence[Query],
    evaluations: Sequence[Evaluation],
    fitted: dict[str, Any] | None,
    stopped: StopReason | None,
    unknown: int = 0,
    bulk: Sequence[Bulk] = (),
) -> None:
    """Set the state of new decisions ``it`` to that of a run, without repeating decisions or refits.

    ``queries`` are all queries in order, and ``evaluations`` all answers, in the order in which they were reported.
    ``fitted`` is the latest known refit, as `Learner.fitted` returned it. For the last ``unknown`` evaluations the
    integral after them is missing, and is computed.
    """
    for each in bulk:
        it._use_bulk(each)
    if queries:
        it.in_bulk.begun()
    planned = it.policy.initial_design()  # before any answer changes it
    for query in queries:
        it.ledger.asked, it.rate = query.id + 1, query.rate
        it.ledger.decisions.charged(query.decision)
        if math.isnan(query.rate):
            remove_planned(planned, query.source, query.x)
    for number_of_evaluation, e in enumerate(evaluations, 1):
        with collected_warnings():  # the warnings were issued at the time
            it._use(e)
        it._charge_for(e)
        if fitted is not None and len(it.learner) >= fitted["n"] != it.learner.refitted_at:
            it.learner.restore(fitted)
            fitted = None
        if number_of_evaluation > len(evaluations) - unknown:
            mean, std = it._integral()
            e = replace(e, mean=mean, std=std)
        it.evaluations.append(e)
    answered = {e.id for e in evaluations}
    for query in queries:  # the budget may have been reduced since they were asked
        total = it.ledger.committed + query.cost + query.decision
        if query.id not in answered and affordable(total, it.budget):
            it.ledger.pending[query.id] = query
    it.stopped = it.stopped or stopped
