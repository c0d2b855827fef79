"""Measure the time of decisions, relative to the LAPACK calls that bound it and to other packages.

    python -m benchmarks.overhead                  # three minutes; --quick takes one
    python -m benchmarks.overhead --json here.json
    python -m benchmarks.overhead --scale          # up to 10,000 observations: ten minutes and several gigabytes

GPy and Emukit are measured if installed. They need a separate environment:

    python -m venv peers && peers/bin/pip install . emukit GPy && peers/bin/python -m benchmarks.overhead

- *operations*: two inputs, three sources, the paper's model. The most frequent operations: the log posterior density of
  the hyperparameters with its gradient, per vector of hyperparameters, for as many at once as a search starts from; the
  acquisition rate with its gradient; one more observation; and conditioning on all observations. A solve is one with
  the triangular factor.
- *steps*: ask and tell, with the scheduled refits: averages from one refit to the next, the faster of two runs if these
  are short.
- *runs*: ask, tell and estimate from the first evaluation on: CPU time of the mean and of the longest step, in
  Cholesky factorisations of a 1,000 × 1,000 matrix.
- The code of the paper's authors is not public. Its times, per step and for one acquisition value, were measured on
  another machine together with GPy's log evidence; GPy's time here shows how fast this machine is.
- *scale*: learning, steps and memory against the number of observations.
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
from scipy.linalg.lapack import dpftrf, dpftri, dpotrf, dtrtrs, dtrttf

import amsbq
from amsbq.design.acquisition import Rate
from amsbq.design.costs import ConstantCost
from amsbq.design.evaluations import Option
from amsbq.gp.coregionalisation import ModelBatch, TermGroup
from amsbq.gp.data import Data
from amsbq.gp.posterior_batch import PosteriorBatch
from amsbq.inference.log_posterior import LogPosterior
from amsbq.inference.structures import icm
from amsbq.posterior.schedule import scheduled_refit
from benchmarks.free import ball, ishigami

#: seconds that GPy and the authors' code took on the other machine
GPY_EVIDENCE = {100: 2.5e-3, 500: 33e-3, 2000: 720e-3}
AUTHORS_ACQUISITION = {100: 6e-3, 500: 12e-3, 2000: 130e-3}
AUTHORS_STEP = {10: 0.9, 40: 0.8, 160: 4.4}
SCALE = (250, 500, 1000, 2000, 4000, 10_000)


@dataclass
class Row:
    """One comparison: a time, its ratio to another one, and the wanted ratio."""

    what: str
    n: int
    seconds: float
    beside: str
    ratio: float
    wanted: str = ""

    def __str__(self) -> str:
        return (
            f"{self.what:<44} {self.n:>6} {1e3 * self.seconds:>10.3f} ms {self.ratio:>8.2f} × {self.beside:<28} "
            f"{self.wanted}"
        )


def shortest(function: Callable[[], Any], seconds: float = 0.5) -> float:
    """Return the shortest time of a call, among as many calls as fit into ``seconds``."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < seconds and len(times) < 1000):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def observations(n: int, dim: int, n_sources: int) -> Data:
    """Return noisy observations of sources that differ a little; every fourth belongs to the primary one."""
    X = np.random.default_rng(0).uniform(size=(n, dim))
    s = np.where(np.arange(n) % 4 == 0, 0, 1 + np.arange(n) % (n_sources - 1))
    return Data(s, X, np.array([value(source, x) for source, x in zip(s, X, strict=True)]), np.zeros(n))


def value(source: int, x: Any) -> float:
    noise = np.random.default_rng(int(1e9 * abs(x[0]))).normal()
    return float(np.sin(5 * x + 0.3 * source).sum() + 0.2 * source * x.sum() + 0.01 * noise)


def installed(*names: str) -> bool:
    return all(find_spec(name) is not None for name in names)


def gpy_evidence(n: int) -> float | None:
    """Return the seconds of GPy's log evidence and gradient, or None if it is not installed."""
    if not installed("GPy"):
        return None
    import GPy

    data = observations(n, 2, 3)
    kernel = GPy.kern.RBF(2, ARD=False) * GPy.kern.Coregionalize(1, 3, active_dims=[2])
    model = GPy.models.GPRegression(np.c_[data.X, data.s], data.y[:, None], kernel)
    lengths = iter(np.linspace(0.29, 0.31, 100_000))

    def evaluate() -> Any:
        model.kern.rbf.lengthscale = next(lengths)  # changed each time, as results are cached
        return model.log_likelihood(), model.gradient

    return shortest(evaluate)


