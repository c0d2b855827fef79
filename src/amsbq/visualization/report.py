"""One HTML file that shows a run: the answer, whether to believe it, pictures to look into, every evaluation.

Nothing is fetched when it is opened. Everything that comes from a run is text on the page, never markup.
"""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template

from ..results.result import REASONS, Result
from ..serialisation import plain
from . import curves
from .curves import Run
from .plotly_figures import Chart, charts

WORDS = ("source", "status", "reason")  #: columns of the table that are no numbers


def report(run: Run, path: str | os.PathLike[str], refresh: float | None = None) -> Path:
    """Write the page of a run, and return where it is.

    Parameters
    ----------
    run : Result, Integrator, or the path of a journal
    path : path
        Of the HTML file; one that is there is replaced at once, so that nobody sees half of it.
    refresh : float, optional
        Seconds after which an open page loads itself again, as long as the run goes on.
    """
    result = curves.as_result(run)
    path = Path(path)
    if not path.name or path.is_dir():
        raise ValueError(f"the page needs the name of a file, got {path}")
    text = page(result, path.stem, None if result.stopped else refresh)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def page(result: Result, name: str, refresh: float | None = None) -> str:
    """The text of the page."""
    try:
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise ImportError("a report needs plotly: pip install 'amsbq[report]'") from None
    figures = list(charts(result))
    rows = result.rows()
    columns = ["evaluation", *(key for key in (rows[0] if rows else {}) if key != "id")]
    data = {
        "name": name,
        "refresh": refresh,
        "figures": [{"id": figure["id"], "panels": figure["panels"]} for figure in figures],
        "columns": columns,
        "words": [columns.index(word) for word in WORDS if word in columns],
        "rows": [[number, *(plain(row[key]) for key in columns[1:])] for number, row in enumerate(rows, 1)],
    }
    parts = files("amsbq.visualization") / "page"
    mean, std, interval = _answer(result)
    spent = f"Spent {result.spent:.6g}" + (f" of {result.budget:.6g}" if math.isfinite(result.budget) else "")
    share = min(result.spent / result.budget, 1.0) if math.isfinite(result.budget) else 1.0
    return Template((parts / "page.html").read_text("utf-8")).substitute(
        title=escape(f"{result.names[0]}: {result.estimate.summary()}"),
        style=(parts / "page.css").read_text("utf-8"),
        script=(parts / "page.js").read_text("utf-8"),
        library=get_plotlyjs(),
        # inside of a script element nothing but "<" could end it
        data=json.dumps(data, allow_nan=False, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c"),
        primary=escape(result.names[0]),
        state="" if result.stopped else "— the run goes on",
        mean=mean,
        std=std,
        interval=interval,
        budget=escape(spent),
        percent=f"{100 * share:.1f}",
        why=escape(f"Stopped: {REASONS.get(result.stopped, result.stopped)}." if result.stopped else ""),
        findings="".join(_findings(result)),
        pictures="".join(_picture(figure) for figure in figures),
        settings="".join(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in _settings(result)),
    )


def _answer(result: Result) -> tuple[str, str, str]:
    """The mean, the standard deviation, and the interval in words."""
    estimate = result.estimate
    if math.isnan(estimate.mean):
        return "unknown", "unknown", "Nothing is known yet."
    if math.isnan(estimate.std):
        return f"{estimate.mean:.6g}", "?", "This method has no error bar."
    centre, _, rest = estimate.summary().partition(" ± ")
    std, _, between = rest.partition(", ")
    return centre, std, f"{escape(between)}."


def _findings(result: Result) -> Iterator[str]:
    if result.integrator is None:
        why = "its method has none" if result.header is None else "the journal does not tell enough to make it again"
        said = f"there is no model of this run, because {why}: the pictures are only of what was evaluated."
        yield f'<li class="note"><b>No model</b>: {said}</li>'
        return
    for finding in result.diagnose():
        said = f"{finding.text} {finding.advice}".strip()
        yield f'<li class="{finding.level}"><b>{escape(finding.about)}</b>: {escape(said)}</li>'


def _settings(result: Result) -> Iterator[tuple[str, str]]:
    it, header = result.integrator, result.header
    problem = (header or {}).get("problem", {})
    yield "distribution of the inputs", problem.get("measure") or (repr(it.measure) if it is not None else "unknown")
    yield "names of the inputs", ", ".join(result.inputs)
    for source, name in enumerate(result.names):
        if problem:
            given = problem["sources"][source]
            yield f"source {source}", f"{name}; cost {given['cost']}, noise variance {given['noise']}"
        elif it is not None:
            yield (
                f"source {source}",
                f"{name}; cost {it.sources[source].cost}, noise variance {it.sources[source].noise}",
            )
    if it is not None:
        yield "model", it.model_name
        yield "acquisition", it.acquisition
        yield "seed", str(it.seed)
    if header is not None and "file" in header:
        yield "problem file", str(header["file"])
    if header is not None:
        yield "run with", f"amsbq {header.get('version', 'of an unknown version')}"
    versions = ", ".join(f"{package} {version(package)}" for package in ("amsbq", "numpy", "scipy"))
    yield "page made with", f"{versions}, Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    yield "page made at", datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _picture(figure: Chart) -> str:
    """The room for a figure, with a choice of inputs where there are several."""
    key, panels = figure["id"], figure["panels"]
    choice = ""
    if len(panels) > 1:
        options = "".join(f'<option value="{i}">{escape(panel["label"])}</option>' for i, panel in enumerate(panels))
        choice = f'<select id="input-{key}" aria-label="Input of: {escape(figure["title"])}">{options}</select>'
    return (
        f"<figure><h3><span>{escape(figure['title'])}</span>{choice}</h3>"
        f'<div class="plot" id="plot-{key}" role="img" aria-label="{escape(figure["alt"])}"></div>'
        f"<figcaption>{escape(figure['caption'])}</figcaption></figure>"
    )
