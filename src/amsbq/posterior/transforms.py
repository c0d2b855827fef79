"""Transforms: sources f as functions f = T(g) of an unbounded process g; the identity if f is unbounded too.

With the distance of a value from its bound, r = (f - low) / unit or (high - f) / unit, or its share r of the range:

    root      r = g²/2                            one bound (Gunter et al. 2014; Chai and Garnett 2019)
    log       r = exp(Δ (1 - exp(-g/Δ)))          one bound, values over orders of magnitude, Δ = 3 or 20
    exp       the same, Δ = 20, for logarithms also 60: linear in g around its mean
    peak      r = exp(q(x)) times that, for logarithms: q is a fitted quadratic function of the inputs
    arcsine   r = (1 - cos g)/2                   two bounds
    logit     r = 1/(1 + exp(-g))                 two bounds, values over orders of magnitude next to one of them
    cut       r = g, cut off at the bounds        values far from them, or functions that are not smooth next to them

The unit is the largest distance of all values. For the log, d log r/dg is one near that value, and decreases with g:
values smaller by a factor exp(-Δ) or more do not stretch the scale of g, and no unseen value is larger by more than a
factor exp(Δ). If sources return logarithms, distances are those of f from zero, and the unit is the exponential of
the largest value, which is never formed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, IntArray, brief, read_only
from ..gp.data import Data
from ..inference.structures import Noise
from ..measures.base import Measure
from .outputs import by_output
from .peak import Quadratic

Kind: TypeAlias = Literal["identity", "root", "log", "exp", "peak", "arcsine", "logit", "cut"]


class Shape(NamedTuple):
    """A transform without its unit: its name in the table above, and Δ for the log."""

    kind: Kind
    tail: float = math.inf


#: for one bound: each predicts best on some of the peaks, likelihoods and concentrations in benchmarks/ranges.py
ONE_BOUND = (Shape("root"), Shape("log", 3.0), Shape("log", 20.0), Shape("exp", 20.0))
TWO_BOUNDS = (Shape("arcsine"), Shape("logit"))
LOGARITHMS = (Shape("root"), Shape("log", 3.0), Shape("exp", 20.0), Shape("exp", 60.0))
PEAK = Shape("peak", 60.0)
CUT = Shape("cut")


@dataclass(frozen=True)
class TransformSettings:
    """Limits beyond which transforms do not distinguish values."""

    #: distance of values at a bound, for log and logit, relative to the smallest other one
    at_bound: float = 0.1
    #: largest logarithm that is distinguished, in units of Δ; and minus the smallest one
    largest: float = 0.95
    smallest: float = 1e5
    rounding: float = 1e-14  #: relative rounding error of trends


SETTINGS = TransformSettings()


@dataclass(frozen=True)
class OutputRange:
    """The range of the values of all sources; one end may be infinite.

    Parameters
    ----------
    low, high : float
        The bounds; both infinite for logarithms.
    log : bool
        Whether sources return the logarithm of a non-negative function, whose integral is the target.
    assumed : bool
        Whether the range is inferred from the values, not declared.
    """

    low: float
    high: float
    log: bool = False
    assumed: bool = False

    @property
    def two_bounds(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def description(self) -> str:
        """The range in words."""
        return "logarithms of a non-negative function" if self.log else f"between {self.low:g} and {self.high:g}"

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The transforms to choose from."""
        return (*LOGARITHMS, PEAK) if self.log else (*(TWO_BOUNDS if self.two_bounds else ONE_BOUND), CUT)

    @property
    def plainest(self) -> Shape:
        """The transform if there are too many outputs to choose one for each."""
        return Shape("exp", 20.0) if self.log else self.shapes[0]

    def check(self, y: ArrayLike) -> None:
        """Raise ValueError if a value is outside the range."""
        values = np.atleast_1d(np.asarray(y, dtype=float))
        outside = (values < self.low) | (values > self.high)
        if outside.any():
            raise ValueError(
                f"the value {values[outside][0]:.6g} is outside output_range, {self.low:g} to {self.high:g}"
            )

    def distances(self, y: Array) -> Array:
        """Return the distances of values from the bound; for logarithms, the values themselves."""
        if self.log:
            return y
        return y - self.low if math.isfinite(self.low) else self.high - y


