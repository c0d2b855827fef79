"""Levels of one simulator: sources that differ in the settings of its knobs, such as the width of its cells."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from ..common.validation import brief
from .fidelities import Number, combinations, settings_of_knobs
from .sources import Source

#: parameters that all levels share
COMMON = [name for name in inspect.signature(Source).parameters if name not in ("function", "fidelity")]


def levels(function: Callable[..., Any] | None = None, **settings: Any) -> list[Source]:
    """Make a source of each setting of a simulator's knobs, the finest first.

    Parameters
    ----------
    function : callable
        The simulator: called like the function of a `Source`, and with the value of each knob by name, as in
        ``solve(x, h=1/32)`` or ``solve(speed, angle, h=1/32)``. Not needed if evaluations are made elsewhere.
    **settings
        For each knob, by its name, a list of values, the finest first. Rising values tend to zero with the error, like
        the width of a cell; falling values do so by their inverse, like the number of cells. With several knobs, every
        combination is a source. A tuple (finest, coarsest) is a range, divided into at most 17 levels with equal
        ratios, of which the run evaluates those that are worth their cost. With several knobs, a range has fewer
        levels, but at least three, so that there are at most 25 combinations if possible.

        ``cost`` and ``noise`` may be functions of the knobs, called with them by name. ``cost``, ``noise``, ``timeout``
        and all other parameters of `Source` apply to all levels. With a ``name``, the names of all sources begin with
        it. A function ``gradient`` is called with the knobs, too.

    Returns
    -------
    list of Source
        The first one is the primary source of a run.

    Examples
    --------
    >>> def solve(x, h):
    ...     return x[0] + h * x[0] ** 2
    >>> levels(solve, h=[1 / 32, 1 / 16, 1 / 8], cost=lambda h: (32 * h) ** -2)
    [Source(h=1/32, cost=1.0), Source(h=1/16, cost=0.25), Source(h=1/8, cost=0.0625)]
    >>> [source.name for source in levels(solve, cells=[64, 16], dt=[0.01, 0.1], cost="measured")]
    ['cells=64, dt=0.01', 'cells=64, dt=0.1', 'cells=16, dt=0.01', 'cells=16, dt=0.1']
    """
    if function is not None and not callable(function):
        raise TypeError(
            f"levels takes a function of x and the knobs, as in levels(solve, h=[...]), got {brief(function)}"
        )
    common = {name: value for name, value in settings.items() if name in COMMON}
    knobs = settings_of_knobs({name: value for name, value in settings.items() if name not in COMMON})
    if not knobs:
        raise ValueError("levels needs a knob and its values, the finest first, as in levels(solve, h=[1/32, 1/16])")
    before, found = common.pop("name", None), []
    for level in combinations(knobs):
        own = {name: _at_level(name, value, level.settings) for name, value in common.items()}
        made = None if function is None else partial(function, **level.settings)
        name = level.text if before is None else f"{before}, {level.text}"
        found.append(Source(made, fidelity=level.sizes, name=name, **own))
    return found


def _at_level(name: str, value: Any, knobs: Mapping[str, Number]) -> Any:
    """Return the value of a common parameter at one level."""
    if name == "gradient" and callable(value):
        return partial(value, **knobs)
    if name in ("cost", "noise") and isinstance(value, list | tuple):
        raise TypeError(f"{name} of levels is one number, or a function of the knobs by name, got {brief(value)}")
    if name not in ("cost", "noise") or not callable(value):
        return value
    given = ", ".join(f"{knob}={setting!r}" for knob, setting in knobs.items())
    try:
        return value(**knobs)
    except Exception as error:
        raise ValueError(
            f"{name} of levels is a function of the knobs, called by their names: {name}({given}) raised "
            f"{type(error).__name__}: {error}"
        ) from error
