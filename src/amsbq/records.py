"""What is asked and what came of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .checks import Array


@dataclass(frozen=True, eq=False)
class Query:
    """An evaluation to be made: of which source, where, and what it is expected to cost."""

    id: int
    source: int
    x: Array  # (D,)
    cost: float
    rate: float = math.nan  #: at which it was chosen; none in the initial design


@dataclass(frozen=True, eq=False)
class Evaluation:
    """An evaluation that was made, or failed, and what was known of the integral after it."""

    id: int | None  #: of its query; None for data that were there before
    source: int
    x: Array
    value: float
    variance: float
    cost: float
    status: str  #: "ok" or "failed"
    reason: str  #: why it failed
    mean: float = math.nan  #: of the integral, after it
    std: float = math.nan
