"""bayesian."""

from __future__ import annotations

from typing import Any

from ..api import integrate
from ..design.sources import as_sources
from ..results.result import Result


def vanilla_bq(sources: Any, measure: Any, **options: Any) -> Result:
    """Bayesian quadrature with the primary source alone, and the most probable hyperparameters.

    Takes what `integrate` takes.
    """
    return integrate(as_sources(sources)[:1], measure, model="vbq", **options)
