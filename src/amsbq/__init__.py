"""Expected outputs of expensive simulators, with honest error bars, from cheaper approximations.

Active multi-source Bayesian quadrature: `integrate` evaluates an expensive source and its cheaper stand-ins, wherever
it pays most, and returns what is known of the integral of the expensive one. `Integrator` makes the same decisions for
evaluations that are made elsewhere, and `estimate` uses those that are there already.
"""

from importlib import import_module
from types import ModuleType

from . import acquisition
from .api import Integrator, integrate
from .design.accounting import StopReason
from .design.acquisition import AcquisitionName
from .design.forecast import Forecast
from .design.search import Choice
from .design.sources import Source, SourcesLike
from .design.stopping import StopRule
from .estimation import estimate
from .execution.journal import JournalError
from .execution.reader import read_result
from .execution.runner import RunInterrupted
from .gp.coregionalisation import Term
from .gp.embeddings import kernel_mean, kernel_variance
from .gp.kernels import RBF, Kernel, Matern
from .gp.posterior import MultiSourceGP, Posterior
from .gp.trends import Constant, Linear
from .inference.estimate import Estimate
from .inference.structures import ModelName
from .measures.adapters import MeasureLike, as_measure
from .measures.base import Measure
from .measures.composed import Mixture, Transformed
from .measures.empirical import Empirical
from .measures.gaussian import Gaussian, GaussianCopula
from .measures.product import Independent, Product
from .measures.uniform import Uniform
from .outputs.estimates import Estimates
from .outputs.evaluations import Evaluation, Query, Status
from .outputs.observations import Observation
from .processes.pool import ResilientProcessPool
from .quantities.distribution import OutputDistribution
from .quantities.sensitivity import Sensitivity
from .quantities.targets import Exceedance, Quantile, Target
from .results.findings import Finding, Findings
from .results.result import Result

__all__ = [
    "RBF",
    "AcquisitionName",
    "Choice",
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
    "MeasureLike",
    "Mixture",
    "ModelName",
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
    "SourcesLike",
    "Status",
    "StopReason",
    "StopRule",
    "Target",
    "Term",
    "Transformed",
    "Uniform",
    "acquisition",
    "as_measure",
    "estimate",
    "integrate",
    "kernel_mean",
    "kernel_variance",
    "read_result",
]
__version__ = "0.2.0"

#: submodules that are loaded on first use, because they need an extra or are rarely needed
_LAZY = ("baselines", "external", "plots", "report", "stopping")


def __getattr__(name: str) -> ModuleType:
    if name in _LAZY:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