def learning(n: int) -> Iterator[Row]:
    """Yield the log posterior with its gradient, per vector of hyperparameters, for all starts of a search at once."""
    log_posterior = LogPosterior(icm(range(3), 2), amsbq.Uniform([0, 0], 1), observations(n, 2, 3), [1e-4] * 3)
    Theta = log_posterior.layout.starts()
    packed, _ = dtrttf(np.eye(n), uplo="L")
    floor = shortest(lambda: dpftri(n, dpftrf(n, packed, uplo="L")[0], uplo="L", overwrite_a=1))
    taken = shortest(lambda: log_posterior.log_posterior_and_grad(Theta)) / len(Theta)
    yield Row("log posterior and gradient", n, taken, "LAPACK's inverse", taken / floor)
    theirs = gpy_evidence(n)
    if theirs is not None:
        yield Row("  GPy's", n, theirs, "ours", theirs / taken, "≥ 3" * (n == 100))


def deciding(n: int) -> Iterator[Row]:
    """Yield the acquisition rate with its gradient, for one model and for as many as decide at first."""
    posterior, many = conditioned(n), np.random.default_rng(1).uniform(size=(512, 2))
    sides = np.asfortranarray(np.ones((n, 512)))
    one, batch = (shortest(lambda m=m: dtrtrs(posterior.factors[0], sides[:, :m], lower=1)) for m in (1, 512))
    costs = {Option(s): ConstantCost(posterior.models.measure, cost) for s, cost in enumerate((1.0, 0.1, 0.1))}
    rate, several = Rate(posterior, costs), Rate(conditioned(n, 8), costs)
    taken = shortest(lambda: rate.value_and_grad(1, many[:1]))
    yield Row("rate and gradient, 1 point", n, taken, "one solve", taken / one)
    gpy = gpy_evidence(n)
    if gpy is not None:
        authors = gpy / GPY_EVIDENCE[n] * AUTHORS_ACQUISITION[n]
        yield Row("  the authors'", n, authors, "ours", authors / taken, "≥ 20")
    taken = shortest(lambda: rate.value_and_grad(1, many))
    yield Row("rate and gradient, 512 points", n, taken, "512 solves", taken / batch, "≤ 20" * (n == 500))
    taken = shortest(lambda: several.value_and_grad(1, many[:12]))
    yield Row("rate and gradient, 12 points, 8 models", n, taken, "one solve for each model", taken / (8 * one))


def conditioning(n: int) -> Iterator[Row]:
    """Yield the times of extending by one observation and of conditioning on all."""
    posterior = conditioned(n)
    G = np.asfortranarray(np.eye(n))
    one = shortest(lambda: dtrtrs(posterior.factors[0], np.ones((n, 1)), lower=1))
    floor = shortest(lambda: dpotrf(G, lower=1))
    new = Data(np.array([0]), np.array([[0.4, 0.6]]), np.zeros(1), np.zeros(1))
    taken = shortest(lambda: posterior.extend(new))
    yield Row("extend by one observation", n, taken, "one solve", taken / one, "≤ 6" * (n == 2000))
    taken = shortest(lambda: PosteriorBatch.condition(posterior.models, posterior.data).integral())
    yield Row("condition, and the integral", n, taken, "LAPACK's factor", taken / floor)


def conditioned(n: int, n_models: int = 1) -> PosteriorBatch:
    """Return posteriors of the paper's model with three sources, all of them the same."""
    B = np.array([[1.0, 0.9, 0.8], [0.9, 1.0, 0.7], [0.8, 0.7, 1.0]])
    group = TermGroup(amsbq.RBF(1.0), np.tile(B, (n_models, 1, 1, 1)), np.full((n_models, 1, 2), 0.3))
    zeros = np.zeros((n_models, 3))
    models = ModelBatch(amsbq.Uniform([0, 0], 1), (group,), np.zeros((n_models, 3, 3)), zeros + 0.01, zeros)
    posterior = PosteriorBatch.condition(models, observations(n, 2, 3))
    posterior.integral()  # cached, as it is during a search
    return posterior


