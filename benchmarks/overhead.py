"""What the loop itself takes, beside LAPACK and beside its peers, in one run.

    python -m benchmarks.overhead                  # three minutes; --quick takes one
    python -m benchmarks.overhead --json here.json
    python -m benchmarks.overhead --scale          # up to 10,000 observations: ten minutes, and 7 GB

Peers are measured where they are installed. They need an environment of their own:

    python -m venv peers && peers/bin/pip install . emukit GPy && peers/bin/python -m benchmarks.overhead

- *pieces*: two inputs, three sources, the paper's model. The floor is what LAPACK takes to factorise the covariance
  matrix and to invert it (potrf and potri); a solve is one with the triangular factor.
- *steps*: ask, tell, and learning the hyperparameters when it is time, averaged from one such time to the next; the
  faster of two runs where they are short.
- The code of the paper's authors is not public. What it took, per step and for one acquisition value, was measured on
  another machine together with GPy's log evidence; that of GPy here tells how fast this machine is.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri, dtrtrs

import amsbq
from amsbq.gp.threads import threads_for
from amsbq.inference.schedule import scheduled_refit

#: of GPy and of the authors' code on the other machine, in seconds
GPY_EVIDENCE = {100: 2.5e-3, 500: 33e-3, 2000: 720e-3}
AUTHORS_ACQUISITION = {100: 6e-3, 500: 12e-3, 2000: 130e-3}
AUTHORS_STEP = {10: 0.9, 40: 0.8, 160: 4.4}
SCALE = (250, 500, 1000, 2000, 4000, 10_000)


@dataclass
class Row:
    """One comparison: what took how long, beside what, and the ratio that is wanted."""

    what: str
    n: int
    seconds: float
    beside: str
    ratio: float
    wanted: str = ""

    def __str__(self) -> str:
        return (
            f"{self.what:<38} {self.n:>6} {1e3 * self.seconds:>10.3f} ms {self.ratio:>8.2f} × {self.beside:<28} "
            f"{self.wanted}"
        )


def shortest(function: Callable[[], Any], seconds: float = 0.5) -> float:
    """The least time that it takes, of as many tries as fit into the time."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < seconds and len(times) < 1000):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def observations(n: int, dim: int, n_sources: int) -> tuple[Any, Any, Any]:
    """Of sources that differ a little, with noise; every fourth of the primary one."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, dim))
    s = np.where(np.arange(n) % 4 == 0, 0, 1 + np.arange(n) % (n_sources - 1))
    return s, X, np.array([value(source, x) for source, x in zip(s, X, strict=True)])


def value(source: int, x: Any) -> float:
    noise = np.random.default_rng(int(1e9 * abs(x[0]))).normal()
    return float(np.sin(5 * x + 0.3 * source).sum() + 0.2 * source * x.sum() + 0.01 * noise)


def installed(*names: str) -> bool:
    return all(find_spec(name) is not None for name in names)


def gpy_evidence(s: Any, X: Any, y: Any) -> Callable[[], Any] | None:
    """GPy's log evidence and its gradient, if it is there."""
    if not installed("GPy"):
        return None
    import GPy

    kernel = GPy.kern.RBF(2, ARD=False) * GPy.kern.Coregionalize(1, 3, active_dims=[2])
    model = GPy.models.GPRegression(np.c_[X, s], y[:, None], kernel)
    lengths = iter(np.linspace(0.29, 0.31, 100_000))

    def evaluate() -> Any:
        model.kern.rbf.lengthscale = next(lengths)  # it remembers what it knows already
        return model.log_likelihood(), model.gradient

    return evaluate


