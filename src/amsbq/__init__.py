"""Expected outputs of expensive simulators, with honest error bars, from cheaper approximations.

Active multi-source Bayesian quadrature: put a prior over an expensive source and its cheaper stand-ins with
`MultiSourceGP`, condition it on what was observed of any of them, and read off the integral of the expensive one.
"""

from .coregion import Term
from .embeddings import kernel_mean, kernel_variance
from .estimates import Estimate, estimate
from .kernels import RBF, Constant, Matern
from .measures import Empirical, Gaussian, Product, Uniform, as_measure
from .model import EvidenceGradient, MultiSourceGP, Posterior

__all__ = [
    "RBF",
    "Constant",
    "Empirical",
    "Estimate",
    "EvidenceGradient",
    "Gaussian",
    "Matern",
    "MultiSourceGP",
    "Posterior",
    "Product",
    "Term",
    "Uniform",
    "as_measure",
    "estimate",
    "kernel_mean",
    "kernel_variance",
]
__version__ = "0.1.0"
