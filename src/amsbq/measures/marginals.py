"""marginals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from scipy import stats

from ..validation import Array
from .distributions import _known_by_name, describe
from .piecewise import Panels, cut


@dataclass(frozen=True)
class UniformMarginal:
    """The uniform distribution between two numbers."""

    low: float
    high: float


@dataclass(frozen=True)
class NormalMarginal:
    """The normal distribution."""

    mean: float
    sd: float


class NumericMarginal:
    """Any other continuous distribution, cut into panels when it is made."""

    def __init__(self, panels: Panels) -> None:
        self.panels = panels

    @cached_property
    def tabulated(self) -> TabulatedMarginal:
        """The same, for many lengthscales."""
        return TabulatedMarginal(self.panels)


class TabulatedMarginal(NumericMarginal):
    """A marginal for many lengthscales: variances of kernels are interpolated."""

    def __init__(self, panels: Panels) -> None:
        super().__init__(panels)
        self.tables: dict[Any, Array] = {}  #: filled by whoever interpolates


Marginal: TypeAlias = UniformMarginal | NormalMarginal | NumericMarginal


#: marginals that were made of distributions with that description
_MADE: dict[str, NumericMarginal] = {}


MOST_MADE = 64


def _marginal(distribution: Any) -> Marginal:
    kind = getattr(distribution, "dist", None)
    if type(kind) is type(stats.uniform):
        return UniformMarginal(*(float(end) for end in distribution.support()))
    if type(kind) is type(stats.norm):
        return NormalMarginal(float(distribution.mean()), float(distribution.std()))
    if not _known_by_name(kind):
        return NumericMarginal(cut(distribution))
    name = describe(distribution)
    if name not in _MADE:  # the tables that learning makes of it are worth seconds
        if len(_MADE) >= MOST_MADE:
            del _MADE[next(iter(_MADE))]
        _MADE[name] = NumericMarginal(cut(distribution))
    return _MADE[name]