def pieces(n: int) -> Iterator[Row]:
    B = [[1.0, 0.9, 0.8], [0.9, 1.0, 0.7], [0.8, 0.7, 1.0]]
    gp = amsbq.MultiSourceGP([amsbq.Term(B, amsbq.RBF([0.3, 0.3]))], amsbq.Uniform([0, 0], 1), noise=0.01)
    s, X, y = observations(n, 2, 3)
    posterior = gp.condition(s, X, y)
    posterior.integral()
    G = np.asfortranarray(gp.prior.cov(s, X, s, X) + 0.01 * np.eye(n))
    point, many = np.array([[0.4, 0.6]]), np.random.default_rng(1).uniform(size=(512, 2))
    sides = np.asfortranarray(np.ones((n, 512)))

    floor = shortest(lambda: dpotri(dpotrf(G, lower=1)[0], lower=1, overwrite_c=1))
    one = shortest(lambda: dtrtrs(posterior._C, sides[:, :1], lower=1))
    batch = shortest(lambda: dtrtrs(posterior._C, sides, lower=1))

    evidence = shortest(lambda: gp.condition(s, X, y).log_evidence_and_grad())
    yield Row("log evidence and gradient", n, evidence, "the floor", evidence / floor, "≤ 1.6" * (n == 2000))
    gpy = gpy_evidence(s, X, y)
    if gpy is not None:
        theirs = shortest(gpy)
        yield Row("  GPy's", n, theirs, "ours", theirs / evidence, "≥ 3" * (n == 100))
    taken = shortest(lambda: posterior.squared_correlation_and_grad(1, point))
    yield Row("acquisition and gradient, one point", n, taken, "one solve", taken / one)
    if gpy is not None and n in GPY_EVIDENCE:
        authors = theirs / GPY_EVIDENCE[n] * AUTHORS_ACQUISITION[n]
        yield Row("  the authors'", n, authors, "ours", authors / taken, "≥ 20")
    taken = shortest(lambda: posterior.squared_correlation_and_grad(1, many))
    yield Row("acquisition and gradient, 512 points", n, taken, "512 solves", taken / batch, "≤ 20" * (n == 500))
    taken = shortest(lambda: posterior.extend([0], point, [0.0]))
    yield Row("extend by one", n, taken, "one solve", taken / one, "≤ 6" * (n == 2000))
    taken = shortest(lambda: gp.condition(s, X, y).integral())
    yield Row("integral", n, taken, "the floor", taken / floor)


def steps(sizes: list[int], shapes: list[tuple[int, int]], speed: float | None) -> Iterator[Row]:
    """Of the paper's model and of the default, averaged from one time to learn to the next."""
    for model, wanted in (("icm", 20), ("auto", 5)):
        for dim, n_sources in shapes:
            for n in sizes:
                taken = faster(step, n, model, dim, n_sources)
                name = f"step of {model}, {dim} inputs, {n_sources} sources"
                if n in AUTHORS_STEP:
                    theirs = AUTHORS_STEP[n] * (speed or 1.0)
                    yield Row(name, n, taken, "faster than the authors'", theirs / taken, f"≥ {wanted}")
                else:
                    yield Row(name, n, taken, "of a second", taken)
    for dim in sorted({dim for dim, _ in shapes}):
        for n in sizes if installed("emukit", "GPy") else []:
            theirs = faster(emukit_step, n, dim)
            yield Row(f"step of Emukit's vanilla BQ, {dim} inputs", n, theirs, "of a second", theirs)


def faster(step: Callable[..., float], n: int, *case: Any) -> float:
    """Of two runs of the same steps, where they are short."""
    return min(step(*case, n) for _ in range(2 if n < 100 else 1))


def started(model: str, dim: int, n_sources: int, n: int) -> amsbq.Integrator:
    """An integrator that knows n observations."""
    sources = [amsbq.Source(cost=1.0 if source == 0 else 0.1, noise=1e-4) for source in range(n_sources)]
    it = amsbq.Integrator(sources, amsbq.Uniform(np.zeros(dim), 1.0), model=model, initial=[])
    for s, x, y in zip(*observations(n, dim, n_sources), strict=True):
        it.observe(int(s), x, y)
    return it


def step(model: str, dim: int, n_sources: int, n: int) -> float:
    n = scheduled_refit(n)
    it = started(model, dim, n_sources, n)
    it.ask()
    total, made, learned = 0.0, 0, 0
    while learned < (3 if n < 100 else 1):
        start = time.perf_counter()
        query = it.ask()
        assert query is not None
        it.tell(query, value(query.source, query.x))
        total, made = total + time.perf_counter() - start, made + 1
        learned += scheduled_refit(n + made) == n + made
    return total / made


