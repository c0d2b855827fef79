"""Summaries of runs for `amsbq status`, `report --text`, `compare` and `run --json`; print(result) is in `result`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..common.serialisation import plain
from ..common.validation import as_known, numbers_text, plus_minus
from ..design.labels import COST, OUTPUT, Labels, with_unit
from .analysis import quickly_known
from .result import REASONS, Result, is_of_limit, known_targets, totals


def as_json(result: Result) -> dict[str, Any]:
    """Return answer, evaluations, findings and output distribution in JSON-serialisable form, with None for NaN."""
    columns = ("value", "variance", "cost", "status", "reason", "mean", "std", "note")
    answer: dict[str, Any] = plain(
        {
            **result.labels.to_dict(),
            **_outputs(result),
            **_targets(result),
            "mean": result.mean,
            "std": result.std,
            "interval": result.interval(0.95),
            "spent": result.spent,
            "stopped": result.stopped,
            "evaluations": [
                {
                    "id": e.id,
                    "source": result.names[e.source],
                    "x": dict(zip(result.inputs, e.x, strict=True)),
                    **{key: getattr(e, key) for key in columns},
                }
                for e in result.evaluations
            ],
            "findings": [vars(finding) for finding in result.diagnose()],
            **_output(result),
            **({} if result.certificate is None else {"certificate": result.certificate.to_dict()}),
        }
    )
    return answer


def _output(result: Result) -> dict[str, Any]:
    """Return standard deviation, quantiles and sensitivities of the output; empty if computing them would take long."""
    it = result.integrator
    if it is None or not quickly_known(it):
        return {}
    output = result.distribution()
    found = {"std": output.std(), **{f"quantile {p}": output.quantile(p) for p in (0.05, 0.5, 0.95)}}
    known = {name: {"mean": e.mean, "std": e.std, "interval": e.interval()} for name, e in found.items()}
    rows = result.sensitivity().rows() if it.measure.marginals is not None else None
    return {"output": known, "sensitivity": rows}


def _outputs(result: Result) -> dict[str, Any]:
    """Return the names of several outputs, in the order of the numbers in lists; empty for one output."""
    return {} if result.outputs is None else {"outputs": list(result.outputs)}


def _targets(result: Result) -> dict[str, Any]:
    """Return the estimates of targets other than the mean, by name, as the entry "target"; empty if there are none."""
    known: dict[str, Any] = {}
    for name, e, unit in known_targets(result):
        known[name] = {"mean": e.mean, "std": e.std, "interval": e.interval(), **({"unit": unit} if unit else {})}
    return {"target": known} if known else {}


def state(result: Result) -> dict[str, Any]:
    """Return the estimate, cost, stop reason and counts of evaluations of a run in JSON form, None if unknown."""
    now: dict[str, Any] = plain(
        {
            **result.labels.to_dict(),
            **_outputs(result),
            **_targets(result),
            "mean": result.mean,
            "std": result.std,
            "spent": result.spent,
            "budget": result.budget,
            "stopped": result.stopped or None,
            "pending": result.pending,
            "sources": {
                name: dict(zip(("told", "failed"), totals(result, source), strict=False))
                for source, name in enumerate(result.names)
            },
            "excluded": {str(e.id): f"{result.names[e.source]}, {e.note}" for e in result.evaluations if e.excluded},
        }
    )
    if is_of_limit(result):
        now["limit"] = True
    if result.certificate is not None:
        now["certificate"] = plain({"mean": result.certificate.mean, "std": result.certificate.std})
    return now


def _certificate_lines(now: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line of the certificate for each output; nothing if it is not complete."""
    found, labels = now.get("certificate", {"mean": [], "std": []}), Labels.from_dict(now)
    listed = now.get("outputs", [""])
    names = [f"certificate of {labels.label(name)}" if name else "certificate" for name in listed]
    means, stds = (each if isinstance(each, list) else [each] for each in (found["mean"], found["std"]))
    units = ["" if "target" in now else labels.unit(name) for name in listed]  # a target may have another unit
    for name, mean, std, unit in zip(names, means, stds, units, strict=False):
        if mean is not None and std is not None:
            yield f"{name}: {_mean_and_std(mean, std, unit)}"