def steps(sizes: list[int], shapes: list[tuple[int, int]]) -> Iterator[Row]:
    """Yield steps of the paper's model and of the default, averaged from one scheduled refit to the next."""
    gpy = gpy_evidence(100)
    speed = 1.0 if gpy is None else gpy / GPY_EVIDENCE[100]
    for model, wanted in (("icm", 20), ("auto", 5)):
        for dim, n_sources in shapes:
            for n in sizes:
                taken = faster(step, n, model, dim, n_sources)
                name = f"step of {model}, inputs: {dim}, sources: {n_sources}"
                if n in AUTHORS_STEP:
                    yield Row(
                        name, n, taken, "faster than the authors'", AUTHORS_STEP[n] * speed / taken, f"≥ {wanted}"
                    )
                else:
                    yield Row(name, n, taken, "one second", taken)
    for dim in sorted({dim for dim, _ in shapes}):
        for n in sizes if installed("emukit", "GPy") else []:
            theirs = faster(emukit_step, n, dim)
            yield Row(f"step of Emukit's vanilla BQ, inputs: {dim}", n, theirs, "one second", theirs)


def faster(step: Callable[..., float], n: int, *case: Any) -> float:
    """Return the time of the faster of two runs of the same steps, or of a single run if they are long."""
    return min(step(*case, n) for _ in range(2 if n < 100 else 1))


def started(model: str, dim: int, n_sources: int, n: int) -> amsbq.Integrator:
    """Return an integrator with n observations."""
    sources = [amsbq.Source(cost=1.0 if source == 0 else 0.1, noise=1e-4) for source in range(n_sources)]
    it = amsbq.Integrator(sources, amsbq.Uniform(np.zeros(dim), 1.0), model=model, initial=[])
    data = observations(n, dim, n_sources)
    for s, x, y in zip(data.s, data.X, data.y, strict=True):
        it.observe(int(s), x, y)
    return it


def step(model: str, dim: int, n_sources: int, n: int) -> float:
    """Return the seconds of one step, on average over the steps until the next refits."""
    n = scheduled_refit(n)
    it = started(model, dim, n_sources, n)
    it.ask()
    total, made, refits = 0.0, 0, 0
    while refits < (3 if n < 100 else 1):
        start = time.perf_counter()
        query = it.ask()
        assert query is not None
        it.tell(query, value(query.source, query.x))
        total, made = total + time.perf_counter() - start, made + 1
        refits += scheduled_refit(n + made) == n + made
    return total / made


def runs(n: int, shapes: list[tuple[int, int]]) -> Iterator[Row]:
    """Yield the mean and the longest step of runs of n evaluations, in factorisations."""
    for dim, n_sources in shapes:
        matrix = np.random.default_rng(0).normal(size=(1000, 1000))
        matrix = np.asfortranarray(matrix @ matrix.T + 1000 * np.eye(1000))
        unit = min(processor_time(lambda m=matrix: dpotrf(m, lower=1)) for _ in range(10))
        sources = [amsbq.Source(cost=10.0**-source) for source in range(n_sources)]
        it = amsbq.Integrator(sources, amsbq.Uniform(np.zeros(dim), 1.0), budget=1000, seed=0)
        taken = [processor_time(lambda it=it: following(it)) for _ in range(n)]
        made = len(it.evaluations)
        name = f"of a run, inputs: {dim}, sources: {n_sources}"
        for what, seconds, wanted in (("mean step", sum(taken) / made, "≤ 6"), ("longest step", max(taken), "≤ 40")):
            yield Row(f"{what} {name}", made, seconds, "a factorisation", seconds / unit, wanted)


def following(it: amsbq.Integrator) -> None:
    """Ask, tell and estimate once, unless nothing is left to be learned."""
    if (query := it.ask()) is not None:
        x = query.x
        it.tell(query, float(np.sin(5 * x + 0.3 * query.source).sum() + 0.2 * query.source * x.sum() + (x**2).sum()))
        it.estimate()


