"""The numbers of figures of the output beyond its mean: its density with quantiles, and the indices of the inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..inference.estimate import Estimate
from ..measures.base import Measure
from ..messages import collected_warnings
from ..quantities.sensitivity import Sensitivity
from ..results.result import Result
from ..validation import Array

#: probabilities of the quantiles that are drawn and listed
SHOWN_QUANTILES = (0.05, 0.5, 0.95)
#: points of the curve of a density: it is smooth, and each of them takes hundredths of a second
DENSITY_POINTS = 61


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


def output_rows(result: Result, under: Mapping[str, Measure]) -> list[tuple[str, str]]:
    """Return names and values of what is known of the output, as text, and its mean under other distributions."""
    output = result.distribution()
    rows = [("standard deviation", output.std().summary())]
    rows += [(f"{p:.0%} quantile", output.quantile(p).summary()) for p in SHOWN_QUANTILES]
    if (found := indices(result)) is not None:
        rows.append(("inputs", " ".join(found.sentences())))
    return rows + what_if_rows(result, under)


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
