"""Other estimates of the same integral, to compare with.

Every method takes sources, a measure and a budget as `amsbq.integrate` does, and returns the same kind of `Result`.
Where a method has no error bar, the standard deviation is NaN.
"""

from collections.abc import Callable

from ..results.result import Result
from .bayesian import vanilla_bq
from .control_variates import control_variate
from .monte_carlo import monte_carlo, percentile, quasi_monte_carlo, secondary_only

BASELINES: dict[str, Callable[..., Result]] = {
    "vanilla BQ": vanilla_bq,
    "percentiles": percentile,
    "Monte Carlo": monte_carlo,
    "quasi Monte Carlo": quasi_monte_carlo,
    "secondary only": secondary_only,
    "control variate": control_variate,
}

__all__ = [
    "BASELINES",
    "control_variate",
    "monte_carlo",
    "percentile",
    "quasi_monte_carlo",
    "secondary_only",
    "vanilla_bq",
]
