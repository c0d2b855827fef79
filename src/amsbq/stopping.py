"""Stop rules for `amsbq.integrate(..., stop=...)`: functions of the integrator that return a reason or None."""

from .design.stopping import StopRule, evaluations, rate_below, tolerance

__all__ = ["StopRule", "evaluations", "rate_below", "tolerance"]
