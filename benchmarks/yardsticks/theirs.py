"""Methods of the outside packages on their own problems, and what others printed. Packages are imported where they run.

Errors are in standard deviations of the output, and costs in evaluations of the primary source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arena.arrays import Array
from benchmarks.arena.families import family
from benchmarks.arena.problem import Problem
from benchmarks.arena.quadrature import line
from benchmarks.arena.truths import truths_of

from .options import GEOMETRIC, STEPS
from .registry import BUDGETS, SEEDS

FILE = Path(__file__).with_name("theirs.json")
#: points of each level of the option, from 2 to 16 steps, in fastgps' notebook; a level evaluates the coarser one, too
POINTS = (2**14, 2**12, 2**10, 2**8)
OPTION_COST = sum(n * steps * (1.5 if steps > 2 else 1) for n, steps in zip(POINTS, STEPS[::-1], strict=True)) / 16
NOTEBOOK = "fastgps, docs/examples/mlqmc/comparison.ipynb"


@dataclass(frozen=True)
class Figure:
    """An error of a method at a cost: of one run or a root mean square, or a predicted standard error."""

    problem: str
    method: str
    source: str
    cost: float
    error: float
    kind: str  # "1 run", "5 runs", "predicted"


def published() -> list[Figure]:
    """Return what others printed: errors of one run with seed 7, in the currency of the option."""
    unit = GEOMETRIC.geometric_moments().std
    printed = {
        "multilevel Monte Carlo": 0.221,
        "multilevel lattices": 0.0532,
        "multilevel nets": 0.00293,
        "fast GPs on lattices": 0.00489,
        "fast GPs on nets": 0.00342,
    }
    return [Figure("asian-options/0", m, NOTEBOOK, OPTION_COST, e / unit, "1 run") for m, e in printed.items()]


def stored() -> list[Figure]:
    """Return what the outside packages gave here."""
    return [Figure(**each) for each in json.loads(FILE.read_text())] if FILE.exists() else []


def run_all() -> None:
    """Run the outside packages that are installed; what the others gave before is kept."""
    for run in (estimators, fast_gps, collocation):
        try:
            for figure in run():
                print(figure, flush=True)
                store(figure)
        except ImportError as error:
            print(f"{run.__name__}: {error.name} is not installed")


def store(figure: Figure) -> None:
    """Add a figure to the file, in the place of an older one."""
    known = {(f.problem, f.method, f.cost): f for f in (*stored(), figure)}
    rows = [json.dumps(asdict(known[key]), ensure_ascii=False) for key in sorted(known)]
    FILE.write_text("[\n " + ",\n ".join(rows) + "\n]\n")


def covariances(problem: Problem) -> list[Array]:
    """Return the exact covariances (L, L) of the sources, for each output, by a Gauss rule."""
    rules = [line(marginal, 60) for marginal in problem.marginals]
    grids = np.meshgrid(*(nodes for nodes, _ in rules), indexing="ij")
    X = np.column_stack([grid.ravel() for grid in grids])
    w = np.prod([g.ravel() for g in np.meshgrid(*(weights for _, weights in rules), indexing="ij")], axis=0)
    values = np.stack([f(X).reshape(len(X), -1) for f in problem.functions])
    centred = values - np.einsum("n,lnm->lm", w, values)[:, None]
    return [np.einsum("n,ln,kn->lk", w, centred[..., m], centred[..., m]) for m in range(values.shape[2])]


def estimators() -> Iterator[Figure]:
    """Yield standard errors that PyApprox predicts for its ensembles, with the exact covariances and no pilot."""
    from pyapprox.statest import MFMCEstimator, MLBLUEEstimator
    from pyapprox.statest.acv import default_allocator_factory
    from pyapprox.statest.acv.base import FittedACVEstimator
    from pyapprox.statest.groupacv import GroupACVAllocationOptimizer
    from pyapprox.statest.statistics import MultiOutputMean
    from pyapprox.util.backends.numpy import NumpyBkd

    bkd = NumpyBkd()

    def multifidelity(stat: Any, costs: Array, budget: float) -> Any:
        estimator = MFMCEstimator(stat, costs)
        return FittedACVEstimator(estimator, default_allocator_factory(estimator).allocate(budget)).covariance()

    def grouped(stat: Any, costs: Array, budget: float) -> Any:
        # rounded down, the primary source would often have no sample at all: its numbers need not be whole here
        estimator = MLBLUEEstimator(stat, costs)
        found = GroupACVAllocationOptimizer(estimator).optimize(budget, round_nsamples=False)
        if not found.success:
            raise RuntimeError(found.message)
        return estimator._covariance_from_npartition_samples(found.npartition_samples)

    methods = {"multi-fidelity Monte Carlo": multifidelity, "MLBLUE": grouped}
    for problem in family("pyapprox-ensembles"):
        for name, method in methods.items():
            for budget in map(float, BUDGETS):
                relative = []
                for covariance in covariances(problem):
                    stat = MultiOutputMean(1, bkd)
                    stat.set_pilot_quantities(bkd.asarray(covariance))
                    try:
                        predicted = method(stat, bkd.asarray(problem.costs), budget)
                        relative.append(float(predicted[0, 0]) / covariance[0, 0])
                    except (RuntimeError, ValueError) as error:  # such as correlations in another order than costs
                        print(f"{problem.title}, {name}, {budget:g}: {error}")
                        relative.append(np.nan)
                error = float(np.sqrt(np.mean(relative)))
                if np.isfinite(error):
                    yield Figure(problem.key, name, "PyApprox 2.0", budget, error, "predicted")


def fast_gps() -> Iterator[Figure]:
    """Yield errors of independent fast Gaussian processes on nets, for the differences between levels, by fastgps."""
    import fastgps
    import qmcpy
    import torch

    torch.set_default_dtype(torch.float64)
    truth = GEOMETRIC.geometric_moments()
    errors = []
    for seed in SEEDS:
        first = qmcpy.FinancialOption(
            qmcpy.IIDStdUniform(2),
            option="ASIAN",
            call_put="CALL",
            asian_mean="GEOMETRIC",
            asian_mean_quadrature_rule="RIGHT",
            volatility=GEOMETRIC.volatility,
            start_price=GEOMETRIC.start,
            strike_price=GEOMETRIC.strike,
            interest_rate=GEOMETRIC.rate,
            t_final=1,
            level=0,
            d_coarsest=2,
        )
        levels = [first, *first.spawn([1, 2, 3])]
        total = 0.0
        for level, points in zip(levels, POINTS, strict=True):
            process = fastgps.FastGPDigitalNetB2(
                kernel=qmcpy.KernelDigShiftInvar(d=level.d, torchify=True, alpha=2),
                seqs=qmcpy.DigitalNetB2(level.d, seed=100 * seed + level.d),
            )
            coarse, fine = level.f(process.get_x_next(n=points).numpy())
            process.add_y_next(torch.from_numpy(fine - coarse))
            process.fit(loss_metric="MLL", stop_crit_improvement_threshold=1e-3, iterations=100, verbose=False)
            total += float(process.post_cubature_mean())
        errors.append((total - truth.mean) / truth.std)
    error = float(np.sqrt(np.mean(np.square(errors))))
    yield Figure("asian-options/0", "fast GPs on nets", "fastgps 1.1", OPTION_COST, error, f"{len(errors)} runs")


def collocation() -> Iterator[Figure]:
    """Yield errors of PyApprox's adaptive multi-index collocation, after the last step that each budget pays for."""
    from pyapprox.probability.univariate.uniform import UniformMarginal
    from pyapprox.surrogates.affine.indices import (
        CompositeCriteria,
        LinearGrowthRule,
        Max1DLevelsCriteria,
        MaxLevelCriteria,
    )
    from pyapprox.surrogates.sparsegrids import MultiFidelityAdaptiveSparseGridFitter, TensorProductSubspaceFactory
    from pyapprox.surrogates.sparsegrids.basis_factory import GaussLagrangeFactory
    from pyapprox.util.backends.numpy import NumpyBkd

    bkd = NumpyBkd()
    for problem in family("multi-index"):
        knobs = 2 if len(problem.functions) == 4 else 1
        # combinations from the finest to the coarsest, as the sources are
        models = dict(zip([(1, 1), (1, 0), (0, 1), (0, 0)] if knobs == 2 else [(1,), (0,)], range(4), strict=False))
        bases = [
            GaussLagrangeFactory(UniformMarginal(*map(float, marginal.support()), bkd), bkd)
            for marginal in problem.marginals
        ]
        highest = bkd.asarray([10] * problem.dim + [1] * knobs, dtype=bkd.int64_dtype())
        allowed = CompositeCriteria(
            MaxLevelCriteria(max_level=10, pnorm=1.0, bkd=bkd), Max1DLevelsCriteria(highest, bkd)
        )
        fitter = MultiFidelityAdaptiveSparseGridFitter(
            bkd,
            TensorProductSubspaceFactory(bkd, bases, LinearGrowthRule(scale=1, shift=1)),
            allowed,
            nconfig_vars=knobs,
            cost_model=lambda at, models=models, problem=problem: problem.costs[models[tuple(at)]],
        )
        [truth] = truths_of(problem)
        spent, path = 0.0, []  # (cost, error) after each step
        while spent <= float(BUDGETS[-1]) and (wanted := fitter.step_samples()):
            fitter.step_values({at: problem.functions[models[at]](samples.T)[None] for at, samples in wanted.items()})
            spent += sum(problem.costs[models[at]] * samples.shape[1] for at, samples in wanted.items())
            path.append((spent, abs(float(fitter.result().surrogate.mean()[0]) - truth.mean) / truth.std))
        for budget in map(float, BUDGETS):
            paid = [error for cost, error in path if cost <= budget]
            if paid:
                yield Figure(problem.key, "multi-index collocation", "PyApprox 2.0", budget, paid[-1], "1 run")