def emukit_step(dim: int, n: int) -> float:
    import GPy
    from emukit.core.loop import UserFunctionWrapper
    from emukit.model_wrappers.gpy_quadrature_wrappers import create_emukit_model_from_gpy_model
    from emukit.quadrature.loop import VanillaBayesianQuadratureLoop
    from emukit.quadrature.methods import VanillaBayesianQuadrature

    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, dim))
    y = np.array([[value(0, x)] for x in X])
    gp = GPy.models.GPRegression(X, y, GPy.kern.RBF(dim))
    model = VanillaBayesianQuadrature(create_emukit_model_from_gpy_model(gp, [(0, 1)] * dim), X, y)
    loop = VanillaBayesianQuadratureLoop(model)
    start = time.perf_counter()
    loop.run_loop(UserFunctionWrapper(lambda X: np.array([[value(0, x)] for x in X])), 4)
    return (time.perf_counter() - start) / 4


def imports() -> Iterator[Row]:
    """What importing adds to what it needs, and what it takes to import the peers."""
    needed = "import time, numpy, scipy.linalg, scipy.optimize, scipy.special, scipy.stats; t = time.perf_counter(); "
    for what, wanted in (("amsbq", "≤ 0.15"), ("GPy, emukit", "")):
        command = [sys.executable, "-W", "ignore", "-c", needed + f"import {what}; print(time.perf_counter() - t)"]
        runs = [subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(5)]
        if all(run.returncode == 0 for run in runs):
            taken = min(float(run.stdout.split()[-1]) for run in runs)
            yield Row(f"import {what}, beside NumPy and SciPy", 0, taken, "of a second", taken, wanted)


def scale(n: int) -> dict[str, float]:
    """Steps of the default with n observations, and the memory of a process that makes them."""
    import resource

    n = scheduled_refit(n)
    start = time.perf_counter()
    it = started("auto", 2, 3, n)
    with threads_for(n):
        assert it.learner.belief is not None
        it.learner.belief.estimate  # noqa: B018
    learning, times = time.perf_counter() - start, []
    for _ in range(3):
        start = time.perf_counter()
        query = it.ask()
        assert query is not None
        it.tell(query, value(query.source, query.x))
        times.append(time.perf_counter() - start)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {"n": n, "learning": learning, "step": min(times), "gigabytes": memory}


def scales(sizes: list[int]) -> Iterator[dict[str, float]]:
    """Each in a process of its own."""
    for n in sizes:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.overhead", "--one", str(n)]
        yield json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--scale", action="store_true", help="only the curve against the number of observations")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.one:
        print(json.dumps(scale(options.one)))
        return
    rows: list[dict[str, Any]] = []
    if options.scale:
        for found in scales([n for n in SCALE if not options.quick or n <= 1000]):
            rows.append(found)
            print(", ".join(f"{key} {number:.4g}" for key, number in found.items()), flush=True)
        for key in ("learning", "step", "gigabytes"):
            n, numbers = np.log([[row["n"], row[key]] for row in rows[-3:]]).T
            print(f"{key} grows like n^{np.polyfit(n, numbers, 1)[0]:.1f}")
    else:
        sizes, small = [100, 500, 2000], [10, 40, 160, 640]
        shapes = [(1, 2), (1, 3), (4, 2), (4, 3)]
        if options.quick:
            sizes, small, shapes = [100, 500], [10, 40], [(1, 2)]
        gpy = gpy_evidence(*observations(100, 2, 3))
        speed = None if gpy is None else shortest(gpy) / GPY_EVIDENCE[100]
        for part in (*map(pieces, sizes), steps(small, shapes, speed), imports()):
            for row in part:
                rows.append(asdict(row))
                print(row, flush=True)
    if options.json:
        about = {
            "machine": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "numpy": np.__version__,
        }
        options.json.write_text(json.dumps({"about": about, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
