"""Expected outputs of expensive simulators, with honest error bars, from cheaper approximations.

Active multi-source Bayesian quadrature: `integrate` evaluates an expensive source and its cheaper stand-ins, wherever
it pays most, and returns what is known of the integral of the expensive one. `Integrator` makes the same decisions for
evaluations that are made elsewhere, and `estimate` uses those that are there already.
"""

from . import acquisition
from .beliefs import estimate
from .coregion import Term
from .embeddings import kernel_mean, kernel_variance
from .estimates import Estimate
from .integrator import Integrator
from .kernels import RBF, Constant, Matern
from .measures import Empirical, Gaussian, Product, Uniform, as_measure
from .model import EvidenceGradient, MultiSourceGP, Posterior
from .recall import read_result
from .records import Evaluation, Forecast, Query
from .result import Result
from .runner import integrate
from .sources import Observation, Source

__all__ = [
    "RBF",
    "Constant",
    "Empirical",
    "Estimate",
    "Evaluation",
    "EvidenceGradient",
    "Forecast",
    "Gaussian",
    "Integrator",
    "Matern",
    "MultiSourceGP",
    "Observation",
    "Posterior",
    "Product",
    "Query",
    "Result",
    "Source",
    "Term",
    "Uniform",
    "acquisition",
    "as_measure",
    "estimate",
    "integrate",
    "kernel_mean",
    "kernel_variance",
    "read_result",
]
__version__ = "0.1.0"
