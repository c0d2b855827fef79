"""Goals of a run: how accurate each output is to be, and how much each matters for decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..common.validation import Array, brief, positive, positive_number, vector
from ..inference.preparation import is_constant
from ..posterior.estimates import Estimates
from ..posterior.outputs import by_output

#: how much outputs matter: a number for each, in a list or by name
Weights: TypeAlias = Sequence[float] | Mapping[str, float]
#: a number; with several outputs also one for each of them, in a list or by name
Tolerance: TypeAlias = float | Sequence[float] | Mapping[str, float]


@dataclass(frozen=True)
class GoalSettings:
    """How outputs are weighed against each other."""

    #: the smallest weight of an output, as a share of that of the one that is furthest from its goal: what the best
    #: known one gets for nothing from evaluations for the others is still seen
    least_weight: float = 0.1


SETTINGS = GoalSettings()


def checked_weights(weights: Weights, outputs: Sequence[str] | None) -> Array:
    """Return a positive weight for each output, 1 for those that a dictionary leaves out, or raise an error."""
    if outputs is None:
        raise ValueError("weights are for several outputs: name them, as in outputs=['peak', 'time']")
    if isinstance(weights, Mapping):
        weights = [1.0 if each is None else each for each in by_output(weights, outputs)]
    return positive(vector(weights, "weights", len(outputs)), "weights")


def tolerances(
    relative: Tolerance | None, absolute: Tolerance | None, outputs: Sequence[str] | None
) -> tuple[Array, Array]:
    """Return the relative and the absolute tolerance of each output, shape (M,), or of the only one, shape ().

    Zero where there is none. An output that has neither, because dictionaries leave it out, has an infinite one.
    """
    share, size = (_of_outputs(*each, outputs) for each in ((relative, "rel_tol"), (absolute, "abs_tol")))
    if (share >= 1).any():
        raise ValueError(f"rel_tol is a share of the mean, such as 0.05 for 5 %, and below 1, got {brief(relative)}")
    return share, np.where((share == 0) & (size == 0), np.inf, size)


def _of_outputs(given: Tolerance | None, name: str, outputs: Sequence[str] | None) -> Array:
    """Return a tolerance of each output, zero where there is none, or raise an error."""
    if given is None:
        return np.zeros(() if outputs is None else len(outputs))
    if outputs is None:
        return np.array(positive_number(given, name))  # type: ignore[arg-type]
    if isinstance(given, Mapping):
        pairs = zip(outputs, by_output(given, outputs), strict=True)
        return np.array([0.0 if each is None else positive_number(each, f"{name} of {m}") for m, each in pairs])
    return positive(np.broadcast_to(vector(given, name, len(outputs)), len(outputs)), name)


def constant(values: Array) -> NDArray[np.bool_]:
    """Return whether each output has had one value only, in several of the evaluations (n, M): shape (M,)."""
    return np.array([len(y := column[np.isfinite(column)]) > 1 and is_constant(y) for column in values.T], dtype=bool)


def spreads(values: Array) -> Array:
    """Return the standard deviation of the values (n, M) of each output, shape (M,), without those that are NaN."""
    return np.array([np.std(y[np.isfinite(y)]) if np.isfinite(y).any() else 0.0 for y in values.T])


@dataclass(frozen=True)
class Goals:
    """The goals of M outputs, or of one.

    Attributes
    ----------
    relative, absolute : (M,) or () array, or None
        Tolerances: shares of the means, and numbers in the units of the integrals, of which the larger one counts. By
        default all outputs are to reach the same relative accuracy.
    importance : (M,) array or None
        How much each output matters to the user; by default all matter equally.
    """

    relative: Array | None = None
    absolute: Array | None = None
    importance: Array | None = None

    @classmethod
    def of(
        cls,
        relative: Tolerance | None,
        absolute: Tolerance | None,
        weights: Weights | None,
        outputs: Sequence[str] | None,
    ) -> Self:
        """Return the goals that tolerances and weights describe, each optional, or raise an error."""
        importance = None if weights is None else checked_weights(weights, outputs)
        wanted = relative is not None or absolute is not None
        share, size = tolerances(relative, absolute, outputs) if wanted else (None, None)
        return cls(share, size, importance)

    def distances(self, estimates: Estimates, primary: Array) -> Array:
        """Return how far each output is from its goal, shape (M,); infinite where nothing is known.

        That is its standard deviation over its tolerance; without tolerances, over its absolute mean, or over the
        spread of the values of the primary source (n, M) if that is larger.
        """
        mean, std = np.abs(estimates.mean), estimates.std
        if self.relative is not None and self.absolute is not None:
            goal = np.maximum(self.relative * mean, self.absolute)
        else:
            goal = np.fmax(mean, spreads(primary))
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.where(std == 0, 0.0, std / goal)
        return np.where(np.isnan(found), np.inf, found)

    def weights(self, estimates: Estimates, primary: Array) -> Array:
        """Return how much what is learned of each output counts, shape (M,); the largest weight is 1.

        Outputs count by their distances from their goals, so that all of these are reached together. Those that have
        not varied so far count least: there is nothing to learn of them.
        """
        far = self.distances(estimates, primary)
        known = np.isfinite(far)
        furthest = far.max(initial=0.0, where=known) or 1.0
        shares = np.where(constant(primary), 0.0, np.where(known, far, furthest) / furthest)
        weights = np.clip(shares, SETTINGS.least_weight, 1.0) * (1.0 if self.importance is None else self.importance)
        return np.asarray(weights / weights.max())
