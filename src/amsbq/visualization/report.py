"""The report: one HTML file with the answer, diagnostics, interactive figures and every evaluation of a run.

The page loads nothing from elsewhere. Everything that comes from a run is text on the page, never markup: the template
(page/page.html) escapes all values but the style, the script and the plotting library, which are part of this package
and of Plotly.
"""

from __future__ import annotations

import math
import os
import platform
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ..common.messages import collected_warnings
from ..common.serialisation import plain
from ..common.validation import brief
from ..design.decisions import Decisions
from ..design.labels import OUTPUT
from ..measures.adapters import NamedMeasureLike, measure_from_dict
from ..posterior.basis import SETTINGS as REDUCTION
from ..posterior.estimates import AnyEstimate
from ..results.analysis import quickly_known
from ..results.findings import Finding
from ..results.result import REASONS, Result, distances, is_known, is_of_limit, known_targets
from .curves import SETTINGS, SHOWN_QUANTILES, Run, correlation, indices, several_outputs, whole_result
from .plotly_figures import charts, output_charts, profile_charts

TEXT_COLUMNS = ("source", "status", "reason")  #: text columns of the table of evaluations; all others are numbers


def report(
    run: Run,
    path: str | os.PathLike[str],
    refresh: float | None = None,
    under: Mapping[str, NamedMeasureLike] | None = None,
    full: bool = False,
) -> Path:
    """Write the HTML page of a run and return its path.

    Parameters
    ----------
    run : Result, Integrator, or the path of a journal
        The run; it may be in progress. With several outputs the page shows all of them, and details of one at a time.
    path : path
        The HTML file. An existing file is replaced atomically, so that a reader never sees half a page.
    refresh : float, optional
        Seconds after which an open page reloads itself, as long as the run continues.
    under : dictionary of measures by name, optional
        Other distributions of the inputs, under which the page also shows the mean of the output.
    full : bool
        Whether figures can be zoomed and saved: they are then drawn by Plotly, and the file has 5 MB.
    """
    result = whole_result(run)
    path = Path(path)
    if not path.name or path.is_dir():
        raise ValueError(f"the page needs the name of a file, got {path}")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write the page to")
    if under is not None and not isinstance(under, Mapping):
        raise TypeError(f"under must be a dictionary of distributions by name, got {brief(under)}")
    text = page(result, path.stem, refresh=None if result.stopped else refresh, under=under, full=full)
    beside = path.with_name(f".amsbq-{secrets.token_hex(16)}")  # unpredictable: nobody can have put a link there
    try:
        with beside.open("x", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def page(
    result: Result,
    name: str,
    refresh: float | None = None,
    live: dict[str, Any] | None = None,
    under: Mapping[str, NamedMeasureLike] | None = None,
    full: bool = False,
) -> str:
    """Return the HTML text of the page.

    Parameters
    ----------
    result : Result
        The run.
    name : str
        Name of the CSV file that the page offers for download.
    refresh : float, optional
        Seconds after which the page reloads itself.
    live : dict, optional
        Initial content, instead of that of the result; the page then asks its server for updates.
    under : dictionary of Measure, optional
        Other distributions of the inputs.
    full : bool
        Whether Plotly draws the figures.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ImportError("a report needs jinja2: pip install 'amsbq[report]'") from None
    environment = Environment(
        loader=PackageLoader(__package__, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    # the filter `tojson` also escapes "<", ">" and "&", so that no text can end the script element that holds it
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":"), "ensure_ascii": False}
    parts, shown = files(__package__) / "page", live or content(result, whole=True, under=under)
    return environment.get_template("page.html").render(
        **{**shown, **shown["parts"][shown["chosen"]]},
        wanted=_wanted(result),
        called={name: result.labels.label(name) for name in shown["parts"]},
        primary=result.names[0] + (" in the limit" if is_of_limit(result) else ""),
        settings=list(_settings(result)),
        data={**shown, "name": name, "refresh": refresh, "live": live is not None, "full": full},
        full=full,
        style=(parts / "page.css").read_text("utf-8"),
        script="".join((parts / name).read_text("utf-8") for name in ("figures.js", "page.js")),
        library=_plotly() if full else "",
    )


def _plotly() -> str:
    """Return the source of Plotly's JavaScript library, for full pages."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("a full report needs plotly: pip install 'amsbq[report]'") from None
    return str(get_plotlyjs())


def content(result: Result, whole: bool = False, under: Mapping[str, NamedMeasureLike] | None = None) -> dict[str, Any]:
    """Return the content of the page that changes during a run, in JSON-serialisable form.

    The distribution of the output, which takes seconds, is included only if ``whole``.
    """
    limited, rows = math.isfinite(result.budget), result.rows()
    columns = ["evaluation", *(rows[0] if rows else {})]
    shown, furthest = shown_outputs(result), furthest_outputs(result)
    return {
        "title": _title(result),
        "stopped": REASONS.get(result.stopped, result.stopped),
        "answer": None if result.outputs else asdict(Answer.of(result)),
        "answers": output_table(result) if result.outputs else [],
        "spent": f"Spent {result.labels.of_budget(result.spent, result.budget)}",
        "share": min(result.spent / result.budget, 1.0) if limited else 1.0,
        "profile": list(profile_charts(result)),
        "parts": {name: details(one, whole and name in furthest, under) for name, one in shown.items()},
        "chosen": furthest[0],
        "columns": columns,
        "words": [columns.index(column) for column in TEXT_COLUMNS if column in columns],
        "rows": [[number, *(plain(row[key]) for key in columns[1:])] for number, row in enumerate(rows, 1)],
    }


def shown_outputs(result: Result) -> dict[str, Result]:
    """Return the results whose details are shown, by output; among many outputs, those farthest from their goals.

    For a result with one output it is that result.
    """
    if result.outputs is None:
        return {result.output: result}
    few, furthest = len(result.outputs) <= REDUCTION.outputs, furthest_outputs(result)  # beyond, one model per output
    return {name: result[name] for name in result.outputs if few or name in furthest}


def furthest_outputs(result: Result) -> list[str]:
    """Return the names of the outputs that are farthest from their goals, the farthest first."""
    if result.outputs is None:
        return [result.output]
    order = np.argsort(-distances(result), kind="stable")[: SETTINGS.furthest]
    return [result.outputs[m] for m in order]


def details(result: Result, whole: bool = False, under: Mapping[str, NamedMeasureLike] | None = None) -> dict[str, Any]:
    """Return the details of one output: findings, estimates besides the mean, and figures.

    The distribution of the output, which takes seconds, is included only if ``whole``.
    """
    return {
        "findings": [asdict(finding) for finding in _findings(result)],
        "output": [
            *((name, found.summary(unit)) for name, found, unit in known_targets(result)),
            *relation_rows(result),
            *(output_rows(result) if whole and quickly_known(result.integrator) else []),
            *what_if_rows(result, under or {}),
        ],
        "figures": [*charts(result), *(output_charts(result) if whole else ())],
    }


def output_table(result: Result) -> list[dict[str, Any]]:
    """Return name, mean, interval and accuracy of each output as text, and the accuracy relative to the worst one."""
    seen = several_outputs(result)
    worst, rows = max(seen.accuracy.max(initial=0.0, where=np.isfinite(seen.accuracy)), np.finfo(float).tiny), []
    for name, called, text, part, accuracy, by_spread in zip(
        seen.names, seen.called, seen.texts, result.estimate, seen.accuracy.tolist(), seen.by_spread, strict=True
    ):
        known = np.isfinite(accuracy)
        of = " of the spread" if by_spread else ""
        rows.append(
            {
                "name": name,
                "label": called,
                "mean": text,
                "interval": part.summary().partition("95 % between ")[2],
                "accuracy": f"± {100 * accuracy:.2g} %{of}" if known else "",
                "share": accuracy / worst if known else 0.0,
            }
        )
    return rows


def output_rows(result: Result) -> list[tuple[str, str]]:
    """Return standard deviation, quantiles and sensitivities of the output, as pairs (name, text)."""
    output = result.distribution()
    rows = [("standard deviation", output.std().summary())]
    rows += [(f"{100 * p:.0f} % quantile", output.quantile(p).summary()) for p in SHOWN_QUANTILES]
    if (found := indices(result)) is not None:
        rows.append(("inputs", " ".join(found.sentences())))
    return rows


def relation_rows(result: Result) -> list[tuple[str, str]]:
    """Return the correlation of two sources, as text; empty unless there are two (more of them have a figure)."""
    it = result.integrator
    if len(result.names) != 2 or it is None or it.learner.posterior is None:
        return []
    found = correlation(result)
    if len(found.mean) < 2:  # one of the two is left out of the model
        return []
    return [(f"correlation of {result.names[1]} with {result.names[0]}", found.text(0, 1))]


def what_if_rows(result: Result, under: Mapping[str, NamedMeasureLike]) -> list[tuple[str, str]]:
    """Return the mean of the output under other distributions of the inputs, as text, by name."""
    rows = []
    for name, measure in under.items():
        with collected_warnings() as warned:
            said = _in_units(result, result.under(measure))
        rows.append((f"mean under {name}", "; ".join([said, *warned])))
    return rows


@dataclass(frozen=True)
class Answer:
    """The estimate as the page shows it: mean and standard deviation, empty if unknown, and a sentence about it."""

    mean: str
    std: str
    unit: str
    interval: str

    @classmethod
    def of(cls, result: Result) -> Answer:
        """Return the answer of a run; without an estimate or an error bar, it states what is missing."""
        estimate = result.estimate
        if math.isnan(estimate.mean):
            failed = [e for e in result.evaluations if e.source == 0 and e.status == "failed"]
            last = f": evaluation {failed[-1].id} failed, {failed[-1].reason}" if failed else ""
            return cls(
                "No answer" if result.stopped else "No answer yet", "", "", f"{result.names[0]} has no value{last}."
            )
        unit = result.labels.unit(result.output)
        if math.isnan(estimate.std):
            return cls(f"{estimate.mean:.6g}", "?", unit, "This method has no error bar.")
        mean, _, rest = estimate.summary("").partition(" ± ")
        std, _, interval = rest.partition(", ")
        return cls(
            mean,
            std.split()[0],
            unit,
            f"{result.labels.measured(interval, result.output)}; ± is the standard deviation.",
        )


def _wanted(result: Result) -> str:
    """Return the heading of the answer: the title of the run, and the label of the expected output."""
    labels, output = result.labels, result.output
    label = labels.label(output or OUTPUT)
    expected = "Expected output" if label == output else f"Expected {label}"
    return f"{labels.title}: {expected[0].lower()}{expected[1:]}" if labels.title else expected


def _title(result: Result) -> str:
    labels = result.labels
    if result.outputs is not None:
        return f"{labels.title or result.names[0]}: {len(result.outputs)} outputs"
    name = labels.title or (labels.label(result.output) if result.output else result.names[0])
    known = result.estimate.summary(labels.unit(result.output)) if is_known(result) else "no answer"
    return f"{name}: {known}"


def _in_units(result: Result, estimate: AnyEstimate) -> str:
    """Return an estimate of the output, or of all outputs, as text."""
    units = [result.labels.unit(name) for name in result.outputs or [result.output]]
    said: str = estimate.summary(units[0]) if result.outputs is None else estimate.summary(None, units)
    return said


def _findings(result: Result) -> list[Finding]:
    if result.integrator is not None:
        return result.diagnose()
    why = "its method has none" if result.header is None else "the journal does not hold enough to rebuild it"
    text = f"there is no model of this run, because {why}: the figures show only the evaluations."
    return [Finding("note", "no model", text)]


def _described_measure(it: Decisions | None, problem: Mapping[str, Any]) -> str:
    """Return the distribution of the inputs as a user would write it, or its class if the journal does not hold it."""
    if it is not None:
        return repr(it.measure)
    measure = problem.get("measure")
    if not measure:
        return "unknown"
    try:
        return repr(measure_from_dict(measure))
    except ValueError:
        return f"{measure['class']}, which the journal does not hold"


def _short(value: object) -> str:
    """Return a setting as text, with six digits if it is a number."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _settings(result: Result) -> Iterator[tuple[str, str]]:
    """Yield names and values of the settings of the run, and of the versions that made the page."""
    it, header = result.integrator, result.header
    problem = (header or {}).get("problem", {})
    yield "distribution of the inputs", _described_measure(it, problem)
    yield "names of the inputs", ", ".join(result.inputs)
    if result.outputs is not None:
        yield "outputs", ", ".join(result.outputs)
    for source, name in enumerate(result.names):
        if problem:
            described = problem["sources"][source]
            cost, noise, fidelity = (described.get(key) for key in ("cost", "noise", "fidelity"))
        elif it is not None:
            source_of = it.sources[source]
            cost, noise, fidelity = source_of.cost, source_of.noise, source_of.fidelity
        else:
            continue
        refined = "".join(f", fidelity {size:.6g} of {knob} (0: the limit)" for knob, size in (fidelity or {}).items())
        yield f"source {source}", f"{name}; cost {_short(cost)}, noise variance {_short(noise)}{refined}"
    if it is not None:
        yield "model", it.problem.model.name
        yield "acquisition", it.problem.acquisition
        if it.problem.limit:
            yield "answer", "that of the limit, as fidelities tend to zero"
        for output, target, known in zip(it.outputs or ("",), it.problem.targets, it.problem.ranges, strict=True):
            of = f" of {output}" if output else ""
            yield f"target{of}", str(target)
            if known is not None:
                yield f"values{of}", known.description
        yield "seed", str(it.problem.seed)
    if header is not None and "file" in header:
        yield "problem file", str(header["file"])
    if header is not None:
        yield "run with", f"amsbq {header.get('version', 'of an unknown version')}"
    versions = ", ".join(f"{package} {version(package)}" for package in ("amsbq", "numpy", "scipy"))
    yield "page made with", f"{versions}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield "page made at", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
