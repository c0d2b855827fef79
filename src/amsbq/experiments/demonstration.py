"""`amsbq demo`: the paper's two-source example of Section 4.1 in numbers, for a first look."""

from __future__ import annotations

import math

import numpy as np

from ..api import integrate
from ..common.validation import Array
from ..design.sources import Source
from ..measures.uniform import Uniform
from . import forrester

#: budget of the run: six evaluations of the primary source, or 120 of the secondary one
BUDGET = 6.0

#: cost of an evaluation of the secondary source, if one of the primary source costs 1
CHEAP = 0.05


def demonstrate() -> int:
    """Print the integral from the paper's starting data, and a run that finds it from evaluations that it chooses.

    Returns
    -------
    int
        The exit code of the command, 0.
    """
    truth = forrester.true_integral()
    both, alone = forrester.starting_posterior(), forrester.starting_posterior(sources=(0,))
    print("∫ f₁ over [0, 1] of the Forrester function f₁(x) = (6x - 2)² sin(12x - 4)")
    print(f"with the cheap variant f₂(x) = f₁(x)/2 + 10x, which costs {CHEAP:g} of it.")
    print()
    print("The paper's starting data, with hyperparameters fixed by hand:")
    print(f"{'observations':28} {'estimate':>9}   {'std':>5}   {'error':>7}")
    for name, posterior in (("3 of f₁ (vanilla BQ)", alone), ("3 of f₁ and 5 of f₂", both)):
        mean, variance = posterior.integral()
        print(f"{name:28} {mean:9.3f} ± {variance**0.5:5.3f}   {mean - truth:+7.3f}")
    print()
    print(f"A run that chooses its evaluations and learns its hyperparameters, with a budget of {BUDGET:g}:")
    sources = [Source(_primary, name="f₁"), Source(_secondary, name="f₂", cost=CHEAP)]
    result = integrate(sources, Uniform(0, 1), budget=BUDGET, progress=False)
    spent, printed, counts = 0.0, 0, [0, 0]
    for e in result.evaluations:
        spent, counts[e.source] = spent + e.cost, counts[e.source] + 1
        if int(spent + 1e-9) > printed and not math.isnan(e.std):
            printed = int(spent + 1e-9)
            name = f"{counts[0]} of f₁ and {counts[1]} of f₂"
            print(f"{name:28} {e.mean:9.3f} ± {e.std:5.3f}   {e.mean - truth:+7.4f}")
    print(f"{'true value':28} {truth:9.3f}")
    print()
    spread = float(np.std(forrester.primary(np.linspace(0, 1, 10001)))) / math.sqrt(BUDGET)
    print(f"Monte Carlo with {BUDGET:g} evaluations of f₁ would be off by about {spread:.1f}.")
    return 0


def _primary(x: Array) -> float:
    return float(forrester.primary(x)[0])


def _secondary(x: Array) -> float:
    return float(forrester.secondary(x)[0])