def checked_range(output_range: Any, log: bool) -> OutputRange | None:
    """Return the range of the outputs, None if it is unbounded; raise ValueError or TypeError if invalid."""
    if log:
        if output_range is not None:
            raise ValueError("log is for sources that return logarithms, whose range is known: no output_range")
        return OutputRange(-math.inf, math.inf, log=True)
    if output_range is None:
        return None
    try:
        low, high = (float(end) for end in output_range)
    except (TypeError, ValueError):
        raise TypeError(f"output_range must be a pair (low, high), got {brief(output_range)}") from None
    if not low < high:
        raise ValueError(f"output_range must be (low, high) with low below high, got {brief(output_range)}")
    return None if math.isinf(low) and math.isinf(high) else OutputRange(low, high)


def _flag(log: Any) -> bool:
    """Return whether sources return logarithms, or raise TypeError."""
    if not isinstance(log, bool | np.bool_):
        raise TypeError(f"log must be True, False, or a dictionary of these by output, got {brief(log)}")
    return bool(log)


def checked_ranges(output_range: Any, log: Any, outputs: Sequence[str] | None) -> list[OutputRange | None]:
    """Return the range of each output, or of the only output; both arguments may be dictionaries by output."""
    if outputs is None:
        if isinstance(output_range, Mapping) or isinstance(log, Mapping):
            raise ValueError("output_range or log is by output: name all of them, as in outputs=['peak', 'time']")
        return [checked_range(output_range, _flag(log))]
    pairs = zip(by_output(output_range, outputs), by_output(log, outputs), strict=True)
    return [checked_range(known, _flag(logarithms or False)) for known, logarithms in pairs]


def range_arguments(ranges: Sequence[OutputRange | None], outputs: Sequence[str] | None) -> dict[str, Any]:
    """Return the arguments of `checked_ranges` in JSON-serialisable form: by output, if there are several."""
    ends = [None if known is None or known.log else [known.low, known.high] for known in ranges]
    logs = [known is not None and known.log for known in ranges]
    if outputs is None:
        return {"output_range": ends[0], "log": logs[0]}
    named = {name: each for name, each in zip(outputs, ends, strict=True) if each is not None}
    return {
        "output_range": named or None,
        "log": {n: True for n, is_log in zip(outputs, logs, strict=True) if is_log} or False,
    }


