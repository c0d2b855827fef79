"""Measure coverage and errors of estimates of other quantities than the mean, on problems of the arena.

    python -m benchmarks.quantities                             # the validation half, one seed: half an hour
    python -m benchmarks.quantities --half development --families smooth rough --seeds 2
    python -m benchmarks.quantities --targets                   # runs for a target, and runs for the mean

The variance, probabilities and quantiles of the primary source's output and its Sobol' indices are estimated from
active runs. The truth is from many Sobol points. The errors of the runs are compared with those of as many evaluations
of the primary source as the budget covers: independent draws, Sobol points, and for indices Saltelli's scheme.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import amsbq
from amsbq.common.validation import Array
from amsbq.posterior.targets import Target
from benchmarks.arena.families import problems
from benchmarks.arena.problem import Problem
from benchmarks.arena.split import half_of

BUDGET = 10.0
MAX_EVALUATIONS = 120
LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)  #: levels of quantiles, and of limits whose probability of exceeding is estimated
REFERENCE_POINTS = 2**16
SMOOTH = ("smooth", "boundary-value", "oscillator", "one-source", "nearly-free", "skewed", "transformed", "genz")


def truths(problem: Problem) -> dict[str, float]:
    """Return the true variance, probabilities and quantiles, and indices of independent inputs."""
    X = problem.measure.sobol(REFERENCE_POINTS, 11)
    y = problem.functions[0](X)
    out = {"variance": float(np.var(y))}
    for p in LEVELS:
        out[f"quantile {p}"] = float(np.quantile(y, p))
        out[f"probability {p}"] = float(np.mean(y > out[f"quantile {p}"]))
    if problem.measure.marginals is not None and problem.dim > 1:
        out |= saltelli(problem, REFERENCE_POINTS // 4, 12)
    return out


def saltelli(problem: Problem, n: int, seed: int) -> dict[str, float]:
    """Return Sobol' indices by Saltelli's design with Jansen's estimators: n (D + 2) evaluations."""
    dim, measure = problem.dim, problem.measure
    U = amsbq.Uniform(np.zeros(2 * dim), np.ones(2 * dim)).sobol(n, seed)
    U = np.clip(U, 1e-12, 1 - 1e-12)
    A, B = measure.from_cube(U[:, :dim]), measure.from_cube(U[:, dim:])
    f = problem.functions[0]
    at_A, at_B = f(A), f(B)
    variance = float(np.var(np.concatenate([at_A, at_B]))) or np.nan
    out = {}
    for d in range(dim):
        mixed = A.copy()
        mixed[:, d] = B[:, d]
        at_mixed = f(mixed)
        out[f"first {d}"] = 1 - float(np.mean((at_B - at_mixed) ** 2)) / (2 * variance)
        out[f"total {d}"] = float(np.mean((at_A - at_mixed) ** 2)) / (2 * variance)
    return out


def estimates(result: amsbq.Result, truth: dict[str, float]) -> dict[str, amsbq.Estimate]:
    """Return the estimate of each quantity that has a truth."""
    output = result.distribution()
    out = {"variance": output.variance()}
    for p in LEVELS:
        out[f"quantile {p}"] = output.quantile(p)
        out[f"probability {p}"] = output.probability(above=truth[f"quantile {p}"])
    if "first 0" in truth:
        found = result.sensitivity()
        for d in range(len(result.inputs)):
            out[f"first {d}"], out[f"total {d}"] = found.first[d], found.total[d]
    return out


def of_sample(y: Array, truth: dict[str, float]) -> dict[str, float]:
    """Return the quantities of a sample of outputs."""
    out = {"variance": float(np.var(y, ddof=1))}
    for p in LEVELS:
        out[f"quantile {p}"] = float(np.quantile(y, p))
        out[f"probability {p}"] = float(np.mean(y > truth[f"quantile {p}"]))
    return out


def outcomes(
    problem: Problem, seed: int, target: Callable[[dict[str, float]], Target] = lambda truth: "mean"
) -> Iterator[dict[str, Any]]:
    """Yield the estimates of each quantity by a run, for a target that may depend on the truth, and by competitors."""
    truth = truths(problem)
    with warnings.catch_warnings(action="ignore"):
        start = time.perf_counter()
        result = amsbq.integrate(
            problem.sources(seed),
            problem.measure,
            budget=BUDGET,
            seed=seed,
            max_evaluations=MAX_EVALUATIONS,
            progress=False,
            target=target(truth),
        )
        ran = time.perf_counter()
        found = estimates(result, truth)
        answered = time.perf_counter()
    n, f = int(BUDGET), problem.functions[0]
    draws = of_sample(f(problem.measure.sample(n, np.random.default_rng([seed, 1]))), truth)
    sobol = of_sample(f(problem.measure.sobol(n, np.random.default_rng([seed, 2]))), truth)
    pairs = max(n // (problem.dim + 2), 2)
    scheme = saltelli(problem, pairs, seed + 100) if "first 0" in truth else {}
    for name, estimate in found.items():
        low, high = estimate.interval()
        kind = name.split()[0]
        peers = {"Saltelli": scheme[name]} if name in scheme else {"Monte Carlo": draws[name], "Sobol": sobol[name]}
        yield {
            "problem": problem.key,
            "seed": seed,
            "kind": "index" if kind in ("first", "total") else kind,
            "name": name,
            "truth": truth[name],
            "unit": _unit(kind, truth),
            "mean": estimate.mean,
            "std": estimate.std,
            "low": low,
            "high": high,
            "peers": peers,
            "seconds": [ran - start, answered - ran],
        }


def _unit(kind: str, truth: dict[str, float]) -> float:
    """Return the unit of errors of a kind of quantity."""
    return {"variance": truth["variance"], "quantile": truth["variance"] ** 0.5}.get(kind, 1.0)


def _geometric(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-6))))) if values else np.nan