def processor_time(function: Callable[[], Any]) -> float:
    """Return the processor seconds that a call takes."""
    start = time.process_time()
    function()
    return time.process_time() - start


def emukit_step(dim: int, n: int) -> float:
    """Return the seconds of one step of Emukit's vanilla Bayesian quadrature, which has one source."""
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


def free() -> Iterator[Row]:
    """Yield the times of sources that cost next to nothing, and of tables of their values."""
    measure, n = amsbq.Uniform(np.zeros(8), 1.0), 100_000
    X = measure.sobol(n, 0)

    def formula(X: Any) -> Any:
        return np.exp(X.mean(axis=1)) * np.cos(X @ np.arange(1.0, 9.0) / 4)

    def fine(x: Any) -> float:
        return float(formula(x[None])[0] + 0.1 * x[0] ** 2)

    def run(count: int) -> float:
        source = amsbq.Source(formula, cost=0, vectorized=True, bulk=count)
        start = time.process_time()
        amsbq.integrate([fine, source], measure, budget=4)
        return time.process_time() - start

    alone = shortest(lambda: formula(X))
    few, many = run(1000), run(n)
    yield Row("evaluations in bulk, eight inputs", n, many - few, "the function itself", (many - few) / alone)
    yield Row("a run of four evaluations, and so many in bulk", n, many, "one second", many, "≤ 10")
    for size in (10_000, n):
        some = measure.sample(size, 1)
        sources, locations = [0] * 8 + [1] * (size + 8), np.concatenate([X[:8], X[:8], some])
        y = np.concatenate([[fine(x) for x in X[:8]], formula(locations[8:])])
        start = time.process_time()
        amsbq.estimate(sources, locations, y, measure)
        taken = time.process_time() - start
        yield Row("estimate, observations of a cheap source", size, taken, "one second", taken, "≤ 60")
    seconds = ishigami(10.0, 0).seconds
    yield Row("a run with the Ishigami triple, budget", 10, seconds, "one second", seconds, "≤ 60")
    seconds = ball(0.0, 3.0, 0).seconds
    yield Row("a run with the README's ball and a free formula, budget", 3, seconds, "one second", seconds, "≤ 5")


def imports() -> Iterator[Row]:
    """Yield the time of imports, beyond NumPy and SciPy."""
    needed = "import time, numpy, scipy.linalg, scipy.optimize, scipy.special, scipy.stats; t = time.perf_counter(); "
    for what, wanted in (("amsbq", "≤ 0.15"), ("GPy, emukit", "")):
        modules = what.replace("amsbq", "amsbq.public")  # all of it: the package itself imports nothing
        command = [sys.executable, "-W", "ignore", "-c", needed + f"import {modules}; print(time.perf_counter() - t)"]
        runs = [subprocess.run(command, capture_output=True, text=True, check=False) for _ in range(5)]
        if all(run.returncode == 0 for run in runs):
            taken = min(float(run.stdout.split()[-1]) for run in runs)
            yield Row(f"import {what}, after NumPy and SciPy", 0, taken, "one second", taken, wanted)


def scale(n: int) -> dict[str, float]:
    """Return the seconds of learning from n observations and of a step with the default model, and its memory."""
    import resource

    n = scheduled_refit(n)
    start = time.perf_counter()
    it = started("auto", 2, 3, n)
    it.estimate()
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
    """Yield the results of `scale`, each from its own process, whose memory is measured."""
    for n in sizes:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.overhead", "--one", str(n)]
        yield json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    parser.add_argument("--scale", action="store_true", help="only times and memory against the number of observations")
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
        learned, sizes, largest, small = [100, 256], [100, 500, 2000], [2000], [10, 40, 160, 640]
        shapes, of_runs = [(1, 2), (1, 3), (4, 2), (4, 3)], [(1, 2), (2, 3), (4, 3), (8, 2)]
        if options.quick:
            learned, sizes, largest, small, shapes, of_runs = [100], [100, 500], [500], [10, 40], [(1, 2)], [(1, 2)]
        operations = (*map(learning, learned), *map(deciding, sizes), *map(conditioning, largest))
        for part in (*operations, steps(small, shapes), runs(120, of_runs), free(), imports()):
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