def state_text(now: dict[str, Any]) -> str:
    """Return the output of `state` as a few lines of text."""
    none = f"{next(iter(now['sources']))} has no value yet"
    labels = Labels.from_dict(now)
    if "outputs" not in now:
        integral = labels.expected(limit=bool(now.get("limit")))
        known = none if now["mean"] is None else f"{integral}: {_mean_and_std(now['mean'], now['std'], labels.unit())}"
    else:
        rows = zip(now["outputs"], now["mean"], now["std"], strict=True)
        width = max(len(labels.label(name)) for name in now["outputs"]) + 1
        known = "\n".join(
            f"{labels.label(name) + ':':{width}} "
            + (none if mean is None else _mean_and_std(mean, std, labels.unit(name)))
            for name, mean, std in rows
        )
    targets = [
        f"{name}: {_mean_and_std(e['mean'], e['std'], e.get('unit', ''))}" for name, e in now.get("target", {}).items()
    ]
    titled = [labels.title] if labels.title else []
    known = "\n".join([*titled, *targets, known, *_certificate_lines(now)])
    state = f"{now['pending']} pending" if now["stopped"] is None else REASONS.get(now["stopped"], now["stopped"])
    made = [f"  {name}: {n['told']} made, {n['failed']} failed" for name, n in now["sources"].items()]
    excluded = [f"  evaluation {number}: {note}" for number, note in now["excluded"].items()]
    return "\n".join([known, f"spent {labels.of_budget(now['spent'], now['budget'])}; {state}", *made, *excluded])


def _mean_and_std(mean: float, std: float | None, unit: str) -> str:
    return plus_minus(mean, math.nan, unit) if std is None else f"{plus_minus(mean, std, unit)} (std)"


def table(result: Result) -> Iterator[str]:
    """Yield the lines of a table of all evaluations, with the integral after each."""
    yield state_text(state(result))
    width = max(len(name) for name in result.names)
    labels = result.labels
    headings = [with_unit(name, labels.unit(name)) for name in result.inputs]
    widths = [max(10, len(heading)) for heading in headings]
    inputs = "  ".join(f"{heading:>10}" for heading in headings)
    cost, output = with_unit("cost", labels.unit(COST)), result.output or OUTPUT
    value, integral = (with_unit(text, labels.unit(output)) for text in ("value", "integral ± std"))
    unused = ["excluded" if e.excluded else "failed" for e in result.evaluations]
    values = [
        numbers_text(e.value) if e.status == "ok" else no for e, no in zip(result.evaluations, unused, strict=True)
    ]
    wide, money = max([12, len(value), *(len(text) for text in values)]), max(10, len(cost))
    yield f"\n{'id':>5}  {'source':{width}}  {inputs}  {value:>{wide}}  {cost:>{money}}  {integral}"
    answered = False  # without a value of the primary source there is no estimate worth printing
    for e, found in zip(result.evaluations, values, strict=True):
        answered = answered or (e.source == 0 and e.status == "ok")
        unknown = not answered or bool(np.isnan(e.std).all())
        after = "" if unknown else numbers_text(e.mean, std=e.std)
        x = "  ".join(f"{xi:{w}.5g}" for xi, w in zip(e.x, widths, strict=True))
        reason = f"  {e.reason or e.note}" if e.reason or e.note else ""
        number, name = "-" if e.id is None else e.id, result.names[e.source]
        yield f"{number:>5}  {name:{width}}  {x}  {found:>{wide}}  {e.cost:{money}.4g}  {after}{reason}"


def of_each_output(runs: Mapping[str, Result]) -> Iterator[tuple[str, Result]]:
    """Yield each run with its name; a run with several outputs is split into one run per output."""
    for name, result in runs.items():
        several = [(f"{name}: {output}", result[output]) for output in result.outputs or ()]
        yield from several or [(name, result)]


def comparison(runs: Mapping[str, Result]) -> Iterator[str]:
    """Yield the lines of a table of several runs by name: estimate, interval, cost and evaluations of each."""
    rows = [("run", "integral ± std", "95 % interval", "spent", "evaluations", "stopped")]
    for name, result in runs.items():
        now = state(result)
        counts = ", ".join(f"{n['told']} {source}" for source, n in now["sources"].items())
        failed = sum(n["failed"] for n in now["sources"].values())
        known = now["mean"] is not None and now["std"] is not None
        low, high = result.interval(0.95) if known else (math.nan, math.nan)
        rows.append(
            (
                name,
                plus_minus(now["mean"], now["std"], result.labels.unit(result.output)) if known else "unknown",
                f"{as_known(low, now['std'])} to {as_known(high, now['std'])}" if known else "",
                result.labels.of_budget(now["spent"], now["budget"]),
                counts + (f", {failed} failed" if failed else ""),
                now["stopped"] or "not yet",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