def _ratios(rows: list[dict[str, Any]], peer: str) -> Iterator[float]:
    """Yield the error of a competitor with that of each run: root mean squares over all quantities of a kind.

    They are over all quantities, because a single one, such as a share of ten evaluations, may be right by chance.
    """
    for run in sorted({(row["problem"], row["seed"]) for row in rows}):
        of = [row for row in rows if (row["problem"], row["seed"]) == run]
        mine = np.sqrt(np.mean([((row["mean"] - row["truth"]) / row["unit"]) ** 2 for row in of]))
        theirs = np.sqrt(np.mean([((row["peers"][peer] - row["truth"]) / row["unit"]) ** 2 for row in of]))
        if np.isfinite(theirs):  # the few evaluations of a scheme may all have the same value
            yield float(theirs / max(mine, 1e-4))


def covered(row: dict[str, Any]) -> bool:
    """Return whether the interval covers the truth, within the accuracy of the truth."""
    slack = 5e-4 * row["unit"]
    return bool(row["low"] - slack <= row["truth"] <= row["high"] + slack)


def table(rows: list[dict[str, Any]]) -> str:
    """Return coverage and errors by kind of quantity."""
    lines = [
        f"{'quantity':14} {'n':>5} {'covered':>8} {'std/error':>10} {'RMSE':>8} {'error':>8}  beside (ratio of errors)"
    ]
    for kind in ("variance", "probability", "quantile", "index"):
        some = [row for row in rows if row["kind"] == kind]
        if not some:
            continue
        errors = [abs(row["mean"] - row["truth"]) / row["unit"] for row in some]
        ratio = _geometric([max(row["std"] / row["unit"], 1e-6) for row in some]) / _geometric(errors)
        smooth = [row for row in some if row["problem"].split("/")[0] in SMOOTH]
        beside = []
        for peer in sorted({name for row in some for name in row["peers"]}):
            for title, part in (("", some), (" smooth", smooth)):
                beside.append(f"{peer}{title} {_geometric(list(_ratios(part, peer))):.1f}")
        rms = float(np.sqrt(np.mean(np.square(errors))))
        share = np.mean([covered(row) for row in some])
        numbers = f"{len(some):>5} {share:>8.1%} {ratio:>10.2f} {rms:>8.3f} {_geometric(errors):>8.4f}"
        lines.append(f"{kind:14} {numbers}  {', '.join(beside)}")
    return "\n".join(lines)


#: targets by name: the quantity whose errors are compared, and the target of a run for it
TARGETS: dict[str, tuple[str, Callable[[dict[str, float]], Target]]] = {
    "variance": ("variance", lambda truth: "variance"),
    "exceedance": ("probability 0.9", lambda truth: amsbq.Exceedance(truth["quantile 0.9"])),
    "quantile": ("quantile 0.9", lambda truth: amsbq.Quantile(0.9)),
}


def errors_with_and_without(problem: Problem, seed: int) -> Iterator[tuple[str, float, float]]:
    """Yield targets, and the errors of the quantity by a run for the mean and by a run for the target."""
    plain = {row["name"]: row for row in outcomes(problem, seed)}
    for name, (quantity, target) in TARGETS.items():
        (aimed,) = (row for row in outcomes(problem, seed, target) if row["name"] == quantity)
        errors = [max(abs(row["mean"] - row["truth"]) / row["unit"], 1e-4) for row in (plain[quantity], aimed)]
        yield name, errors[0], errors[1]


def main() -> None:
    """Run what the arguments select, and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("development", "validation"), default="validation")
    parser.add_argument("--families", nargs="*")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--targets", action="store_true", help="compare runs for a target with runs for the mean")
    parser.add_argument("--json", type=Path, help="file to which outcomes are appended, and that is read first")
    arguments = parser.parse_args()
    chosen = [
        (problem, seed)
        for seed in range(arguments.seeds)
        for problem in problems()
        if problem.plain
        and half_of(problem) == arguments.half
        and (not arguments.families or problem.family in arguments.families)
    ]
    if arguments.targets:
        compare_targets(chosen)
    else:
        measure_all(chosen, arguments.json)


def compare_targets(chosen: Sequence[tuple[Problem, int]]) -> None:
    """Print the errors of quantities with and without them as targets, and their ratios in the geometric mean."""
    ratios: dict[str, list[float]] = {}
    for problem, seed in chosen:
        for name, plain, aimed in errors_with_and_without(problem, seed):
            ratios.setdefault(name, []).append(aimed / plain)
            print(f"{problem.key:20} {name:12} for the mean {plain:.5f}, for it {aimed:.5f}", flush=True)
    for name, found in ratios.items():
        print(f"{name:12} {len(found):>4} runs, ratio of errors {_geometric(found):.2f}")


def measure_all(chosen: Sequence[tuple[Problem, int]], file: Path | None) -> None:
    """Print the quantities that each run misses, and the table of all outcomes, including those in a file."""
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []
    done = {(row["problem"], row["seed"]) for row in rows}
    for problem, seed in chosen:
        if (problem.key, seed) in done:
            continue
        new = list(outcomes(problem, seed))
        rows += new
        if file:
            with file.open("a") as opened:
                opened.writelines(json.dumps(row) + "\n" for row in new)
        missed = [row["name"] for row in new if not covered(row)]
        ran, answered = new[0]["seconds"]
        print(f"{problem.key:20} {ran:6.1f} {answered:6.1f} s  missed: {missed}", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
