"""The problems of the arena, in families.

A family is a list of problems that are difficult for a common reason, at least four of which are validation. Each is
development or validation by the rule of `benchmarks.arena.split.half_of`.
"""

from __future__ import annotations

from functools import cache

from ..problem import Problem, numbered
from .dependent import dependent, discrete, transformed
from .diffusion import diffusion
from .evidence import evidence
from .fewer_inputs import fewer_inputs
from .genz import genz
from .given import poor_designs
from .levels import boundary_value, column, oscillator
from .many_inputs import many_inputs, wide
from .nearly_free import free, nearly_free
from .outputs import several_outputs
from .regimes import regional, switches
from .rough import non_stationary, rough
from .sde import sde
from .secondaries import mediocre, misleading, unordered
from .settings import noisy, odd_noise, one_source, varying_cost
from .skewed import skewed
from .smooth import smooth
from .two_knobs import two_knobs

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
    "switches": switches,
    "regional": regional,
    "wide": wide,
    "fewer-inputs": fewer_inputs,
    "free": free,
    "two-knobs": two_knobs,
    "odd-noise": odd_noise,
    "outputs": several_outputs,
    "evidence": evidence,
    "poor-designs": poor_designs,
}


@cache
def family(name: str) -> list[Problem]:
    """Return the members of a family, of the arena or of the yardsticks."""
    from benchmarks.yardsticks.registry import MAKERS as OUTSIDE  # late: these use the arena's problems

    return numbered(name, (MAKERS | OUTSIDE)[name]())


def problems() -> list[Problem]:
    """Return all problems."""
    return [problem for name in MAKERS for problem in family(name)]


def problem_named(key: str) -> Problem:
    """Return the problem with a key such as ``smooth/2``."""
    name, _, index = key.partition("/")
    return family(name)[int(index)]
