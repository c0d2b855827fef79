"""Errors of sources with fidelities: their size, and the exponents with which they shrink."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..common.validation import Array
from .estimate import Estimate
from .latent import integral_means
from .posterior import Posterior, mixed


@dataclass(frozen=True)
class Exponent:
    """The power of a knob with which errors shrink, according to all hyperparameter draws that have it."""

    knob: str
    mean: float
    low: float  #: end of the 95 % interval
    high: float

    def __str__(self) -> str:
        return f"exponent {self.mean:.2f} (95 %: {self.low:.2f} to {self.high:.2f})"


def exponents(posterior: Posterior) -> list[Exponent]:
    """Return the exponents with which errors of the only output shrink, one per knob with several values."""
    found: dict[str, list[tuple[Array, Array]]] = {}
    for member in (m for channel in posterior.whole.channels if channel for m in channel.process.particles.members):
        draws = member.draws
        for knob, at in draws.log_posterior.layout.exponents.items():
            found.setdefault(knob, []).append((draws.Theta[:, at], member.weight * draws.weights))
    return [
        _exponent(knob, *(np.concatenate(rows) for rows in zip(*parts, strict=True))) for knob, parts in found.items()
    ]


def _exponent(knob: str, values: Array, weights: Array) -> Exponent:
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    low, high = (values[order][min(np.searchsorted(below, p * below[-1]), len(values) - 1)] for p in (0.025, 0.975))
    return Exponent(knob, float(values @ weights / below[-1]), float(low), float(high))


def integrals(posterior: Posterior, source: int) -> Estimate:
    """Return the estimate of the integral of a source, for the only output."""
    found, components = [], posterior.whole.components
    for component in components:
        latent = component.latent
        if component.transform.affine:
            means, stds = latent.integral(source)
            found.append(
                latent.of_values(latent.levels[source] + latent.spreads[source] * means, latent.spreads[source] * stds)
            )
        else:
            moments = component.average(source, component.nodes)
            found.append(component.few.of_values(*component.in_user_units(source, *moments), component.transform.ends))
    return mixed(components, found)


def bias(posterior: Posterior, source: int = 0) -> Estimate | None:
    """Return the excess of a source's integral over the target's; None if the output is not linear in both.

    The sources must be levels of one simulator: they have one unit.
    """
    found = []
    for component in posterior.components:
        latent = component.latent
        target, spread = latent.target, latent.spreads[latent.target]
        if not component.transform.affine:
            return None
        moments = []
        for part in latent.parts:
            means = integral_means(part, source) - integral_means(part, target)
            variances = (
                part.integral(source)[1] + part.integral(target)[1] - 2 * part.integral_covariance(source, target)
            )
            moments.append((means, np.maximum(variances, 0.0)))
        means, variances = latent.summed(moments, target, 0.0)
        found.append(latent.of_values(spread * means, spread * np.sqrt(variances)))
    return mixed(posterior.components, found)
