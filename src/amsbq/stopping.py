"""Stop rules for `amsbq.integrate(..., stop=...)`: functions of the integrator that return a reason or None."""

from .design.evaluations import StopReason
from .design.stopping import StopRule, error_cost, evaluations, rate_below, tolerance

__all__ = ["StopReason", "StopRule", "error_cost", "evaluations", "rate_below", "tolerance"]
