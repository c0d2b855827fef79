"""Journals of format 1, translated into format 2.

Format 1 stored measures and Gaussian processes as the text of their ``repr``, infinity and NaN as null, values outside
the valid range unchanged, costs as null if they were the expected ones, and draws of the tempered posterior under
another name. All code for format 1 is here.
"""

from __future__ import annotations

import ast
import math
import zlib
from collections.abc import Sequence
from typing import Any

import scipy

from ..common.serialisation import plain
from ..design.failures import rejection
from ..gp.coregionalisation import Term
from ..gp.kernels import RBF, Matern
from ..gp.posterior import MultiSourceGP, gp_to_dict
from ..gp.trends import Constant
from ..inference.structures import MODELS
from ..measures.base import Measure
from ..measures.distributions import Distribution, describe, histogram_edges
from ..measures.empirical import Empirical
from ..measures.gaussian import Gaussian
from ..measures.product import Product
from ..measures.uniform import Uniform
from .integrator import Integrator
from .journal import Event

#: names that may be called in the text of a measure or a Gaussian process, besides distributions of scipy.stats
CLASSES: dict[str, Any] = {
    kind.__name__: kind for kind in (Uniform, Gaussian, Product, MultiSourceGP, Term, RBF, Matern, Constant)
}


def translated(header: Event, events: Sequence[Event]) -> tuple[Event, list[Event]]:
    """Return the header and the events of a format-1 journal in the form of format 2.

    A measure or a model that cannot be rebuilt from its text is None in the translated header. Events that were
    appended by a later version already have format 2, and are unchanged.
    """
    problem = header["problem"]
    measure, model = _rebuilt_measure(header), problem["model"]
    gp = None if model in MODELS else _rebuilt(model, MultiSourceGP)
    sources = [{**source, "valid": _ends(source["valid"])} for source in problem["sources"]]
    problem = {
        **problem,
        "sources": sources,
        "measure": None if measure is None else measure.to_dict(),
        "model": model if model in MODELS else None if gp is None else gp_to_dict(gp),
        "observed": _observed(events),
    }
    rest = {key: value for key, value in header.items() if key not in ("samples", "weights")}
    asked = {event["id"]: event for event in events if event["event"] == "asked"}
    return (
        {**rest, "problem": problem, "budget": _number(header["budget"], math.inf)},
        [_translated_event(event, asked, sources) for event in events],
    )


def described(problem: Event, it: Integrator) -> Event:
    """Return the description of a run in format 2 as format 1 would have stored it, for comparison with an old one."""
    stored = {key: plain(value) for key, value in problem.items() if key not in ("observed", "functions")}
    return {**stored, "measure": _measure_text(it.measure), "model": it.problem.model.name}


def _observed(events: Sequence[Event]) -> int:
    """Return the largest number of observations in any refit that are not in the journal."""
    told = observed = 0
    for event in events:
        told += event["event"] == "told"
        observed = max(observed, event["n"] - told) if event["event"] == "fitted" else observed
    return observed


def _translated_event(event: Event, asked: dict[int, Event], sources: Sequence[Event]) -> Event:
    kind = event["event"]
    if kind == "asked":
        return {**event, "rate": _number(event["rate"], math.nan)}
    if kind == "known":
        return {**event, "mean": _number(event["mean"], math.nan), "std": _number(event["std"], math.nan)}
    if kind == "fitted" and "doubtful" in event["hyperparameters"]:
        draws = event["hyperparameters"]
        return {**event, "hyperparameters": {"draws": draws["draws"], "tempered": draws["doubtful"]}}
    if kind == "resumed":
        return {**event, "budget": _number(event["budget"], math.inf)}
    if kind == "stopped":
        estimate = event.get("estimate")
        if estimate is not None:
            event = {**event, "estimate": {**estimate, "dof": _number(estimate["dof"], math.inf)}}
        return {**event, "budget": _number(event.get("budget"), math.inf)}
    if kind not in ("told", "failed") or event["id"] not in asked:
        return event
    query = asked[event["id"]]
    event = {**event, "cost": _number(event["cost"], query["cost"])}
    reason = rejection(event["value"], sources[query["source"]]["valid"]) if kind == "told" else ""
    if reason:
        return {"event": "failed", "id": event["id"], "reason": reason, "cost": event["cost"]}
    return event


def _number(value: float | None, null: float) -> float:
    return null if value is None else value


def _ends(valid: list[float | None] | None) -> tuple[float, float] | None:
    return None if valid is None else (_number(valid[0], -math.inf), _number(valid[1], math.inf))


def _measure_text(measure: Measure) -> str:
    if isinstance(measure, Empirical):
        digest = zlib.crc32(measure.samples.tobytes() + measure.weights.tobytes())
        return f"{measure!r}, checksum {digest:08x}"
    if isinstance(measure, Product):
        return f"Product([{', '.join(_distribution_text(distribution) for distribution in measure.distributions)}])"
    return repr(measure)


def _distribution_text(distribution: Distribution) -> str:
    edges = histogram_edges(distribution)
    return describe(distribution) if edges is None else f"rv_histogram(<{len(edges) - 1} bins>)"


def _rebuilt_measure(header: Event) -> Measure | None:
    if "samples" in header:
        return Empirical(header["samples"], header["weights"])
    measure: Measure | None = _rebuilt(header["problem"]["measure"], Measure)
    return measure


def _rebuilt(text: str, kind: type) -> Any:
    """Return the object of that kind with this ``repr``; None if it cannot be rebuilt."""
    try:
        made = _evaluated(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, TypeError, AttributeError, KeyError):
        return None
    return made if isinstance(made, kind) and repr(made) == text else None


def _evaluated(node: Any) -> Any:
    """Evaluate a syntax tree that has only numbers and calls of `CLASSES` and of scipy.stats distributions."""
    if isinstance(node, ast.List):
        return [_evaluated(entry) for entry in node.elts]
    if isinstance(node, ast.Name) and node.id == "inf":
        return math.inf
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluated(node.operand)
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    if not isinstance(node.func, ast.Name):
        raise ValueError("only names can be called")
    made = CLASSES.get(node.func.id) or getattr(scipy.stats, node.func.id)
    if node.func.id not in CLASSES and not isinstance(made, scipy.stats.rv_continuous):
        raise ValueError(f"{node.func.id} is not a distribution")
    arguments = [_evaluated(argument) for argument in node.args]
    return made(*arguments, **{keyword.arg: _evaluated(keyword.value) for keyword in node.keywords if keyword.arg})
