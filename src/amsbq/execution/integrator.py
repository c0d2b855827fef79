"""`Integrator`: ask and tell, for evaluations that are made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ..common.messages import renamed, warn
from ..common.validation import Array, RNGLike
from ..design.acquisition import AcquisitionName
from ..design.decisions import Decisions
from ..design.description import Initial, Problem, RangeLike
from ..design.evaluations import Beside
from ..design.goals import Weights
from ..design.sources import SourcesLike
from ..gp.posterior import MultiSourceGP
from ..inference.structures import ModelName
from ..measures.adapters import NamedMeasureLike
from ..posterior.estimates import AnyEstimate, unknown_estimate
from ..posterior.outputs import OutputsLike
from ..posterior.targets import Target
from ..results.result import Result, result_of, unknown_because
from .bulk import beside_here, evaluate_in_bulk, evaluated_here


class Integrator(Decisions):
    """Sequential choice of evaluations and estimate of the integral, for evaluations that are made elsewhere.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        The primary one, whose integral is estimated, comes first. Plain callables are sources of cost 1.
    inputs : measure, or anything that `as_measure` accepts, or a dictionary
        The distribution of the inputs. A dictionary has a distribution or a (low, high) pair for each input by name.
    budget : float, optional
        In units of cost; by default there is no limit. If costs are known, the sum of what is spent and what is
        reserved for pending queries never exceeds it.
    model : str or MultiSourceGP
        "auto", the default, an average over several structures; "icm", the paper's, with hyperparameters at their
        mode; "lmc", a linear model of coregionalisation; "ar", autoregressive, for sources in order of fidelity;
        "vbq", which uses only source 0; or a `MultiSourceGP` with your own hyperparameters.
    acquisition : str
        "mi" or "ivr"; "ip" and "nv" to demonstrate their failure: `amsbq.acquisition.utility`.
    seed : int, optional
        Seed of all randomness; 0 by default.
    initial : list of (source, x), optional
        The first evaluations. By default, all sources are evaluated at two locations from the measure, because shared
        locations show how they are related; sources with gradients also get some evaluations with gradients.
    order : list of int, optional
        The indices of all sources from the most to the least accurate one, the primary one first. By default they are
        sorted by their fidelities, if all have one, or by their costs, the cheapest last.
    rng : int or numpy.random.Generator, optional
        Alternative to ``seed``: an integer is used as the seed, a generator draws one.
    names : list of str, optional
        Names of the inputs, for results and figures.
    target : "mean", "variance", Exceedance or Quantile
        The quantity for which evaluations are chosen: the mean of the output, its variance, with ``Exceedance(limit)``
        the probability that it is above a limit, or with ``Quantile(p)`` a quantile. `Result.distribution` has the
        estimates of all of these but the mean.
    output_range : (low, high), optional
        The range of the values of all sources, one end of which may be infinite: ``(0, np.inf)`` if they are never
        negative. Values outside are failed evaluations, and estimates and intervals never leave the range.
    log : bool
        Whether sources return logarithms of a non-negative function, such as log-likelihoods; the answer is then the
        logarithm of its integral.
    outputs : list of str, or int, optional
        Names of the M numbers that each evaluation returns, or M. Values, means and standard deviations
        are then arrays (M,), and one run serves all outputs.
    weights : list of float, or dictionary by output, optional
        Weight of each output. By default evaluations are chosen so that all reach the same relative accuracy.
    decision_cost : float
        The cost of a second of learning and deciding, in the unit of all costs; 0 by default. It is charged with the
        evaluation that was decided on, and included in rates: a source that costs much less than a decision is
        evaluated in sets. With such a cost, runs depend on the speed of the computer.
    limit : bool
        Whether to estimate the integral of the limit of the sources as their fidelities tend to zero. The limit cannot
        be evaluated: the error bar includes the error of the finest source. Two or more sources must have a fidelity;
        `levels` makes such sources.
    title : str, optional
        Title of the run, for results, figures and reports.
    units : dictionary of str, optional
        Units of inputs and of several outputs by their names, of the only output as ``"output"``, and of costs as
        ``"cost"``.
    labels : dictionary of str, optional
        Display names of inputs and outputs: with ``{"output": "peak"}`` the answer is the
        "expected peak". No number depends on title, units and labels.

    Attributes
    ----------
    spent, reserved : float
        The cost of all evaluations, and the expected cost of all pending queries.
    evaluations : list of Evaluation
        All evaluations, in the order in which they were reported.
    pending : list of Query
        The queries that have no answer yet.
    rate : float
        The acquisition rate of the latest query.
    problem, ledger, learner, policy, in_bulk
        Components: the description of the run, the costs, the posterior, the choice of queries, and the
        sources that are evaluated in bulk. They are internal and may change.
    stopped : str or None
        Why no further evaluation is requested: "budget", "exhausted" (nothing is left to learn), or "failures" (of
        source 0).

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

    @renamed(measure="inputs")
    def __init__(
        self,
        sources: SourcesLike,
        inputs: NamedMeasureLike,
        *,
        budget: float | None = None,
        model: ModelName | MultiSourceGP = "auto",
        acquisition: AcquisitionName = "mi",
        seed: RNGLike = None,
        initial: Initial | None = None,
        order: Sequence[int] | None = None,
        rng: RNGLike = None,
        names: Sequence[str] | None = None,
        target: Target | Mapping[str, Target] = "mean",
        outputs: OutputsLike | None = None,
        weights: Weights | None = None,
        output_range: RangeLike | None = None,
        log: bool | Mapping[str, bool] = False,
        decision_cost: float = 0.0,
        limit: bool = False,
        title: str | None = None,
        units: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        problem = Problem.of(
            sources,
            inputs,
            budget=budget,
            model=model,
            acquisition=acquisition,
            seed=seed,
            initial=initial,
            order=order,
            rng=rng,
            names=names,
            target=target,
            outputs=outputs,
            weights=weights,
            output_range=output_range,
            log=log,
            decision_cost=decision_cost,
            limit=limit,
            title=title,
            units=units,
            labels=labels,
        )
        super().__init__(problem)

    def estimate(self) -> AnyEstimate:
        """Return the posterior distribution of the integral given all observations.

        Without a value of the primary source it is unknown: its numbers are NaN, and a warning
        says why. Right after `tell`, mean and standard deviation are those of the latest evaluation. Hyperparameters
        are those of the latest scheduled refit, whose warnings are issued again; nothing is refitted that was fitted
        before. With several outputs, return `Estimates`. Raise `ValueError` if there are no observations yet.
        """
        if len(self.learner) and not self.learner.has_primary:
            warn(f"the integral is {unknown_because(self.names)}")
            return unknown_estimate(self.outputs)
        return super().estimate()

    def _evaluate_in_bulk(self) -> None:
        for _ in evaluate_in_bulk(self, partial(evaluated_here, self)):
            pass

    def _beside(self, x: Array) -> list[Beside]:
        return beside_here(self, x)

    def result(self) -> Result:
        """Return the current estimate and everything that led to it, as `integrate` does.

        Its ``stopped`` is empty while the run can continue. Raise `ValueError` if there are no observations yet.
        """
        if not len(self.learner):
            raise ValueError("there is no result yet: tell or observe something first")
        return result_of(self, self.stopped or "")


def integrator_for(problem: Problem) -> Integrator:
    """Return a new integrator for the description of a run."""
    it = Integrator.__new__(Integrator)
    Decisions.__init__(it, problem)
    return it
