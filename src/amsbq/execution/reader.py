"""Results from journals, without the functions of the sources."""

from __future__ import annotations

import math
from os import PathLike

import numpy as np

from ..common.messages import collected_warnings
from ..common.validation import brief
from ..design.description import Problem, input_names
from ..posterior.estimate import Estimate
from ..posterior.estimates import AnyEstimate, Estimates, unknown_estimate
from ..results.result import Result
from .integrator import Integrator, integrator_for
from .journal import JournalPath
from .state import MALFORMED, RunState, malformed_error, read_state


def read_result(path: JournalPath, model: bool = True) -> Result:
    """Read the result of a finished or running run from its journal; nothing is locked or evaluated.

    Parameters
    ----------
    path : path
        The journal.
    model : bool
        Whether to restore the integrator of the run, which is needed for diagnoses, predictions and most figures, and
        takes a moment. The integrator is None anyway if the journal does not contain enough: if the measure or the
        model contains a distribution, samples or a kernel that cannot be rebuilt, or if observations were added outside
        the journal. It is always restored if evaluations were revised, or were reported while no process was running,
        because the integral must then be updated.

    >>> read_result("nowhere.jsonl")
    Traceback (most recent call last):
    amsbq.execution.journal.JournalError: the journal nowhere.jsonl cannot be read: No such file or directory
    """
    if not isinstance(path, str | PathLike):
        raise TypeError(f"read_result takes the name of a journal, got {brief(path)}")
    state = read_state(path)
    try:
        it = restored_integrator(state) if model or state.revised or state.unknown else None
    except MALFORMED as error:
        raise malformed_error(path, error) from error
    return result_of(state, it)


def result_of(state: RunState, it: Integrator | None = None) -> Result:
    """Return the result of a run from its state and, if there is one, its integrator restored to that state."""
    evaluations = [*state.observed, *state.evaluations] if it is None else list(it.evaluations)
    dim = it.measure.dim if it is not None else len(state.queries[0].x) if state.queries else 0
    return Result(
        _estimate(state, it),
        evaluations,
        math.fsum([*(e.cost for e in evaluations), *(b.with_those_beside(evaluations)[1] for b in state.bulk)]),
        state.stopped,
        state.names,
        state.budget,
        state.header.get("inputs") or input_names(dim),
        it,
        len(state.pending),
        state.header,
        state.bulk,
        stored_target=state.target,
        certificate=state.certificates[-1] if state.certificates else None,
    )


def restored_integrator(state: RunState) -> Integrator | None:
    """Return an integrator in the state of a run, or None if the journal does not contain enough to rebuild it.

    Its sources have no functions, and costs that were functions of the input are learned from the costs recorded.
    """
    if state.header["problem"]["observed"]:
        return None
    with collected_warnings():  # they were issued when the run began
        problem = Problem.from_dict(state.header["problem"], state.budget, state.labels)
        if problem is None:
            return None
        it = integrator_for(problem)
        state.restore(it)
    return it


def _estimate(state: RunState, it: Integrator | None) -> AnyEstimate:
    evaluations = [*state.observed, *state.evaluations]
    if not any(e.source == 0 and e.status == "ok" for e in evaluations) and not state.header["problem"]["observed"]:
        return unknown_estimate(state.outputs)
    if state.estimate is not None:
        return state.estimate
    if it is not None and it.learner.posterior is not None and len(it.learner):
        return it.learner.posterior.estimate
    known = [e for e in state.evaluations if np.isfinite(e.std).any()]
    if not known:
        return unknown_estimate(state.outputs)
    if state.outputs is None:
        return Estimate([known[-1].mean], [known[-1].std])
    pairs = zip(known[-1].mean, known[-1].std, strict=True)
    return Estimates(
        [Estimate.unknown() if np.isnan(std) else Estimate([mean], [std]) for mean, std in pairs], state.outputs
    )
