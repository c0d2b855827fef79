"""`integrate`, the call that most users need, and `Integrator`, which decides what to evaluate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

from .design.acquisition import AcquisitionName
from .design.initial import Initial
from .design.integrator import Integrator as DesignIntegrator
from .design.sources import SourcesLike
from .design.stopping import StopRule, Tolerance, evaluations, tolerance, tolerances
from .execution.executors import ExecutorLike
from .execution.journal import JournalPath
from .execution.runner import RunInterrupted, run
from .gp.posterior import MultiSourceGP
from .inference.structures import ModelName
from .measures.adapters import NamedMeasureLike
from .messages import warn
from .outputs.estimates import AnyEstimate, unknown_estimate
from .outputs.goals import Weights
from .outputs.names import OutputsLike
from .quantities.targets import Target
from .results.result import Result, unknown_because
from .validation import RNGLike, brief


class Integrator(DesignIntegrator):
    """Decides what to evaluate next, and estimates the integral, while evaluations are made elsewhere.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        The primary one, whose integral is wanted, first. Plain callables are sources of cost 1.
    measure : measure, or anything that `as_measure` takes, or a dictionary
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
        costs, the cheapest last.
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

    def result(self) -> Result:
        """Return the integral so far, and how it was found, as `integrate` returns them.

        Its ``stopped`` is empty while more can be asked. Raises `ValueError` if nothing was told or observed yet.
        """
        if not len(self.learner):
            raise ValueError("there is no result yet: tell or observe something first")
        return Result.of(self, self.stopped or "")


def integrate(
    sources: SourcesLike,
    measure: NamedMeasureLike,
    *,
    budget: float | None = None,
    model: ModelName | MultiSourceGP = "auto",
    acquisition: AcquisitionName = "mi",
    seed: RNGLike = None,
    initial: Initial | None = None,
    order: Sequence[int] | None = None,
    rel_tol: Tolerance | None = None,
    abs_tol: Tolerance | None = None,
    executor: ExecutorLike | None = None,
    workers: int = 1,
    journal: JournalPath | None = None,
    progress: bool | Callable[[DesignIntegrator], None] | None = None,
    max_evaluations: int | None = None,
    stop: StopRule | Sequence[StopRule] = (),
    rng: RNGLike = None,
    on_interrupt: Literal["raise", "return"] = "raise",
    accept_changes: bool = False,
    names: Sequence[str] | None = None,
    target: Target = "mean",
    outputs: OutputsLike | None = None,
    weights: Weights | None = None,
    output_range: tuple[float, float] | None = None,
    log: bool = False,
    decision_cost: float = 0.0,
) -> Result:
    """Integrate an expensive source over its inputs, by evaluating it and its cheaper approximations.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        The primary one, whose integral is wanted, first. They are called with x of shape (D,), and return a number or
        an `Observation`. Plain functions have cost 1; write `Source(function, cost=0.05)` for a cheap one.
    measure : measure, or anything that `as_measure` takes
        The distribution of the inputs: one scipy.stats distribution; or a list that has one, or a (low, high) pair, for
        each input; or a dictionary of these by the names of the inputs; or a measure.
    budget : float, optional
        In units of cost. It may be left out if there is a tolerance, a stop rule or a number of evaluations.
    model, acquisition, seed, initial, order, rng, target, output_range, log, decision_cost
        See `Integrator`.
    rel_tol, abs_tol : float; with several outputs also M of them, or a dictionary by output; optional
        Stop when half the width of the 95 % interval stays below this share of the mean, or below this number, for all
        outputs; one that a dictionary leaves out has no tolerance. With a target, these are the interval and the mean
        of that quantity; they take a second or two after each evaluation.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to evaluate: any executor, or a Dask cluster. By default in this thread, or, if there are several workers
        or a source has a timeout, in threads of their own.
    workers : int
        Evaluations at the same time.
    journal : path, optional
        A file to which everything is written as it happens. If it exists, the run is resumed from it, and nothing that
        was evaluated is evaluated again; a run that had stopped only returns its result. A larger budget makes it go
        on.
    progress : bool or function of the `Integrator`, optional
        True shows progress, in a notebook as a figure that is renewed; False does not, None shows it on a terminal; a
        function is called whenever something has happened.
    max_evaluations : int, optional
        Stop after that many evaluations, failed ones included.
    stop : function of the `Integrator`, or a list of them, optional
        The run stops when one of them returns a reason (a string) instead of None.
    on_interrupt : "raise" or "return"
        What to do after Ctrl-C. The first one lets running evaluations end, and everything is in the journal; a second
        one stops at once. Then `KeyboardInterrupt` is raised, and its attribute ``result`` is the partial `Result`
        (None if no evaluation was successful); or the partial result is returned, if there is one.
    accept_changes : bool
        Whether to resume a journal although the problem has changed, because its evaluations still count: another cost,
        a function that was renamed. The journal then says what has changed. By default such a journal is refused.
    names : list of str, optional
        Names of the inputs, for the result, its figures and the journal.
    outputs, weights
        Names of several numbers that each evaluation returns, and how much they matter: see `Integrator`. The sources
        return an array, a sequence or a dictionary by name, and the result has arrays; ``result["peak"]`` is that of
        one output.

    Returns
    -------
    Result
        The integral with its uncertainty, all evaluations, and the integrator that chose them.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import amsbq
    >>> def fine(x):
    ...     return np.exp(-(x[0] ** 2))
    >>> def coarse(x):
    ...     return 1 / (1 + x[0] ** 2)
    >>> result = amsbq.integrate([fine, amsbq.Source(coarse, cost=0.1)], stats.norm(0, 0.5), budget=5)
    >>> low, high = result.interval(0.95)
    >>> bool(low < np.sqrt(2 / 3) < high)
    True
    """
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f"on_interrupt must be 'raise' or 'return', got {on_interrupt!r}")
    if not isinstance(progress, bool | None) and not callable(progress):
        raise TypeError(f"progress must be True, False, None or a function of the Integrator, got {brief(progress)}")
    rules = [stop] if callable(stop) else list(stop)
    if not all(map(callable, rules)):
        raise TypeError(f"stop must be functions of the Integrator that return a reason or None, got {brief(stop)}")
    if budget is None and rel_tol is None and abs_tol is None and max_evaluations is None and not rules:
        raise ValueError("nothing would end the run: give a budget, a tolerance (rel_tol, abs_tol) or max_evaluations")
    it = Integrator(
        sources,
        measure,
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
    )
    for name, source in zip(it.names, it.sources, strict=True):
        if source.function is None:
            raise TypeError(f"{name} has no function to call: give it one, or use an Integrator and tell it values")
    if rel_tol is not None or abs_tol is not None:
        rules.append(tolerance(rel_tol, abs_tol, it.outputs))
        if it.outputs is not None:
            it.goals = replace(it.goals, **tolerances(rel_tol, abs_tol, it.outputs))
    if max_evaluations is not None:
        rules.append(evaluations(max_evaluations))
    from .visualization.notebook import notebook_progress  # which those who only ask and tell do not need

    with notebook_progress(it, progress) as shown:
        result = run(
            it,
            rules,
            executor=executor,
            workers=workers,
            journal=journal,
            progress=shown,
            accept_changes=accept_changes,
        )
    if result.stopped == "interrupted" and on_interrupt == "raise":
        raise RunInterrupted(result)
    return result
