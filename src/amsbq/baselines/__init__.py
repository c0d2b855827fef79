"""Other methods for the same integral, for comparison.

Like `amsbq.integrate`, they take sources, a measure and a budget, and return a `Result`; its standard deviation is NaN
if a method has no error bar. The arguments of all methods are described in `monte_carlo`; their runs are in
`sampling_run`. Methods for several sources begin with a pilot, and allocate the budget by its results: `multilevel` for
ordered sources, `pilot` for any.
"""

from collections.abc import Callable

from ..results.result import Result
from .averages import monte_carlo, percentile, quasi_monte_carlo, secondary_only
from .bayesian import multilevel_bq, multilevel_bq_estimate, vanilla_bq
from .best_linear import mlblue
from .control_variates import control_variate
from .multifidelity import multifidelity_monte_carlo
from .multilevel import multilevel_monte_carlo

#: the methods, by their names in tables and figures
BASELINES: dict[str, Callable[..., Result]] = {
    "vanilla BQ": vanilla_bq,
    "percentiles": percentile,
    "Monte Carlo": monte_carlo,
    "quasi Monte Carlo": quasi_monte_carlo,
    "secondary only": secondary_only,
    "control variate": control_variate,
    "multilevel Monte Carlo": multilevel_monte_carlo,
    "multifidelity Monte Carlo": multifidelity_monte_carlo,
    "MLBLUE": mlblue,
    "multilevel BQ": multilevel_bq,
}

__all__ = [
    "BASELINES",
    "control_variate",
    "mlblue",
    "monte_carlo",
    "multifidelity_monte_carlo",
    "multilevel_bq",
    "multilevel_bq_estimate",
    "multilevel_monte_carlo",
    "percentile",
    "quasi_monte_carlo",
    "secondary_only",
    "vanilla_bq",
]
