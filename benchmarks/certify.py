"""Measure certificates on the problems of the arena: how often their intervals hold, and how wide they are.

    python -m benchmarks.certify --quick            # one problem of each family, one seed
    python -m benchmarks.certify --family rough     # one family
    python -m benchmarks.certify --report           # the tables of what is stored
    python -m benchmarks.certify --intervals        # intervals of simulated residuals, by which they were chosen

A run spends a budget of 10, and certificates another 10 each, with many seeds: coverage is over the draws. MLBLUE
and control variates get 20, the sum of both. Results are stored in `arena/certificates.jsonl` as they come, and
recomputed when the code has changed. All widths are half widths of 95 % intervals, in standard deviations of the
output.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy is imported
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import amsbq
from amsbq.certificates.intervals import MeanOfDraws
from benchmarks.arena import store
from benchmarks.arena.families import MAKERS, problems
from benchmarks.arena.methods import METHODS, MODEL_CODE, SETTINGS
from benchmarks.arena.problem import Problem
from benchmarks.arena.resampling import share
from benchmarks.arena.truths import truths_of

FILE = Path(__file__).parent / "arena" / "certificates.jsonl"
BUDGET, CERTIFICATE = 10.0, 10.0
CERTIFICATES, PEERS = 40, 10  #: number of seeds of certificates of each run, and of each peer
RIVALS = ("MLBLUE", "control variates")
LEAST_LOG = SETTINGS.least_log  #: floor for the logarithm of an integral, whose interval may have no lower end
CODE = (*MODEL_CODE, "certificates", "certification.py")

#: residuals by which intervals were chosen: their draws, and their mean
RESIDUALS = {
    "normal": (lambda rng, shape: rng.normal(size=shape), 0.0),
    "t3": (lambda rng, shape: rng.standard_t(3, shape), 0.0),
    "normal, with a log-normal scale": (lambda rng, shape: rng.normal(size=shape) * rng.lognormal(size=shape), 0.0),
    "log-normal, σ = 1": (lambda rng, shape: rng.lognormal(0, 1, shape), np.exp(0.5)),
    "log-normal, σ = 1.5": (lambda rng, shape: rng.lognormal(0, 1.5, shape), np.exp(1.125)),
    "two points, 30 and 70 %": (lambda rng, shape: (rng.random(shape) < 0.3) * 1.0, 0.3),
    "two points, 10 and 90 %": (lambda rng, shape: (rng.random(shape) < 0.1) * 1.0, 0.1),
}


def wanted(families: Sequence[str], each: int) -> list[Problem]:
    """Return up to ``each`` problems of some families, or of all, whose mean can be certified."""
    usable = [p for p in problems() if not p.design and (not families or p.family in families)]
    of_family = {name: [p for p in usable if p.family == name] for name in MAKERS}
    return [some[i] for i in range(each) for some in of_family.values() if i < len(some)]


@cache
def digest() -> str:
    """Return a short hash of the code and settings that a result depends on."""
    text = repr((BUDGET, CERTIFICATE, CERTIFICATES, PEERS, *map(store._digest_of_code, CODE)))
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def measured(problem: Problem, seed: int) -> list[dict[str, Any]]:
    """Run a problem, certify it with many seeds, and return the outcome for each output."""
    truths, began = truths_of(problem), time.process_time()

    def limit(it: amsbq.Integrator) -> str | None:
        return "processor time" if time.process_time() - began > SETTINGS.cpu_limit else None

    result = amsbq.integrate(
        problem.sources(seed),
        problem.measure,
        budget=BUDGET,
        seed=seed,
        max_evaluations=SETTINGS.max_evaluations,
        stop=limit,
        outputs=problem.outputs or None,
        log=problem.log,
    )
    means, stds = np.array([t.mean for t in truths]), np.array([t.std for t in truths])

    def relative(values: Any) -> np.ndarray:
        return np.clip((np.atleast_1d(values) - means) / stds, LEAST_LOG, -LEAST_LOG)

    made = [amsbq.certify(result, CERTIFICATE, s) for s in range(CERTIFICATES)]
    ends = np.array([[relative(end) for end in c.interval(0.95)] for c in made])  # (S, 2, M)
    errors = np.array([relative(c.mean) for c in made])
    model = np.array([relative(end) for end in result.interval(0.95)])
    rivals = {name: rival(problem, name) for name in RIVALS}
    return [
        {
            "problem": problem.key,
            "seed": seed,
            "output": m,
            "fingerprint": store.fingerprint(problem.key),
            "digest": digest(),
            "seconds": round(time.process_time() - began, 1),
            "sources": [[*term.sources, term.n] for term in made[0].plan.terms],
            "bias": float(errors[:, m].mean()),
            "scatter": float(errors[:, m].std(ddof=1)),
            "error": float(made[0].plan.error[m] / stds[m]),  # of the control variate's mean, which is common to all
            "held": int(np.sum((ends[:, 0, m] <= 0) & (ends[:, 1, m] >= 0))),
            "of": CERTIFICATES,
            "width": float(np.mean(ends[:, 1, m] - ends[:, 0, m]) / 2),
            "agree": int(sum(c.comparison(m).agrees for c in made)),
            "model held": bool(model[0, m] <= 0 <= model[1, m]),
            "model width": float(model[1, m] - model[0, m]) / 2,
            **{name: found[m] for name, found in rivals.items()},
        }
        for m in range(len(truths))
    ]


def rival(problem: Problem, name: str) -> list[dict[str, Any] | None]:
    """Return how often the intervals of another method hold for the sum of both budgets, and how wide they are."""
    method, truths = METHODS[name], truths_of(problem)
    if not method.stages(problem):
        return [None] * len(truths)
    rows: list[list[Any]] = [[] for _ in truths]
    for seed in range(PEERS):
        for found, each in zip(rows, method.run(problem, truths, f"{BUDGET + CERTIFICATE:g}", seed), strict=True):
            found += [row.intervals[-1] for row in each.rows[-1:] if row.intervals]
    return [_peer(np.array(each)) for each in rows]


def _peer(ends: np.ndarray) -> dict[str, Any] | None:
    if not len(ends):
        return None
    held = int(np.sum((ends[:, 0] <= 0) & (ends[:, 1] >= 0)))
    return {"held": held, "of": len(ends), "width": float(np.mean(ends[:, 1] - ends[:, 0]) / 2)}


def stored() -> dict[tuple[str, int, int], dict[str, Any]]:
    """Return stored results by problem, seed and output; a truncated line is skipped."""
    found = {}
    for line in FILE.read_text().splitlines() if FILE.exists() else ():
        try:
            row = json.loads(line)
            found[row["problem"], row["seed"], row["output"]] = row  # the latest one
        except (json.JSONDecodeError, KeyError):
            continue
    return found


def run_all(chosen: Sequence[Problem], seeds: Sequence[int]) -> None:
    """Measure whatever is not stored for the current code, and store it as it comes."""
    known = {(p, s) for (p, s, _), row in stored().items() if row["digest"] == digest()}
    for seed in seeds:
        for problem in chosen:
            if (problem.key, seed) in known:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    rows = measured(problem, seed)
                except Exception as error:
                    print(f"{problem.key} with seed {seed}: {type(error).__name__}: {error}", file=sys.stderr)
                    continue
            with FILE.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            print(f"{problem.key}: {rows[0]['seconds']} s", file=sys.stderr, flush=True)


def tables(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield tables of coverage and width by family, and over all."""
    names = [name for name in MAKERS if any(row["problem"].startswith(f"{name}/") for row in rows)]
    yield "| family | runs | certificates hold | model holds | width | / MLBLUE | / control variates | agrees |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in [*names, "all"]:
        some = [row for row in rows if name == "all" or row["problem"].startswith(f"{name}/")]
        held, of = (sum(row[key] for row in some) for key in ("held", "of"))
        low, high = share(_by_problem(some))[1:]
        model = np.mean([row["model held"] for row in some])
        width = np.exp(np.mean(np.log([max(row["width"], 1e-12) for row in some])))
        agree = sum(row["agree"] for row in some) / of
        ratios = [_ratio(some, rival) for rival in RIVALS]
        yield (
            f"| {name} | {len(some)} | {held / of:.0%} ({low:.0%} to {high:.0%}) | {model:.0%} | {width:.2g} | "
            f"{ratios[0]} | {ratios[1]} | {agree:.0%} |"
        )
    spreads = [np.hypot(row["scatter"] / np.sqrt(row["of"]), row.get("error", 0.0)) for row in rows]
    z = [row["bias"] / spread for row, spread in zip(rows, spreads, strict=True) if spread > 1e-12]
    yield f"\nz-scores of the certificates' means: {np.mean(z):.2f} on average, with standard deviation {np.std(z):.2f}"


