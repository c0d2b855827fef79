"""`Integrator`: decides what to evaluate, and is told what came of it, by users who evaluate elsewhere."""

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
    """Decides what to evaluate next, and estimates the integral, while evaluations are made elsewhere.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        The primary one, whose integral is wanted, first. Plain callables are sources of cost 1.
    inputs : measure, or anything that `as_measure` takes, or a dictionary
        The distribution of the inputs. A dictionary has a distribution or a (low, high) pair for each input by name.
    budget : float, optional
        In units of cost; by default there is no limit. What is spent and what is reserved for pending queries never
        exceed it, if costs are known.
    model : str or MultiSourceGP
        "auto", the default, an average over several structures; "icm", the paper's, with hyperparameters at their
        mode; "lmc", a linear model of coregionalisation; "ar", autoregressive, for sources in order of fidelity;
        "vbq", which uses source 0 only; or a `MultiSourceGP` with hyperparameters of your own.
    acquisition : str
        "mi" or "ivr"; "ip" and "nv" to see them fail: `amsbq.acquisition.utility`.
    seed : int, optional
        Seed of all randomness; 0 by default.
    initial : list of (source, x), optional
        What to evaluate first. By default two locations from the measure, at which all sources are evaluated: how they
        are related shows where they are compared; and, of sources that have gradients, some evaluations with these.
    order : list of int, optional
        The numbers of all sources from the most to the least faithful one, the primary one first. By default by their
        fidelities, if all have one, or by their costs, the cheapest last.
    rng : int or numpy.random.Generator, optional
        Instead of ``seed``: an integer is the seed, a generator draws it.
    names : list of str, optional
        Names of the inputs, for results and figures.
    target : "mean", "variance", Exceedance or Quantile
        What evaluations are chosen to learn: the mean of the output, its variance, with ``Exceedance(limit)`` the
        probability that it is above a limit, or with ``Quantile(p)`` a quantile. `Result.distribution` has the answers
        to all but the first.
    output_range : (low, high), optional
        The range of the values of all sources, one end of which may be infinite: ``(0, np.inf)`` if they are never
        negative. Values outside are failed evaluations, and estimates and intervals never leave it.
    log : bool
        Whether sources return logarithms of a non-negative function, such as log-likelihoods; the answer is then the
        logarithm of its integral.
    outputs : list of str, or int, optional
        Names of M numbers that each evaluation returns, or how many there are. Values, means and standard deviations
        are then arrays (M,), and one run serves them all.
    weights : list of float, or dictionary by output, optional
        How much each output matters. By default evaluations are chosen so that all reach the same relative accuracy.
    decision_cost : float
        What a second costs that is spent on learning and deciding, in the unit of all costs; nothing by default. It is
        charged with the evaluation that was decided on, and counts in rates: a source that costs much less than a
        decision is asked for sets of evaluations. Runs then depend on how fast the computer is.
    limit : bool
        Whether the integral wanted is that of what the sources tend to as their fidelities do to zero, which nobody can
        evaluate: the error of the finest one is then in the error bar. Two sources or more need a fidelity; `levels`
        makes such sources.
    title : str, optional
        What the run is about, for results, figures and pages.
    units : dictionary of str, optional
        Units of inputs and of several outputs by their names, of the only output as ``"output"``, and of costs as
        ``"cost"``.
    labels : dictionary of str, optional
        What to call them where there is room for more than a name: with ``{"output": "peak"}`` the answer is the
        "expected peak". No number depends on title, units and labels.

    Attributes
    ----------
    spent, reserved : float
        The cost of all evaluations, and the expected cost of all pending queries.
    evaluations : list of Evaluation
        In the order in which they were told.
    pending : list of Query
        The queries that have no answer yet.
    rate : float
        The acquisition rate at which the latest query was chosen.
    problem, ledger, learner, policy, in_bulk
        Its parts: the description of the run, what is spent and reserved, what is known, what is asked next, and the
        sources that are evaluated in bulk. They are for the other packages, and may change.
    stopped : str or None
        Why nothing more is asked: "budget", "exhausted" (nothing is left to learn), or "failures" (of source 0).

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
        """Return the distribution of the integral, conditioned on all that was told or observed.

        Without a value of the primary source it is unknown, whatever the others say: its numbers are NaN, and a warning
        says why. Right after `tell`, mean and standard deviation are those of the latest evaluation. Hyperparameters
        are those of the latest scheduled refit, whose warnings are issued again; nothing is learned that was learned
        before. With several outputs it returns `Estimates`. Raises `ValueError` if nothing was told or observed yet.
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
        """Return the integral so far, and how it was found, as `integrate` returns them.

        Its ``stopped`` is empty while more can be asked. Raises `ValueError` if nothing was told or observed yet.
        """
        if not len(self.learner):
            raise ValueError("there is no result yet: tell or observe something first")
        return result_of(self, self.stopped or "")


def integrator_for(problem: Problem) -> Integrator:
    """Return a new integrator of a run that is described already."""
    it = Integrator.__new__(Integrator)
    Decisions.__init__(it, problem)
    return it
