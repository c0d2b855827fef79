"""degenerate."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..gp.data import Data
from ..validation import Array, read_only
from .log_posterior import standard_units
from .structures import Model, Noise


def _usable(model: Model, data: Data, noise: Sequence[Noise]) -> tuple[Data, Sequence[Noise]]:
    if not model.secondaries:
        data, noise = data.only(0), noise[:1]
    return _made_sense_of(data, noise)


def _made_sense_of(data: Data, noise: Sequence[Noise]) -> tuple[Data, Sequence[Noise]]:
    noise = list(noise)
    for source in range(len(noise)):
        if noise[source] == 0.0 and _contradictory(data.only(source)):
            warnings.warn(
                f"source {source} gave different values at the same input, but was said to be without noise: its noise "
                f"is learned; give noise='learn' or its variance",
                stacklevel=4,
            )
            noise[source] = "learn"
    primary = data.y[data.s == 0]
    if len(primary) == 0:
        warnings.warn("there is no observation of source 0: what is said of its integral is a guess", stacklevel=4)
    elif _flat(data):
        warnings.warn(
            f"all {len(primary)} observations of source 0 are {primary[0]:.6g}: they do not tell how much it varies, "
            "and the error bar is a guess",
            stacklevel=4,
        )
        # as noisy as the sources vary: or else the likelihood would grow without bound as the scale shrinks
        _, spreads = standard_units(data, len(noise), common=True)
        data = replace(data, noise_var=read_only(data.noise_var + np.where(data.s == 0, spreads[0] ** 2, 0.0)))
    return data, noise


def _flat(data: Data) -> bool:
    """Whether the primary source seems not to vary at all."""
    primary = data.y[data.s == 0]
    return len(primary) > 1 and bool(np.ptp(primary) == 0)


def _contradictory(data: Data) -> bool:
    exact = data.noise_var == 0
    _, inverse, counts = np.unique(data.X[exact], axis=0, return_inverse=True, return_counts=True)
    if (counts <= 1).all():
        return False
    same: Array = data.y[exact]
    groups = [same[inverse.ravel() == group] for group in np.flatnonzero(counts > 1)]
    return any(np.ptp(values) > 0 for values in groups)
