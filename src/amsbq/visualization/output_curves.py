"""The numbers of figures of outputs: the means of several; the density, quantiles and indices of inputs of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..inference.estimate import Estimate
from ..measures.base import Measure
from ..messages import collected_warnings
from ..outputs.goals import spreads
from ..quantities.sensitivity import Sensitivity
from ..results.result import Result
from ..validation import Array, vector

#: probabilities of the quantiles that are drawn and listed
SHOWN_QUANTILES = (0.05, 0.5, 0.95)
#: points of the curve of a density: it is smooth, and each of them takes hundredths of a second
DENSITY_POINTS = 61
#: outputs from which on those with numbers for names are a profile
SHORTEST_PROFILE = 3


@dataclass(frozen=True)
class SeveralOutputs:
    """The integrals of M outputs, with their 95 % intervals: arrays of shape (M,), NaN where nothing is known."""

    names: tuple[str, ...]
    at: Array | None  #: where each output is, if they are numbers along something; None if each has its own units
    texts: list[str]  #: mean and standard deviation of each, such as "1.00 ± 0.10"
    mean: Array
    low: Array
    high: Array
    scale: Array  #: what is one for the accuracy of an output: its absolute mean, or the spread of its values if larger
    by_spread: NDArray[np.bool_]  #: where the spread is larger

    @property
    def accuracy(self) -> Array:
        """Half of the 95 % interval over the scale."""
        return (self.high - self.low) / (2 * self.scale)

    @property
    def units(self) -> str:
        """What accuracies are relative to, in words."""
        named = [name for name, by_spread in zip(self.names, self.by_spread, strict=True) if by_spread]
        return "the mean" + (f" (of {', '.join(named)}: of the spread of its values)" if named else "")


def several_outputs(result: Result, at: ArrayLike | None = None) -> SeveralOutputs:
    """Return the integrals of all outputs; they are along ``at``, (M,), or along their names if these are numbers."""
    parts = [result.estimate] if result.outputs is None else list(result.estimate)
    names, mean = result.outputs or (result.output or result.names[0],), np.array([part.mean for part in parts])
    texts = [part.summary().partition(" (std)")[0] for part in parts]
    spread = spreads(result.primary_values().reshape(-1, len(parts)))
    scale = np.fmax(np.abs(mean), spread)
    where = _numbers(names) if at is None else vector(at, "at", len(names))
    (low, high), unit = np.array([part.interval() for part in parts]).T, np.where(scale > 0, scale, 1.0)
    return SeveralOutputs(names, where, texts, mean, low, high, unit, spread > np.abs(mean))


def output_table(result: Result) -> list[dict[str, Any]]:
    """Return name, mean, interval and accuracy of each output as text, and the accuracy as a share of the worst one."""
    seen = several_outputs(result)
    worst, rows = max(seen.accuracy.max(initial=0.0, where=np.isfinite(seen.accuracy)), np.finfo(float).tiny), []
    for name, text, part, accuracy, by_spread in zip(
        seen.names, seen.texts, result.estimate, seen.accuracy.tolist(), seen.by_spread, strict=True
    ):
        known = np.isfinite(accuracy)
        of = " of the spread" if by_spread else ""
        rows.append(
            {
                "name": name,
                "mean": text,
                "interval": part.summary().partition("95 % between ")[2],
                "accuracy": f"± {100 * accuracy:.2g} %{of}" if known else "",
                "share": accuracy / worst if known else 0.0,
            }
        )
    return rows


def _numbers(names: Sequence[str]) -> Array | None:
    """Return the numbers that the names of a profile are; None if they are none."""
    try:
        numbers = np.array([float(name) for name in names])
    except ValueError:
        return None
    return numbers if len(names) >= SHORTEST_PROFILE and np.isfinite(numbers).all() else None


@dataclass(frozen=True)
class OutputCurve:
    """The density of the output over a grid t, with its 95 % interval, shape (n,) each, and some of its quantiles."""

    t: Array
    density: Array
    low: Array
    high: Array
    quantiles: dict[float, Estimate]


def output_curve(result: Result) -> OutputCurve:
    """Return the density and the quantiles of the output."""
    output = result.distribution()
    t = output.grid(DENSITY_POINTS)
    density = output.density(t)
    return OutputCurve(t, density.mean, *density.interval(), {p: output.quantile(p) for p in SHOWN_QUANTILES})


def indices(result: Result) -> Sensitivity | None:
    """Return the Sobol' indices of the inputs; None if these depend on each other."""
    it = result.integrator
    return None if it is None or it.measure.marginals is None else result.sensitivity()


def output_rows(result: Result) -> list[tuple[str, str]]:
    """Return names and values of what is known of the output, as text."""
    output = result.distribution()
    rows = [("standard deviation", output.std().summary())]
    rows += [(f"{p:.0%} quantile", output.quantile(p).summary()) for p in SHOWN_QUANTILES]
    if (found := indices(result)) is not None:
        rows.append(("inputs", " ".join(found.sentences())))
    return rows


def what_if_rows(result: Result, under: Mapping[str, Measure]) -> list[tuple[str, str]]:
    """Return the mean of the output under other distributions of the inputs, as text, by their names."""
    rows = []
    for name, measure in under.items():
        with collected_warnings() as warned:
            said = result.under(measure).summary()
        rows.append((f"mean under {name}", "; ".join([said, *warned])))
    return rows


def ends(estimates: dict[float, Estimate]) -> tuple[Array, Array, Array]:
    """Return means of estimates and the lengths of their 95 % intervals below and above, shape (n,) each."""
    means = np.array([estimate.mean for estimate in estimates.values()])
    low, high = np.array([estimate.interval() for estimate in estimates.values()]).T
    return means, np.maximum(means - low, 0.0), np.maximum(high - means, 0.0)
