"""What is believed of several outputs: of each by a model of its own, or of all by those of a few components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..gp.posterior_batch import PosteriorBatch
from ..inference.belief import Belief
from ..inference.estimate import Estimate
from ..validation import Array
from .estimates import Estimates
from .reduction import Basis

#: posteriors of each part that decisions are made by, at least
FEWEST_POSTERIORS = 2


@dataclass(frozen=True)
class OutputsBelief:
    """What is believed of M outputs.

    Attributes
    ----------
    names : tuple of str
        Names of the outputs.
    parts : tuple of Belief or None
        One for each output; None where it was never observed.
    known : tuple of bool
        Whether the primary source has a value of each output, without which its integral is unknown.
    """

    names: tuple[str, ...]
    parts: tuple[Belief | None, ...]
    known: tuple[bool, ...]

    #: whether the parts are of components instead of outputs
    reduced: ClassVar[bool] = False

    @cached_property
    def estimate(self) -> Estimates:
        """The integrals of all outputs."""
        pairs = zip(self.parts, self.known, strict=True)
        unknown = Estimate.unknown()
        found = [part.estimate if part is not None and known else unknown for part, known in pairs]
        return Estimates(found, self.names)

    def deciding(self, every: int) -> Iterator[tuple[int, Belief, PosteriorBatch]]:
        """Yield the number and the belief of each part that there is, and some of its posteriors to decide by.

        All parts together have about one in ``every`` of the posteriors that a single output has.
        """
        known = [(m, part) for m, part in enumerate(self.parts) if part is not None]
        for m, part in known:
            n = len(part.posteriors.models)
            most = max(FEWEST_POSTERIORS, n // (every * len(known)))
            yield m, part, part.posteriors.select(slice(None, None, max(n // most, 1)))

    def part_weights(self, weights: Array) -> Array:
        """Return how much each part counts in decisions, from how much each output counts, (M,)."""
        return weights

    def shrinkage(self, ratios: Array) -> Array:
        """Return by what factor the standard deviation of each integral shrinks, (M,), NaN where it is not known.

        The variances of the integrals of the parts that there are shrink by ratios, (parts,).
        """
        found = np.full(len(self.parts), np.nan)
        found[[part is not None for part in self.parts]] = np.sqrt(ratios)
        return found

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of all outputs of a source at each X_i, shape (n, M) each."""
        nothing = np.full(len(X), np.nan), np.full(len(X), np.nan)
        found = [nothing if part is None else part.predict(source, X) for part in self.parts]
        mean, std = (np.column_stack(columns) for columns in zip(*found, strict=True))
        return mean, std


@dataclass(frozen=True)
class ReducedBelief(OutputsBelief):
    """What is believed of M outputs by the components of a basis: the parts are those of the components.

    Attributes
    ----------
    basis : Basis
        The components.
    """

    basis: Basis

    reduced: ClassVar[bool] = True

    @cached_property
    def estimate(self) -> Estimates:
        """The integrals of all outputs."""
        parts = self.basis.integrals([part.estimate for part in self.parts if part is not None])
        pairs = zip(parts, self.known, strict=True)
        return Estimates([part if known else Estimate.unknown() for part, known in pairs], self.names)

    def part_weights(self, weights: Array) -> Array:
        """Return how much each component counts: its shares in the variances of the integrals, weighted."""
        return np.asarray(weights @ self.basis.shares(self._stds))

    def shrinkage(self, ratios: Array) -> Array:
        """Return by what factor the standard deviation of each integral shrinks, (M,), from those of the components."""
        return self.basis.shrinkage(self._stds, ratios)

    @property
    def _stds(self) -> Array:
        return np.array([part.estimate.std for part in self.parts if part is not None])

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of all outputs of a source at each X_i, shape (n, M) each."""
        return self.basis.predicted(*super().predict(source, X))
