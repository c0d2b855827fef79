"""Run the examples of the gallery, and show their pictures, answers and truths on the site.

    python docs/gallery.py              # runs the examples whose code has changed; --all runs every one

The site shows what is in `docs/gallery/`: a picture of each example, and results.json. An example is a script with a
docstring, `run() -> Result`, `answers(result) -> {name: (what is known, truth)}` and `draw(result) -> Figure`. Its
results are those of its code as long as the digest of the code is the same, which `tests/test_gallery.py` checks.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "gallery"
RESULTS = FOLDER / "results.json"
#: each example: its page, its title, its script, and what it shows
EXAMPLES = {
    "reliability": ("A roof beam under snow", "reliability.py", "structural reliability: the probability of failure"),
    "windfarm": ("A wind farm's yearly energy", "windfarm.py", "wind energy: inputs that depend on each other"),
    "heat": (
        "The heat that is left in a rod",
        "heat.py",
        "a partial differential equation with two knobs, and its limit",
    ),
    "epidemic": (
        "An epidemic among a hundred people",
        "epidemic/script.py",
        "epidemiology: two outputs of a random simulator",
    ),
    "option": ("The right to buy an option", "option.py", "finance: nested valuation, with a value that is often zero"),
    "ignition": ("The ignition of a gas", "ignition.py", "chemical kinetics: orders of magnitude, Sobol' indices"),
    "evidence": (
        "The evidence of a model",
        "evidence.py",
        "Bayesian statistics: a likelihood over a prior distribution",
    ),
    "well": ("The drawdown of a well", "cluster/script.py", "groundwater: a program with a deck, on a cluster"),
}


def files(name: str) -> list[Path]:
    """Return the files that an example is made of, its script first."""
    script = ROOT / "examples" / EXAMPLES[name][1]
    beside = script.parent.iterdir() if script.parent != ROOT / "examples" else ()
    return [script, *sorted(file for file in beside if file != script and file.suffix in (".py", ".awk", ".deck"))]


def digest(name: str) -> str:
    """Return the digest of the code of an example."""
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files(name))).hexdigest()


def stored() -> dict[str, dict[str, Any]]:
    """Return the stored results by example."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def evaluate(name: str) -> dict[str, Any]:
    """Run an example in this process, store its picture, and return its results."""
    import amsbq

    script = files(name)[0]
    sys.path.insert(0, str(script.parent))
    module = runpy.run_path(str(script))
    before = os.times()
    result = module["run"]()
    seconds = sum(os.times()[:4]) - sum(before[:4])
    answers = [
        {"name": known_as, "mean": known.mean, "std": known.std, "interval": [*known.interval(0.95)], "truth": truth}
        for known_as, (known, truth) in module["answers"](result).items()
    ]
    module["draw"](result).savefig(FOLDER / f"{name}.png", dpi=110)
    printed = str(result)
    return {
        "digest": digest(name),
        "version": amsbq.__version__,
        "seconds": seconds,
        "printed": printed,
        "answers": answers,
    }


def as_markdown(name: str) -> str:
    """Return the page of an example."""
    title, script, _ = EXAMPLES[name]
    first, *others = files(name)
    text = ast.get_docstring(ast.parse(first.read_text(encoding="utf-8")))
    question, _, rest = text.partition("\n\n")
    command, _, rest = rest.partition("\n\n")
    code = first.read_text(encoding="utf-8").split('"""', 2)[2].strip("\n")
    found = stored()[name]
    parts = [
        f"# {title}",
        f"**{question.replace(chr(10), ' ')}**",
        rest,
        f"![{title}]({name}.png)",
        f"``` {{.text .output .no-copy}}\n{found['printed'].rstrip()}\n```",
        table({name: found}, title=False),
        f"## The code\n\n`{command.strip()}`, {found['seconds']:.0f} s of CPU time, most of it for decisions.",
        _block(script, code, "python"),
        *(
            _block(str(file.relative_to(ROOT / "examples")), file.read_text(encoding="utf-8").strip("\n"))
            for file in others
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _block(title: str, code: str, language: str | None = None) -> str:
    kind = language or {"py": "python", "awk": "awk"}.get(title.rpartition(".")[2], "text")
    return f'``` {{.{kind} title="examples/{title}"}}\n{code}\n```'


def cards() -> str:
    """Return a card with the picture of each example, as HTML."""
    links = [
        f'<a class="card" href="{name}.html"><img src="{name}.png" alt="" loading="lazy"><strong>{title}</strong>'
        f"<span>{shown}</span></a>"
        for name, (title, _, shown) in EXAMPLES.items()
    ]
    return "\n".join(['<div class="cards">', *links, "</div>"])


def truths() -> str:
    """Return the table of all examples, as Markdown."""
    return table(stored())


def table(results: dict[str, dict[str, Any]], title: bool = True) -> str:
    """Return the results alongside the truth, as a Markdown table."""
    head = ["example"] * title + [
        "quantity",
        "truth",
        "found, ± standard deviation",
        "error",
        "95 % interval",
        "contains the truth",
    ]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for name, found in results.items():
        for answer in found["answers"]:
            low, high = answer["interval"]
            link = [f"[{EXAMPLES[name][0]}]({name}.md)"] * title
            digits = max(0, 1 - _magnitude(answer["std"]))  # behind the point: two of the standard deviation's
            cells = [
                answer["name"],
                f"{answer['truth']:.{digits + 1}f}",
                f"{answer['mean']:.{digits}f} ± {answer['std']:.{digits}f}",
                f"{answer['mean'] - answer['truth']:+.{digits + 1}f}",
                f"{low:.{digits}f} to {high:.{digits}f}",
                "yes" if low <= answer["truth"] <= high else "no",
            ]
            lines.append(f"| {' | '.join([*link, *cells])} |")
    return "\n".join(lines)


def _magnitude(value: float) -> int:
    return int(f"{value:e}".partition("e")[2])


def main() -> None:
    if len(sys.argv) == 2 and sys.argv[1] in EXAMPLES:
        json.dump(evaluate(sys.argv[1]), sys.stdout)
        return
    FOLDER.mkdir(exist_ok=True)
    results = stored() if RESULTS.exists() else {}
    for name in EXAMPLES:
        if "--all" in sys.argv or results.get(name, {}).get("digest") != digest(name):
            threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
            command, start = [sys.executable, __file__, name], time.perf_counter()
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, **threads})
            results[name] = json.loads(done.stdout)
            print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
            ordered = {known: results[known] for known in EXAMPLES if known in results}
            RESULTS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
