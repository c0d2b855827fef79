"""The public names, which are all imported when one of them is first used: the command line starts without them."""

from . import acquisition
from .api import integrate
from .certificates.certificate import Certificate
from .certification import certify
from .design.evaluations import Evaluation, Query
from .design.forecast import Forecast
from .design.levels import levels
from .design.observations import Observation
from .design.sources import Source
from .estimation import estimate
from .execution.integrator import Integrator
from .execution.journal import JournalError
from .execution.reader import read_result
from .execution.runner import RunInterrupted
from .gp.coregionalisation import Term
from .gp.embeddings import kernel_mean, kernel_variance
from .gp.kernels import RBF, Kernel, Matern
from .gp.posterior import MultiSourceGP, Posterior
from .gp.trends import Constant, Linear
from .measures.adapters import as_measure
from .measures.base import Measure
from .measures.composed import Mixture, Transformed
from .measures.empirical import Empirical
from .measures.gaussian import Gaussian, GaussianCopula
from .measures.product import Independent, Product
from .measures.uniform import Uniform
from .posterior.distribution import OutputDistribution
from .posterior.estimate import Estimate
from .posterior.estimates import Estimates
from .posterior.sensitivity import Sensitivity
from .posterior.targets import Exceedance, Quantile
from .processes.pool import ResilientProcessPool
from .results.findings import Finding, Findings
from .results.result import Result

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