def _by_problem(rows: Sequence[dict[str, Any]]) -> dict[str, list[bool]]:
    """Return whether each interval holds, grouped by problem, as intervals of one problem are correlated."""
    found: dict[str, list[bool]] = {}
    for row in rows:
        found.setdefault(row["problem"], []).extend([True] * row["held"] + [False] * (row["of"] - row["held"]))
    return found


def _ratio(rows: Sequence[dict[str, Any]], name: str) -> str:
    """Return the geometric mean of widths relative to another method, and how often that holds."""
    both = [row for row in rows if row[name] is not None and row[name]["width"] > 0]
    if not both:
        return ""
    ratio = np.exp(np.mean([np.log(max(row["width"], 1e-12) / row[name]["width"]) for row in both]))
    held = sum(row[name]["held"] for row in both) / sum(row[name]["of"] for row in both)
    return f"{ratio:.2f} ({held:.0%})"


def intervals(runs: int = 4000) -> Iterator[str]:
    """Yield coverage and average width of the 95 % interval of simulated residuals, and of Student's t alone."""
    yield "| residuals | n | Student's t holds | the hull holds | its width relative to t |"
    yield "|---|---|---|---|---|"
    for name, (draw, mean) in RESIDUALS.items():
        for n in (4, 6, 10, 20):
            rows = draw(np.random.default_rng(n), (runs, n))
            half = stats.t.ppf(0.975, n - 1) * rows.std(axis=1, ddof=1) / np.sqrt(n)
            ends = np.array([MeanOfDraws([row]).interval(0.95) for row in rows])
            plain = np.mean(np.abs(rows.mean(axis=1) - mean) <= half)
            hull = np.mean((ends[:, 0] <= mean) & (ends[:, 1] >= mean))
            some = half > 0
            width = np.mean((ends[some, 1] - ends[some, 0]) / (2 * half[some]))
            yield f"| {name} | {n} | {plain:.0%} | {hull:.0%} | {width:.2f} |"


def main() -> None:
    """Parse the arguments and run the requested part."""
    parser = argparse.ArgumentParser("python -m benchmarks.certify", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--family", action="append", choices=MAKERS, default=[], help="only this one; repeatable")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--each", type=int, default=1000, help="problems of each family (default: all)")
    parser.add_argument("--quick", action="store_true", help="one problem of each family")
    parser.add_argument("--report", action="store_true", help="only the tables of what is stored")
    parser.add_argument("--intervals", action="store_true", help="only intervals of simulated residuals")
    options = parser.parse_args()
    if options.intervals:
        print("\n".join(intervals()))
        return
    chosen = wanted(options.family, 1 if options.quick else options.each)
    if not options.report:
        run_all(chosen, range(options.seeds))
    keys = {problem.key for problem in chosen}
    print("\n".join(tables([row for (problem, *_), row in stored().items() if problem in keys])))


if __name__ == "__main__":
    main()
