"""A run as its journal tells it, without the functions that it called: to look at, whether it is over or goes on."""

from __future__ import annotations

import ast
import math
import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from ..design.accounting import Evaluation, outside
from ..design.integrator import Integrator
from ..design.sources import Source
from ..inference.estimate import Estimate
from ..inference.structures import MODELS
from ..measures.base import Measure
from ..measures.empirical import Empirical
from ..measures.gaussian import Gaussian
from ..measures.product import Product
from ..measures.uniform import Uniform
from ..results.result import Result, input_names
from ..validation import read_only
from .journal import read_journal
from .resume import replay

MEASURES = {"Uniform": Uniform, "Gaussian": Gaussian, "Product": Product}


Event = dict[str, Any]


def read_result(path: str | os.PathLike[str], model: bool = True) -> Result:
    """What is known of a run by its journal; nothing is locked or evaluated.

    The integrator of the result is there if the journal tells enough to make it again: not so if its model is a
    `MultiSourceGP` of yours, or its measure a distribution that scipy.stats does not have. Without ``model`` it is not
    made, which is faster.

    >>> read_result("nowhere.jsonl")
    Traceback (most recent call last):
    amsbq.execution.journal.JournalError: the journal nowhere.jsonl cannot be read: No such file or directory
    """
    header, told = read_journal(path)
    events = _priced(told)
    last = events[-1] if events and events[-1]["event"] == "stopped" else {}
    budget = _budget(header, events)
    evaluations = _evaluations(header, events)
    it = _integrator(header, events, budget) if model else None
    dim = len(evaluations[0].x) if evaluations else it.measure.dim if it is not None else 0
    return Result(
        _estimate(last, it, evaluations),
        evaluations,
        math.fsum(e.cost for e in evaluations),
        last.get("reason", ""),
        [source["name"] for source in header["problem"]["sources"]],
        math.inf if budget is None else budget,
        header.get("inputs") or input_names(dim),
        it,
        sum(event["event"] == "asked" for event in events) - len(evaluations),
        header,
    )


def _priced(events: Sequence[Event]) -> list[Event]:
    """With what was asked for as the cost of those that do not tell theirs."""
    asked = {event["id"]: event["cost"] for event in events if event["event"] == "asked"}
    return [
        {**event, "cost": asked[event["id"]]}
        if event["event"] in ("told", "failed") and event["cost"] is None
        else event
        for event in events
    ]


def _budget(header: Event, events: Sequence[Event]) -> float | None:
    """The latest that was given; None is infinite."""
    given = [header, *(event for event in events if event["event"] in ("resumed", "stopped"))]
    budget: float | None = given[-1].get("budget")
    return budget


def _evaluations(header: Event, events: Sequence[Event]) -> list[Evaluation]:
    valid = [source["valid"] or (-math.inf, math.inf) for source in header["problem"]["sources"]]
    asked = {event["id"]: event for event in events if event["event"] == "asked"}
    known = {event["id"]: event for event in events if event["event"] == "known"}
    out = []
    for event in (e for e in events if e["event"] in ("told", "failed")):
        query, after = asked[event["id"]], known.get(event["id"], {})
        low, high = valid[query["source"]]
        told = event["event"] == "told"
        fine = told and low <= event["value"] <= high
        reason = outside(event["value"], (low, high)) if told else event["reason"]
        out.append(
            Evaluation(
                event["id"],
                query["source"],
                read_only(np.array(query["x"], dtype=float)),
                event["value"] if fine else math.nan,
                event["variance"] if fine else 0.0,
                event["cost"],
                "ok" if fine else "failed",
                "" if fine else reason,
                math.nan if after.get("mean") is None else after["mean"],
                math.nan if after.get("std") is None else after["std"],
            )
        )
    return out


def _estimate(last: Event, it: Integrator | None, evaluations: Sequence[Evaluation]) -> Estimate:
    if "estimate" in last:
        return Estimate.recalled(last["estimate"])
    if it is not None and it.learner.belief is not None and not it.starting:
        return it.learner.belief.estimate
    known = [e for e in evaluations if not math.isnan(e.std)]
    return Estimate([known[-1].mean], [known[-1].std]) if known else Estimate.unknown()


def _integrator(header: Event, events: Sequence[Event], budget: float | None) -> Integrator | None:
    problem, measure = header["problem"], _measure(header)
    if measure is None or problem["model"] not in MODELS or _knew_more(events):
        return None
    sources = [_source(**source) for source in problem["sources"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were there the first time
        it = Integrator(
            sources,
            measure,
            budget=budget,
            model=problem["model"],
            acquisition=problem["acquisition"],
            seed=problem["seed"],
            initial=problem["initial"],
        )
    replay(it, events)
    return it


def _knew_more(events: Sequence[Event]) -> bool:
    """Whether something was learned from observations that the journal does not tell of."""
    told = 0
    for event in events:
        told += event["event"] == "told"
        if event["event"] == "fitted" and event["n"] > told:
            return True
    return False


def _source(name: str, cost: Any, noise: Any, valid: Any) -> Source:
    """One that cannot be called; what a function said of its cost is learned from what was paid."""
    unknown = isinstance(cost, str)
    return Source(
        cost="measured" if unknown else cost, noise=noise, valid=None if valid is None else tuple(valid), name=name
    )


def _measure(header: Event) -> Measure | None:
    """That of the header, if the same can be made from its name."""
    text: str = header["problem"]["measure"]
    if "samples" in header:
        return Empirical(header["samples"], header["weights"])
    try:
        measure: Measure = _made(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, AttributeError, KeyError):
        return None
    return measure if repr(measure) == text else None


def _made(node: Any) -> Any:
    """Of a tree of calls of measures and of scipy.stats distributions, with plain numbers."""
    if isinstance(node, ast.List):
        return [_made(entry) for entry in node.elts]
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_made(node.operand)
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    if not isinstance(node.func, ast.Name):
        raise ValueError("not the name of a measure")
    name = node.func.id
    distribution = getattr(stats, name) if name not in MEASURES else None
    if distribution is not None and not isinstance(distribution, stats.rv_continuous):
        raise ValueError("not a distribution")
    arguments, named = [_made(a) for a in node.args], {k.arg: _made(k.value) for k in node.keywords if k.arg}
    made: Any = MEASURES.get(name, distribution)
    return made(*arguments, **named)
