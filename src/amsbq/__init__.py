"""Expected outputs of expensive simulators, with honest error bars, from cheaper approximations.

Active multi-source Bayesian quadrature: `integrate` evaluates an expensive source and cheaper approximations of it
where they are most informative for their cost, and returns the posterior of the expensive one's integral. `Integrator`
makes the same decisions for evaluations that are made elsewhere, and `estimate` uses existing ones.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .public import *

__all__ = [
    "RBF",
    "Certificate",
    "Constant",
    "Empirical",
    "Estimate",
    "Estimates",
    "Evaluation",
    "Exceedance",
    "Finding",
    "Findings",
    "Forecast",
    "Gaussian",
    "GaussianCopula",
    "Independent",
    "Integrator",
    "JournalError",
    "Kernel",
    "Linear",
    "Matern",
    "Measure",
    "Mixture",
    "MultiSourceGP",
    "Observation",
    "OutputDistribution",
    "Posterior",
    "Product",
    "Quantile",
    "Query",
    "ResilientProcessPool",
    "Result",
    "RunInterrupted",
    "Sensitivity",
    "Source",
    "Term",
    "Transformed",
    "Uniform",
    "acquisition",
    "as_measure",
    "certify",
    "estimate",
    "integrate",
    "kernel_mean",
    "kernel_variance",
    "levels",
    "read_result",
]
__version__ = "0.2.0"

#: submodules that are loaded on first use, because they need an extra or are rarely needed
_LAZY = ("baselines", "external", "gest", "plots", "report", "stopping")


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return import_module(f".{name}", __name__)
    if name in __all__:
        public = import_module(".public", __name__)
        globals().update({each: getattr(public, each) for each in __all__})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "__version__"})
