"""Gaussian processes as dictionaries of JSON types, and back: `gp_to_dict` and `gp_from_dict`."""

from __future__ import annotations

from typing import Any

from ..measures.adapters import measure_from_dict
from .coregionalisation import Term
from .kernels import RBF, Constant, Kernel, Matern
from .posterior import MultiSourceGP


def gp_to_dict(gp: MultiSourceGP) -> dict[str, Any]:
    """Return all arguments of a `MultiSourceGP` as dictionaries, lists, text and numbers."""
    return {
        "class": "MultiSourceGP",
        "terms": [{"B": term.B.tolist(), "kernel": kernel_to_dict(term.kernel)} for term in gp.terms],
        "measure": gp.measure.to_dict(),
        "noise": gp.noise.tolist(),
        "mean": gp.mean.tolist(),
    }


def gp_from_dict(content: dict[str, Any]) -> MultiSourceGP:
    """Return the Gaussian process of which `gp_to_dict` made ``content``; ValueError if it cannot be rebuilt."""
    if content.get("class") != "MultiSourceGP":
        raise ValueError(f"there is no model of class {content.get('class')!r}")
    terms = [Term(term["B"], kernel_from_dict(term["kernel"])) for term in content["terms"]]
    return MultiSourceGP(terms, measure_from_dict(content["measure"]), content["noise"], content["mean"])


def kernel_to_dict(kernel: Kernel) -> dict[str, Any]:
    """Return the class and the arguments of a kernel.

    >>> kernel_to_dict(Matern(2.5, [0.1, 2.0]))
    {'class': 'Matern', 'nu': 2.5, 'lengthscales': [0.1, 2.0]}
    """
    if type(kernel) is RBF:
        return {"class": "RBF", "lengthscales": kernel.lengthscales.tolist()}
    if type(kernel) is Matern:
        return {"class": "Matern", "nu": kernel.nu, "lengthscales": kernel.lengthscales.tolist()}
    if type(kernel) is Constant:
        return {"class": "Constant"}
    return {"class": type(kernel).__name__, "text": repr(kernel)}  # of the user: it can be compared, not rebuilt


def kernel_from_dict(content: dict[str, Any]) -> Kernel:
    """Return the kernel of which `kernel_to_dict` made ``content``; ValueError if it cannot be rebuilt.

    >>> kernel_from_dict({"class": "RBF", "lengthscales": 0.3})
    RBF(0.3)
    """
    if content["class"] == "RBF":
        return RBF(content["lengthscales"])
    if content["class"] == "Matern":
        return Matern(content["nu"], content["lengthscales"])
    if content["class"] == "Constant":
        return Constant()
    raise ValueError(f"a kernel of class {content['class']!r} cannot be rebuilt: it is not one of amsbq's own")
