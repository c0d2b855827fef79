"""The split of the problems into development and validation, which was fixed before any result was seen.

Choices are made on development: model structures, priors, constants. Validation is evaluated afterwards, and reported.
"""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

from .families import MAKERS
from .problem import Problem

Half: TypeAlias = Literal["development", "validation"]

#: families that must be in both halves, so that none of them is held out
IN_BOTH_HALVES = (
    "boundary-value",
    "dependent",
    "discrete",
    "many-inputs",
    "mediocre",
    "misleading",
    "nearly-free",
    "non-stationary",
    "rough",
    "skewed",
    "smooth",
    "transformed",
    # families added after 0.2.0
    "switches",
    "regional",
    "wide",
    "fewer-inputs",
    "free",
    "two-knobs",
    "odd-noise",
    "outputs",
    "evidence",
    "poor-designs",
)
#: Genz's functions, on which constants of the library were chosen
SEEN_FAMILIES = ("genz",)
N_HELD_OUT = 3


def _held_out() -> tuple[str, ...]:
    """Return the first families by the SHA-256 of their names, except those that must not be held out."""
    free = [name for name in MAKERS if name not in (*IN_BOTH_HALVES, *SEEN_FAMILIES)]
    return tuple(sorted(free, key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:N_HELD_OUT])


#: families without development problems: diffusion, column and one-source
HELD_OUT = _held_out()


def half_of(problem: Problem) -> Half:
    """Return which half a problem belongs to.

    Problems on which constants of the library were once chosen are development. Held-out families are validation, and
    so are members that were added after 0.2.0 to families with fewer than four validation problems. Of all other
    problems, those with even numbers are development and those with odd numbers are validation.
    """
    if problem.seen:
        return "development"
    fresh = problem.added or problem.family in HELD_OUT
    return "validation" if fresh or problem.index % 2 else "development"
