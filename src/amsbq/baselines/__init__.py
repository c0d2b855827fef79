"""Other methods for the same integral, to compare with.

In come sources, a measure and a budget, as in `amsbq.integrate`.
Out comes the same kind of `Result`; the standard deviation is NaN where a method has no error bar.
Methods that draw their locations share `sampling_run`; those with a Gaussian process are in `bayesian`.
"""

from collections.abc import Callable

from ..results.result import Result
from .averages import monte_carlo, quasi_monte_carlo, secondary_only
from .bayesian import vanilla_bq
from .control_variates import control_variate
from .percentiles import percentile

#: the methods by the names under which tables and figures show them
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
