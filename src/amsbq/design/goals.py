"""Goals of a run: the accuracy that each output is to reach, and its weight in decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..common.validation import Array, Values, brief, positive, positive_number, vector
from ..inference.preparation import is_constant
from ..posterior.estimates import Estimates
from ..posterior.outputs import by_output

#: weights of outputs: a number for each, in a list or by name
Weights: TypeAlias = Sequence[float] | Mapping[str, float]
#: a number; with several outputs also one for each of them, in a list or by name
Tolerance: TypeAlias = float | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True)
class GoalSettings:
    """Settings for weighing outputs against each other."""

    #: smallest weight of an output, relative to that of the output farthest from its goal: positive, so that decisions
    #: still take into account what well-known outputs gain from evaluations for others
    least_weight: float = 0.1


SETTINGS = GoalSettings()


def checked_weights(weights: Weights, outputs: Sequence[str] | None) -> Array:
    """Check the weights of outputs and return one for each, shape (M,); 1 for those that a dictionary leaves out."""
    if outputs is None:
        raise ValueError("weights are for several outputs: name them, as in outputs=['peak', 'time']")
    if isinstance(weights, Mapping):
        weights = [1.0 if each is None else each for each in by_output(weights, outputs)]
    return positive(vector(weights, "weights", len(outputs)), "weights")


def tolerances(
    relative: Tolerance | None, absolute: Tolerance | None, outputs: Sequence[str] | None
) -> tuple[Array, Array]:
    """Return the relative and the absolute tolerance of each output, shape (M,), or of the only output, shape ().

    A tolerance that is not given is zero. An output that is missing from both dictionaries has an infinite tolerance.
    """
    share, size = (of_outputs(*each, outputs) for each in ((relative, "rel_tol"), (absolute, "abs_tol")))
    if (share >= 1).any():
        raise ValueError(f"rel_tol is a fraction of the mean, such as 0.05 for 5 %, and below 1, got {brief(relative)}")
    return share, np.where((share == 0) & (size == 0), np.inf, size)


def of_outputs(given: Tolerance | None, name: str, outputs: Sequence[str] | None) -> Array:
    """Check positive numbers and return one for each output, zero where it is not given."""
    if given is None:
        return np.zeros(() if outputs is None else len(outputs))
    if outputs is None:
        return np.array(positive_number(given, name))  # type: ignore[arg-type]
    if isinstance(given, Mapping):
        pairs = zip(outputs, by_output(given, outputs), strict=True)
        return np.array([0.0 if each is None else positive_number(each, f"{name} of {m}") for m, each in pairs])
    return positive(np.broadcast_to(vector(given, name, len(outputs)), len(outputs)), name)


def constant(values: Array) -> NDArray[np.bool_]:
    """Return which outputs have had the same value in all of several evaluations (n, M): shape (M,)."""
    return np.array([len(y := column[np.isfinite(column)]) > 1 and is_constant(y) for column in values.T], dtype=bool)


def spreads(values: Array) -> Array:
    """Return the standard deviation of the values (n, M) of each output, ignoring NaN, shape (M,)."""
    return np.array([np.std(y[np.isfinite(y)]) if np.isfinite(y).any() else 0.0 for y in values.T])


def cheapest(rows: Sequence[tuple[float, Values]], error_cost: Array) -> int:
    """Return the index of the row (cost, std) for which the cost plus that of the standard deviation is least."""
    return int(np.argmin([cost + np.sum(error_cost * std) for cost, std in rows]))


@dataclass(frozen=True)
class Goals:
    """The goals of M outputs, or of one.

    Attributes
    ----------
    relative, absolute : (M,) or () array, or None
        Tolerances: fractions of the means, and numbers in the units of the integrals; the larger one counts. By default
        all outputs are to reach the same relative accuracy.
    importance : (M,) array or None
        The user's weight of each output; by default all are equal.
    error_cost : (M,) or () array, or None
        What a standard deviation of one costs the user, in units of cost.
    """

    relative: Array | None = None
    absolute: Array | None = None
    importance: Array | None = None
    error_cost: Array | None = None

    @classmethod
    def of(
        cls,
        relative: Tolerance | None,
        absolute: Tolerance | None,
        weights: Weights | None,
        error_cost: Tolerance | None,
        outputs: Sequence[str] | None,
    ) -> Self:
        """Check tolerances, weights and costs of errors, each optional, and return the goals."""
        importance = None if weights is None else checked_weights(weights, outputs)
        wanted = relative is not None or absolute is not None
        share, size = tolerances(relative, absolute, outputs) if wanted else (None, None)
        return cls(
            share, size, importance, None if error_cost is None else of_outputs(error_cost, "error_cost", outputs)
        )

    def pays_until(self, rows: Sequence[tuple[float, Values]]) -> float | None:
        """Return the cost of the row (cost, std) of a forecast after which evaluations cost more than they save.

        None if errors have no cost, or if evaluations are worth their cost up to the last row.
        """
        best = None if self.error_cost is None or not len(rows) else cheapest(rows, self.error_cost)
        return None if best is None or best == len(rows) - 1 else rows[best][0]

    def distances(self, estimates: Estimates, primary: Array) -> Array:
        """Return how far each output is from its goal, shape (M,); infinite where the integral is unknown.

        The distance is the standard deviation divided by the tolerance. Without tolerances, it is the cost of the
        standard deviation to the user, if known; otherwise, the standard deviation divided by the absolute mean, or by
        the spread of the values of the primary source (n, M) if that is larger.
        """
        mean, std = np.abs(estimates.mean), estimates.std
        if self.relative is not None and self.absolute is not None:
            goal = np.maximum(self.relative * mean, self.absolute)
        elif self.error_cost is not None:
            goal = np.divide(1.0, self.error_cost, out=np.full(std.shape, np.inf), where=self.error_cost > 0)
        else:
            goal = np.fmax(mean, spreads(primary))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(std == 0, 0.0, std / goal)
        return np.where(np.isnan(found), np.inf, found)

    def weights(self, estimates: Estimates, primary: Array) -> Array:
        """Return the weight of each output in decisions, shape (M,); the largest weight is 1.

        Weights are proportional to the distances from the goals, so that all goals are reached together. Outputs that
        have not varied so far have the smallest weight, because there is nothing to learn about them.
        """
        far = self.distances(estimates, primary)
        known = np.isfinite(far)
        furthest = far.max(initial=0.0, where=known) or 1.0
        shares = np.where(constant(primary), 0.0, np.where(known, far, furthest) / furthest)
        weights = np.clip(shares, SETTINGS.least_weight, 1.0) * (1.0 if self.importance is None else self.importance)
        return np.asarray(weights / weights.max())
