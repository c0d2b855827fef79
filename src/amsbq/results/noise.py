"""Noise that was not declared: seen in values at the same location, or guessed from all values of a source."""

from __future__ import annotations

import numpy as np

from ..design.integrator import Integrator
from ..gp.posterior import MultiSourceGP
from ..inference.noise import undeclared_noise
from ..inference.preparation import learning, spread_of_repeats
from .analysis import once_per_state


def repeated_noise(it: Integrator) -> dict[int, float]:
    """Return the standard deviation of different values at one location, for each source that was to be without noise.

    Where there are such values, the source has noise for certain.
    """
    spreads = {source: spread_of_repeats(it.learner.data.values.of_source(source)) for source in it._used()}
    return {source: std for source, std in spreads.items() if std > 0 and it.sources[source].noise == 0.0}


@once_per_state
def hidden_noise(it: Integrator) -> dict[int, float]:
    """Return the standard deviation of the noise on each source whose values look as if they had more than declared.

    Those with different values at one location, where nothing is left to guess, are not among them.
    """
    if isinstance(it.model, MultiSourceGP) or it.range is not None:
        return {}
    noise = [it.sources[source].noise for source in it._used()]
    with np.errstate(all="ignore"):
        return undeclared_noise(it.measure, it.learner.data, learning(noise, repeated_noise(it)))
