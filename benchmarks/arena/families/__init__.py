"""The problems of the arena, in families.

A family is a list of at least three problems that are alike in what makes them hard.
`PROBLEMS` has them all; `FAMILIES` has them by family.
Each is development or validation by the rule of `benchmarks.arena.problem.half_of`.
"""

from __future__ import annotations

from functools import cache

from ..problem import Problem, numbered
from .dependent import dependent, discrete, transformed
from .diffusion import diffusion
from .genz import genz
from .levels import boundary_value, column, oscillator
from .many_inputs import many_inputs
from .nearly_free import nearly_free
from .rough import non_stationary, rough
from .sde import sde
from .secondaries import mediocre, misleading, unordered
from .settings import noisy, one_source, varying_cost
from .skewed import skewed
from .smooth import smooth

#: family -> function that returns its members, in the order of the report
MAKERS = {
    "boundary-value": boundary_value,
    "diffusion": diffusion,
    "oscillator": oscillator,
    "column": column,
    "sde": sde,
    "nearly-free": nearly_free,
    "mediocre": mediocre,
    "misleading": misleading,
    "unordered": unordered,
    "smooth": smooth,
    "rough": rough,
    "non-stationary": non_stationary,
    "many-inputs": many_inputs,
    "skewed": skewed,
    "dependent": dependent,
    "discrete": discrete,
    "transformed": transformed,
    "noisy": noisy,
    "varying-cost": varying_cost,
    "one-source": one_source,
    "genz": genz,
}


@cache
def family(name: str) -> list[Problem]:
    """Return the members of a family."""
    return numbered(name, MAKERS[name]())


def problems() -> list[Problem]:
    """Return all problems."""
    return [problem for name in MAKERS for problem in family(name)]


def problem_named(key: str) -> Problem:
    """Return the problem with a key such as ``smooth/2``."""
    name, _, index = key.partition("/")
    return family(name)[int(index)]
