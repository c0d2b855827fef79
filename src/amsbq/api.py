"""`integrate`, the function that most users need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Literal

from .certificates.plan import check_shares, kept_budget
from .certification import certify as certificate_for
from .common.messages import renamed
from .common.validation import RNGLike, brief, positive_number
from .design.acquisition import AcquisitionName
from .design.description import Initial, Problem, RangeLike
from .design.goals import Tolerance, Weights
from .design.sources import SourcesLike
from .design.stopping import StopRule, evaluations, goal_rules
from .execution.executors import ExecutorLike
from .execution.integrator import Integrator, integrator_for
from .execution.journal import JournalPath
from .execution.runner import RunInterrupted, run
from .gp.posterior import MultiSourceGP
from .inference.structures import ModelName
from .measures.adapters import NamedMeasureLike
from .posterior.outputs import OutputsLike
from .posterior.targets import Target
from .results.result import Result, is_known


@renamed(measure="inputs")
def integrate(
    sources: SourcesLike,
    inputs: NamedMeasureLike,
    *,
    budget: float | None = None,
    model: ModelName | MultiSourceGP = "auto",
    acquisition: AcquisitionName = "mi",
    seed: RNGLike = None,
    initial: Initial | None = None,
    order: Sequence[int] | None = None,
    rel_tol: Tolerance | None = None,
    abs_tol: Tolerance | None = None,
    error_cost: Tolerance | None = None,
    executor: ExecutorLike | None = None,
    workers: int = 1,
    journal: JournalPath | None = None,
    progress: bool | Callable[[Integrator], None] | None = None,
    max_evaluations: int | None = None,
    stop: StopRule | Sequence[StopRule] = (),
    rng: RNGLike = None,
    on_interrupt: Literal["raise", "return"] = "raise",
    accept_changes: bool = False,
    names: Sequence[str] | None = None,
    target: Target | Mapping[str, Target] = "mean",
    outputs: OutputsLike | None = None,
    weights: Weights | None = None,
    output_range: RangeLike | None = None,
    log: bool | Mapping[str, bool] = False,
    decision_cost: float = 0.0,
    certify: float = 0.0,
    limit: bool = False,
    title: str | None = None,
    units: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Result:
    """Estimate the expected output of an expensive source from evaluations of it and of cheaper approximations.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        The primary source, whose expected output is estimated, comes first. Each is called with x of shape (D,) and
        returns a number or an `Observation`. Plain functions have cost 1; write `Source(function, cost=0.05)` for a
        cheap one.
    inputs : measure, or anything that `as_measure` accepts
        The distribution of the inputs: one scipy.stats distribution; a list of one distribution or (low, high) pair
        per input; a dictionary of these by input name; or a measure.
    budget : float, optional
        The total cost to spend, in units of cost. It may be left out if there is a tolerance, an ``error_cost``, a stop
        rule or ``max_evaluations``.
    model, acquisition, seed, initial, order, rng, target, output_range, log, decision_cost, limit
        See `Integrator`.
    rel_tol, abs_tol : float; with several outputs also M of them, or a dictionary by output; optional
        Stop when half the width of the 95 % interval stays below this fraction of the mean, or below this number, for
        all outputs; outputs missing from a dictionary have no tolerance. With a target, the tolerances refer to its
        interval and mean, which take a second or two to compute after each evaluation.
    error_cost : float; with several outputs also M of them, or a dictionary by output; optional
        What a standard deviation of one costs you, in units of cost. The run stops when further evaluations are
        expected to cost more than the smaller standard deviation saves.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to evaluate: any executor, or a Dask cluster. By default in this thread or, if there are several workers
        or a source has a timeout, in separate threads.
    workers : int
        Number of concurrent evaluations.
    journal : path, optional
        A file to which every event is written as it happens. If it exists, the run is resumed from it without
        repeating any evaluation; a run that has stopped only returns its result. A larger budget continues it.
    progress : bool or callable, optional
        True shows progress, in a notebook as a figure that is updated in place; False shows none; None shows it on a
        terminal; a callable is called with the `Integrator` after each query and each evaluation.
    max_evaluations : int, optional
        Stop after that many evaluations, including failed ones.
    stop : callable or list of callables, optional
        Stop rules, called with the `Integrator`: the run stops when one of them returns a reason (a string) instead of
        None.
    on_interrupt : "raise" or "return"
        What to do after Ctrl-C. After the first one, the run waits for running evaluations and records them in the
        journal; a second one stops it immediately. Then either `KeyboardInterrupt` is raised, with the partial `Result`
        as its attribute ``result`` (None if no evaluation was successful), or the partial result is returned, if there
        is one.
    accept_changes : bool
        Whether to resume a journal although the problem has changed, for example if a cost is different or a function
        was renamed, but the evaluations are still valid. The journal then records the changes. By default such a
        journal is refused.
    names : list of str, optional
        Names of the inputs, for the result, its figures and the journal.
    outputs, weights
        Names of the several numbers that each evaluation returns, and their weights: see `Integrator`. The sources
        return an array, a sequence or a dictionary by name, and the result has arrays; ``result["peak"]`` is the
        result for one output.
    certify : float
        The fraction of the budget reserved for a certificate, such as 0.2: an estimate from fresh random evaluations
        that does not depend on the model. It is ``result.certificate``; see `certify`.
    title, units, labels
        The title of the run, and units and display names, as in ``units={"speed": "m/s", "output": "m", "cost":
        "core hours"}``: see `Integrator`. Results, figures and reports show them; no number depends on them.

    Returns
    -------
    Result
        The expected output with its uncertainty, all evaluations, and the integrator that chose them.

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
        raise TypeError(
            f"progress must be True, False, None or a callable that takes the Integrator, got {brief(progress)}"
        )
    if journal is not None and not isinstance(journal, str | PathLike):
        raise TypeError(f"journal must be the name of a file, got {brief(journal)}")
    rules: list[StopRule] = [stop] if callable(stop) else list(stop) if isinstance(stop, Sequence) else [stop]
    if not all(map(callable, rules)):
        raise TypeError(
            f"stop must be callables that take the Integrator and return a reason or None, got {brief(stop)}"
        )
    if all(end is None for end in (budget, rel_tol, abs_tol, error_cost, max_evaluations)) and not rules:
        raise ValueError(
            "nothing would end the run: pass a budget, a tolerance (rel_tol, abs_tol), an error_cost or max_evaluations"
        )
    kept = kept_budget(certify, budget)
    problem = Problem.of(
        sources,
        inputs,
        budget=None if budget is None else positive_number(budget, "budget") - kept,
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
        rel_tol=rel_tol,
        abs_tol=abs_tol,
        error_cost=error_cost,
        title=title,
        units=units,
        labels=labels,
    )
    if kept:
        check_shares(problem, kept)
    it = integrator_for(problem)
    for name, source in zip(it.names, it.sources, strict=True):
        if source.function is None:
            raise TypeError(f"{name} has no function to call: pass one, or use an Integrator and tell it the values")
    rules += goal_rules(problem.goals)
    if max_evaluations is not None:
        rules.append(evaluations(max_evaluations))
    from .visualization.notebook import notebook_progress  # not needed to ask and tell

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
    if not kept or result.stopped == "interrupted" or not is_known(result):
        return result
    certificate = certificate_for(result, kept, problem.seed, executor=executor, workers=workers, journal=journal)
    return replace(result, certificate=certificate)
