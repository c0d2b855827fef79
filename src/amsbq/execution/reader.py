"""Results from journals: what is known of a run, without the functions that it called."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..design.integrator import Integrator
from ..design.sources import Source
from ..gp.posterior import gp_from_dict
from ..inference.estimate import Estimate
from ..measures.adapters import measure_from_dict
from ..messages import collected_warnings
from ..outputs.estimates import AnyEstimate, Estimates, unknown_estimate
from ..quantities.targets import target_from_dict
from ..results.result import Result, input_names
from .journal import JournalPath
from .state import NONSENSE, RunState, nonsense_error, read_state


def read_result(path: JournalPath, model: bool = True) -> Result:
    """Return the result of a run by its journal, whether it has stopped or goes on; nothing is locked or evaluated.

    Parameters
    ----------
    path : path
        The journal.
    model : bool
        Whether to restore the integrator of the run, which is needed for diagnoses, predictions and most figures, and
        takes a moment. It is None all the same if the journal does not hold enough: if the measure or the model
        contains a distribution, samples or a kernel that cannot be rebuilt, or if observations were added outside of
        the journal. It is always restored if evaluations were revised, or were told while nothing was running, because
        the integral is to be learned again.

    >>> read_result("nowhere.jsonl")
    Traceback (most recent call last):
    amsbq.execution.journal.JournalError: the journal nowhere.jsonl cannot be read: No such file or directory
    """
    state = read_state(path)
    try:
        it = restored_integrator(state) if model or state.revised or state.unknown else None
    except NONSENSE as error:
        raise nonsense_error(path, error) from error
    return result_of(state, it)


def result_of(state: RunState, it: Integrator | None = None) -> Result:
    """Return the result of a run in some state, with the integrator that was restored to it if there is one."""
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
    )


def restored_integrator(state: RunState) -> Integrator | None:
    """Return an integrator in the state of a run, or None if the journal does not hold enough to make it.

    Its sources have no functions, and costs that were functions of the input are learned from what was paid.
    """
    problem = state.header["problem"]
    described, measure = problem["model"], problem["measure"]
    if described is None or measure is None or problem["observed"]:
        return None
    try:
        measure = measure_from_dict(measure)
        model: Any = described if isinstance(described, str) else gp_from_dict(described)
    except ValueError:
        return None
    with collected_warnings():  # they were issued when the run began
        it = Integrator(
            [_source(source) for source in state.sources],
            measure,
            budget=None if math.isinf(state.budget) else state.budget,
            model=model,
            acquisition=problem["acquisition"],
            seed=problem["seed"],
            initial=problem["initial"],
            order=problem.get("order"),
            target=target_from_dict(problem.get("target", "mean")),
            outputs=state.outputs,
            weights=problem.get("weights"),
            output_range=problem.get("output_range"),
            log=problem.get("log", False),
        )
        state.restore(it)
    return it


def _source(described: dict[str, Any]) -> Source:
    name, cost, noise, valid = (described[key] for key in ("name", "cost", "noise", "valid"))
    paid: Any = "measured" if isinstance(cost, str) else cost
    return Source(cost=paid, noise=noise, valid=valid, name=name, outputs=described.get("outputs"))


def _estimate(state: RunState, it: Integrator | None) -> AnyEstimate:
    evaluations = [*state.observed, *state.evaluations]
    if not any(e.source == 0 and e.status == "ok" for e in evaluations) and not state.header["problem"]["observed"]:
        return unknown_estimate(state.outputs)
    if state.estimate is not None:
        return state.estimate
    if it is not None and it.learner.belief is not None and len(it.learner):
        return it.learner.belief.estimate
    known = [e for e in state.evaluations if np.isfinite(e.std).any()]
    if not known:
        return unknown_estimate(state.outputs)
    if state.outputs is None:
        return Estimate([known[-1].mean], [known[-1].std])
    pairs = zip(known[-1].mean, known[-1].std, strict=True)
    return Estimates(
        [Estimate.unknown() if np.isnan(std) else Estimate([mean], [std]) for mean, std in pairs], state.outputs
    )