@dataclass(frozen=True)
class Transform:
    """A function f = T(g), increasing in the distance from the bound; f is in the user's units.

    Attributes
    ----------
    shape : Shape
    range : OutputRange
        The range of f.
    unit : float
        The largest distance of a value from the bound, or the largest logarithm.
    least : float
        The smallest distance, in that unit, that log and logit distinguish from zero.
    trend : Quadratic, optional
        A trend of the logarithms; g models the rest.
    """

    shape: Shape
    range: OutputRange
    unit: float
    least: float
    trend: Quadratic | None = None

    #: whether f is linear in g, so that averages of f have closed forms
    affine: ClassVar[bool] = False

    @classmethod
    def of(cls, shape: Shape, known: OutputRange, y: Array) -> Transform:
        """Return the transform of a shape for values of any source."""
        if known.log:
            return cls(shape, known, float(y.max(initial=-math.inf)) if len(y) else 0.0, 0.0)
        if known.two_bounds:
            unit = known.high - known.low
            share = (y - known.low) / unit
            inner = np.minimum(share, 1 - share)
        else:
            distances = known.distances(y)
            unit = float(distances.max(initial=0.0)) or 1.0
            inner = distances / unit
        smallest = float(inner[inner > 0].min(initial=0.5))
        return cls(shape, known, unit, SETTINGS.at_bound * smallest)

    @property
    def kind(self) -> Kind:
        """Its name in the table above."""
        return self.shape.kind

    @property
    def _by_logs(self) -> bool:
        return self.kind in ("log", "exp", "peak")

    @property
    def linearised(self) -> bool:
        """Whether it is treated as linear around the mean of g."""
        return self.kind in ("exp", "peak")

    @property
    def ends(self) -> tuple[float, float]:
        """The range of the values; infinite if it is assumed, or that of logarithms."""
        return (-math.inf, math.inf) if self.range.assumed else (self.range.low, self.range.high)

    @property
    def cuts(self) -> tuple[float, float]:
        """The values of g beyond which f is at an end of its range; infinite if there are none."""
        if self.kind != "cut":
            return -math.inf, math.inf
        return 0.0, 1.0 if self.range.two_bounds else math.inf

    @property
    def grows(self) -> bool:
        """Whether values grow with g: all but those with an upper bound alone."""
        return self.range.log or math.isfinite(self.range.low) or math.isinf(self.range.high)

    def to_dict(self) -> dict[str, Any] | None:
        """Return shape, unit and least in JSON-serialisable form, and the range if it is not that of the problem."""
        ends = {"range": [self.range.low, self.range.high]} if self.range.assumed else {}
        trend = {} if self.trend is None else {"trend": self.trend.to_dict()}
        return {"shape": list(self.shape), "unit": self.unit, "least": self.least, **ends, **trend}

    @classmethod
    def from_dict(cls, known: OutputRange | None, content: dict[str, Any] | None) -> Transform:
        """Return the transform from the result of `to_dict`, with the problem's range if it has one."""
        if content is None:
            return IDENTITY
        if known is None:
            low, high = content["range"]
            known = OutputRange(low, high, assumed=True)
        trend = Quadratic.from_dict(content["trend"]) if "trend" in content else None
        return cls(Shape(*content["shape"]), known, content["unit"], content["least"], trend)

    def holds(self, data: Data) -> bool:
        """Return whether all values are far enough inside an assumed range not to be at its ends."""
        if not self.range.assumed or np.isinf([self.range.low, self.range.high]).all():
            return True
        return bool((self.range.distances(data.values.y) >= self.least * self.unit).all())

    def to(self, y: Array) -> Array:
        """Return g of values y, any shape."""
        if self._by_logs:
            if self.range.log:
                logs = np.maximum(y - self.unit, -SETTINGS.smallest)
            else:
                logs = np.log(np.maximum(self.range.distances(y) / self.unit, self.least))
            tail = self.shape.tail
            return np.asarray(-tail * np.log1p(-np.minimum(logs / tail, SETTINGS.largest)))
        r = np.exp(y - self.unit) if self.range.log else self.range.distances(y) / self.unit
        if self.kind == "cut":
            return r
        if self.kind == "root":
            return np.sqrt(2 * r)
        if self.kind == "arcsine":
            return np.arccos(1 - 2 * r)
        r = np.clip(r, self.least, 1 - max(self.least, np.finfo(float).epsneg))  # which is less than one
        return np.asarray(np.log(r) - np.log1p(-r))

    def slopes_at(self, y: Array) -> Array:
        """Return dg/dy at values y of any shape; not finite at a bound, where a derivative of y is uninformative."""
        with np.errstate(divide="ignore", invalid="ignore"):
            distances = self.range.distances(y)
            logs = y - self.unit if self.range.log else np.log(distances / self.unit)
            r, apart = np.exp(logs), self.range.log | (logs >= np.log(self.least))
            if self._by_logs:
                share = logs / self.shape.tail
                by_logs = np.where(apart & (share < SETTINGS.largest), 1 / (1 - share), np.nan)
            elif self.kind == "root":
                by_logs = np.sqrt(r / 2)
            elif self.kind == "arcsine":
                by_logs = np.sqrt(r / (1 - r))
            elif self.kind == "logit":
                by_logs = np.where(apart & (1 - r >= self.least), 1 / (1 - r), np.nan)
            else:
                by_logs = np.where(self.range.two_bounds & (r >= 1), np.nan, r)
            if self.range.log:
                return np.asarray(by_logs)
            return np.asarray(by_logs / (distances if math.isfinite(self.range.low) else -distances))

    def back(self, g: Array) -> Array:
        """Return the relative distance r from the bound for any g."""
        if self.kind == "root":
            return 0.5 * g**2
        if self._by_logs:
            with np.errstate(over="ignore"):
                return np.exp(self.log_back(g))
        if self.kind == "arcsine":
            return 0.5 - 0.5 * np.cos(g)
        if self.kind == "cut":
            return np.clip(g, 0.0, 1.0 if self.range.two_bounds else None)
        return np.asarray(0.5 + 0.5 * np.tanh(0.5 * g))

    def slope(self, g: Array) -> Array:
        """Return dr/dg for any g, for a log or an exp."""
        with np.errstate(over="ignore"):
            return np.exp(self.log_back(g) - g / self.shape.tail)

    def log_back(self, g: Array) -> Array:
        """Return log r for any g, where r is the relative distance from the bound; for root, log, exp and peak."""
        if self.kind == "root":
            return 2 * np.log(np.maximum(np.abs(g), np.finfo(float).tiny)) - math.log(2)
        return np.asarray(-self.shape.tail * np.expm1(-g / self.shape.tail))

    def values(self, r: Array) -> Array:
        """Return values in the user's units, from relative distances r; logarithms if sources return them."""
        if self.range.log:
            return self.unit + np.log(np.maximum(r, np.finfo(float).tiny))
        return self.range.low + self.unit * r if math.isfinite(self.range.low) else self.range.high - self.unit * r

    def offsets(self, measure: Measure, s: IntArray, X: Array) -> Array:
        """Return the trend of sources s (n,) at X (n, D), which is added to logarithms: shape (n,)."""
        return np.zeros(len(X)) if self.trend is None else self.trend.values(measure, s, X)

    def divided(self, noise: Sequence[Noise]) -> tuple[tuple[float, ...], list[Noise]]:
        """Return the noise variances that are added to values of f, for each source, and the remaining noise of g."""
        known = tuple(0.0 if isinstance(level, str) else float(level) for level in noise)
        return known, ["learn" if isinstance(level, str) else 0.0 for level in noise]

    def known_integral(self, value: float, variance: float) -> tuple[float, float]:
        """Return the integral of the relative distance r and its variance, from those of f or of its logarithm."""
        if self.range.log:
            r = math.exp(min(value - self.unit, 700.0))
            return r, r * r * variance
        return float(self.range.distances(np.array(value))) / self.unit, variance / self.unit**2

    def transformed(self, data: Data, noise: Sequence[float], measure: Measure) -> Data:
        """Return observations of g, from those of f and the known noise variance of each source.

        Derivatives follow the value to which they belong, as on arrival. A standard deviation becomes half the
        difference between the transformed values one standard deviation above and below.
        """
        f = data.values
        offsets = self.offsets(measure, f.s, f.X)
        y, rounding = (
            f.y - offsets,
            SETTINGS.rounding * offsets,
        )  # residuals of a trend may be nothing but rounding errors
        spread = np.sqrt(f.noise_var + np.array(noise)[f.s] + rounding**2)
        ends = [self.to(np.clip(y + step, self.range.low, self.range.high)) for step in (-spread, spread)]
        variances = np.where(spread > 0, (0.5 * (ends[1] - ends[0])) ** 2, 0.0)
        g = replace(f, y=read_only(self.to(y)), noise_var=read_only(variances))
        if not data.has_gradients:
            return g
        gradients = data.gradients()
        if self.trend is not None:
            gradients = gradients - self.trend.gradients(measure, f.s, f.X)
        with np.errstate(invalid="ignore"):  # next to a bound
            return g.with_gradients(measure, self.slopes_at(y)[:, None] * gradients)


class Identity(Transform):
    """The identity f = g, for values of any size."""

    affine = True

    def to_dict(self) -> None:
        """Return None: the identity has no parameters."""

    def to(self, y: Array) -> Array:
        """Return the values."""
        return y

    def slopes_at(self, y: Array) -> Array:
        """Return ones."""
        return np.ones_like(y)

    def back(self, g: Array) -> Array:
        """Return g."""
        return g

    def values(self, r: Array) -> Array:
        """Return r."""
        return r

    def divided(self, noise: Sequence[Noise]) -> tuple[tuple[float, ...], list[Noise]]:
        """Return no noise of f, and all noise for g."""
        return (0.0,) * len(noise), list(noise)

    def transformed(self, data: Data, noise: Sequence[float], measure: Measure) -> Data:
        """Return the observations unchanged."""
        return data


IDENTITY = Identity(Shape("identity"), OutputRange(-math.inf, math.inf, assumed=True), 1.0, 0.0)
