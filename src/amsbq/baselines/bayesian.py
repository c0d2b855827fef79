"""Bayesian quadrature with one source: Section 2.1 of the paper."""

from __future__ import annotations

from typing import Any

from ..api import integrate
from ..design.sources import SourcesLike, as_sources
from ..measures.adapters import MeasureLike
from ..results.result import Result


def vanilla_bq(sources: SourcesLike, measure: MeasureLike, *, budget: float, **options: Any) -> Result:
    """Estimate the integral by Bayesian quadrature with the primary source alone.

    The function has a Gaussian process prior, and locations are chosen one after the other, where they tell most about
    the integral for their cost. The hyperparameters are those at the mode of their posterior, as in the paper, so that
    the error bar is narrower than that of `amsbq.integrate`.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        As in `amsbq.integrate`; only the first one is evaluated.
    measure : measure, or anything that `amsbq.as_measure` takes
        The distribution of the inputs.
    budget : float
        In units of cost.
    **options
        Further arguments of `amsbq.integrate`, except ``model``.

    Returns
    -------
    Result
        The integral.

    References
    ----------
    O'Hagan, A. (1991). Bayes-Hermite quadrature. Journal of Statistical Planning and Inference 29(3).

    Rasmussen, C. E. and Ghahramani, Z. (2002). Bayesian Monte Carlo. Advances in Neural Information Processing Systems.

    Examples
    --------
    >>> import numpy as np
    >>> result = vanilla_bq(lambda x: np.exp(x[0]), (0, 1), budget=5)
    >>> bool(abs(result.mean - (np.e - 1)) < 1e-3)
    True
    """
    return integrate(as_sources(sources)[:1], measure, budget=budget, model="vbq", **options)
