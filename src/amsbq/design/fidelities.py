"""Settings of the knobs of a simulator, such as the width of its cells, and the fidelities of sources that have them.

A fidelity is a number for each knob that tends to zero with the error: the width of a cell, not the number of cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..common.validation import brief, positive_number
from ..inference.structures import Fidelities

Number: TypeAlias = float | int

#: name of the limit that sources tend to as they are refined
LIMIT = "limit"
#: maximum number of levels into which the range of a knob is divided
MOST_LEVELS = 17
#: maximum number of combinations of several knobs into which ranges are divided: each is a source, which takes time
MOST_COMBINATIONS = 25
#: minimum number of levels of a range if there are several knobs
FEWEST_LEVELS = 3
#: smallest ratio between neighbouring levels of a range
CLOSEST = math.sqrt(2)


def settings_of_knobs(given: Mapping[str, Any]) -> dict[str, list[Number]]:
    """Return the values of each knob, the finest first, from lists or ranges; raise an error if one is not valid."""
    listed = {name: knob_settings(name, values) for name, values in given.items() if not isinstance(values, tuple)}
    ranges = len(given) - len(listed)
    share = MOST_COMBINATIONS / math.prod(map(len, listed.values()))
    most = MOST_LEVELS if len(given) == 1 else max(math.floor(share ** (1 / max(ranges, 1)) + 1e-9), FEWEST_LEVELS)
    return {
        name: listed.get(name) or knob_settings(name, values, min(most, MOST_LEVELS)) for name, values in given.items()
    }


def knob_settings(name: str, given: Any, most: int = MOST_LEVELS) -> list[Number]:
    """Return the values of a knob, the finest first; raise an error if they are not valid.

    A range, a tuple of two numbers, is divided into no more than ``most`` levels.
    """
    wanted = f"the knob {name} must have a list of positive numbers, the finest first, such as [1/32, 1/16, 1/8]"
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence | np.ndarray) or not len(given):
        raise TypeError(f"{wanted}; or a range, (finest, coarsest); got {brief(given)}")
    values = [value.item() if isinstance(value, np.generic) else value for value in given]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise TypeError(f"{wanted}; got {brief(given)}")
    if not all(0 < value < math.inf for value in values):
        raise ValueError(f"{wanted}; got {brief(given)}")
    if isinstance(given, tuple):
        return _range_of(name, values, most)
    steps = [b - a for a, b in pairwise(values)]
    if not (all(step > 0 for step in steps) or all(step < 0 for step in steps)):
        raise ValueError(
            f"{wanted}, in increasing order, or in decreasing order, like numbers of cells; got {brief(given)}"
        )
    return values


def _range_of(name: str, ends: Sequence[Number], most: int) -> list[Number]:
    """Return levels of a range with equal ratios, rounded to whole numbers if both ends are whole numbers."""
    if len(ends) != 2 or ends[0] == ends[1]:
        raise ValueError(
            f"a range of the knob {name} is two different numbers, (finest, coarsest), such as (1/256, 1/4); for "
            f"single levels give a list; got {tuple(ends)}"
        )
    ratio = math.log(max(ends) / min(ends)) / math.log(CLOSEST)
    grid = np.geomspace(ends[0], ends[1], 1 + min(max(math.floor(ratio + 1e-9), 1), most - 1)).tolist()
    whole = all(isinstance(end, int) for end in ends)
    inner = [round(value) if whole else float(f"{value:.3g}") for value in grid[1:-1]]
    return list(dict.fromkeys([ends[0], *inner, ends[1]]))


def level_sizes(values: Sequence[Number]) -> list[float]:
    """Return the sizes of levels, which tend to zero with the error, from the settings of a knob, the finest first.

    >>> level_sizes([0.1, 0.2]), level_sizes([20, 10])
    ([0.1, 0.2], [0.05, 0.1])
    """
    falls = values[0] > values[-1]
    return [1 / value if falls else float(value) for value in values]


def level_texts(values: Sequence[Number]) -> list[str]:
    """Return settings of a knob as text: as decimal numbers, or as fractions where these are shorter.

    >>> level_texts([1 / 32, 1 / 16]), level_texts([0.01, 0.1]), level_texts([128, 64])
    (['1/32', '1/16'], ['0.01', '0.1'], ['128', '64'])
    """
    decimals, fractions = [f"{value:.6g}" for value in values], []
    for value in values:
        parts = round(1 / value) if value < 1 else 0
        fractions.append(f"1/{parts}" if parts and abs(value * parts - 1) < 1e-12 else f"{value:.6g}")
    return fractions if sum(map(len, fractions)) <= sum(map(len, decimals)) else decimals


class Level(NamedTuple):
    """A setting of each knob, its sizes, which tend to zero with the error, and its name."""

    settings: dict[str, Number]
    sizes: dict[str, float]
    text: str


def combinations(knobs: Mapping[str, Sequence[Number]]) -> list[Level]:
    """Return all combinations of the settings of knobs, the finest first.

    >>> [level.text for level in combinations({"cells": [64, 16], "dt": [0.01, 0.1]})]
    ['cells=64, dt=0.01', 'cells=64, dt=0.1', 'cells=16, dt=0.01', 'cells=16, dt=0.1']
    """
    columns = [list(zip(values, level_sizes(values), level_texts(values), strict=True)) for values in knobs.values()]
    return [
        Level(
            {name: value for name, (value, _, _) in zip(knobs, row, strict=True)},
            {name: size for name, (_, size, _) in zip(knobs, row, strict=True)},
            ", ".join(f"{name}={text}" for name, (_, _, text) in zip(knobs, row, strict=True)),
        )
        for row in product(*columns)
    ]


def checked_fidelity(given: Any) -> dict[str, float]:
    """Return the fidelity of a source; raise an error if it is not valid."""
    wanted = "fidelity must be a dictionary of positive numbers that tend to zero with the error, such as {'h': 1/32}"
    if not isinstance(given, Mapping) or not given or not all(isinstance(name, str) for name in given):
        raise TypeError(f"{wanted}; got {brief(given)}")
    return {name: positive_number(value, f"{wanted}; {name}") for name, value in given.items()}


def fidelities_of(
    each: Sequence[Mapping[str, float] | None], names: Sequence[str], inputs: Sequence[str] | None
) -> Fidelities | None:
    """Check the fidelities of the sources of a run with these names and inputs; None if no source has one."""
    known = {name: fidelity for name, fidelity in zip(names, each, strict=True) if fidelity is not None}
    if not known:
        return None
    first, knobs = next(iter(known.items()))
    if each[0] is None:
        raise ValueError(
            f"{first} has a fidelity, but {names[0]}, the primary source, has none: declare one for it too, or for no "
            "source"
        )
    for name, values in known.items():
        if set(values) != set(knobs):
            raise ValueError(
                f"{name} has the fidelity {_shown(values)}, and {first} has {_shown(knobs)}: sources that have one "
                "need the same knobs"
            )
        if any(size < knobs[knob] for knob, size in values.items()):
            raise ValueError(
                f"{name} has the fidelity {_shown(values)}, finer than {first}, the primary source, with "
                f"{_shown(knobs)}: the finest comes first; fidelities are numbers that tend to zero with the error"
            )
    for knob in knobs:
        if knob in (inputs or ()):
            raise ValueError(f"{knob!r} is both a knob of the sources and the name of an input: rename one of them")
    found = Fidelities(
        tuple(knobs),
        tuple(None if fidelity is None else tuple(fidelity[knob] for knob in knobs) for fidelity in each),
    )
    seen: dict[tuple[float, ...], str] = {}
    for values_of, name in zip(found.values, names, strict=True):
        if values_of is not None and seen.setdefault(values_of, name) != name:
            raise ValueError(f"{seen[values_of]} and {name} have the same fidelity, {_shown(known[name])}")
    return found


def fidelities_of_data(given: Any, n_sources: int, inputs: Sequence[str] | None) -> Fidelities | None:
    """Check a list of the fidelities of numbered sources, one for each, and return them."""
    if isinstance(given, Mapping | str) or not isinstance(given, Sequence):
        raise TypeError(f"fidelity must be a list with a dictionary or None for each source, got {brief(given)}")
    if len(given) != n_sources and given:
        raise ValueError(f"fidelity must have an entry for each of {n_sources} sources, got {len(given)} of them")
    each = [None if fidelity is None else checked_fidelity(fidelity) for fidelity in given]
    return fidelities_of(each, [f"source {source}" for source in range(len(each))], inputs)


def determines_limit(each: Sequence[Mapping[str, float] | None]) -> bool:
    """Return whether sources have at least two values of each knob, so that a limit can be inferred."""
    known = [fidelity for fidelity in each if fidelity is not None]
    return bool(known) and all(len({fidelity[knob] for fidelity in known}) > 1 for knob in known[0])


def with_limit(fidelities: Fidelities | None, model: Any) -> Fidelities:
    """Return the fidelities of a run about their limit; raise an error if it cannot be inferred."""
    if model != "auto":
        raise ValueError(f"limit=True needs the default model: omit model={brief(model)}")
    if fidelities is None or len(fidelities.declared) < 2:
        raise ValueError(
            "limit=True needs two sources with a fidelity, or more: amsbq.levels(solve, h=[...]) makes them, and "
            "fidelity = { h = [...] } in a problem file; or give each its own, as in Source(f, fidelity={'h': 1/32})"
        )
    sizes = zip(*(fidelities.values[source] or () for source in fidelities.declared), strict=True)
    for knob, values in zip(fidelities.knobs, sizes, strict=True):
        if len(set(values)) == 1:
            raise ValueError(
                f"limit=True needs two values of each knob, or more: {knob} is {values[0]:.6g} in all sources"
            )
    return replace(fidelities, limit=True)


def _shown(values: Mapping[str, float]) -> str:
    return ", ".join(f"{name}={value:.6g}" for name, value in values.items())
