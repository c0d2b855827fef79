"""Observations of many outputs, of which a few principal components are learned: see `reduction`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..gp.posterior import MultiSourceGP
from ..inference.schedule import Learner
from ..inference.structures import Model, Noise
from ..validation import Array, Values
from .beliefs import ReducedBelief
from .learner import OutputsLearner
from .reduction import SETTINGS, Basis, basis_made_at


class ReducedLearner(OutputsLearner):
    """Observations of many outputs, and a `Learner` of each principal component of their values.

    The basis is made anew on a schedule that depends only on which sources were observed in turn; all components are
    then learned again.
    """

    _basis: Basis | None = None
    _made_at = 0  #: evaluations that the basis is made from
    _scored = 0  #: evaluations whose components the learners have

    def _new_learners(self, noise: Sequence[Sequence[Noise]]) -> list[Learner]:
        return []  # the components come with the first evaluations

    def of_output(self, output: int) -> Learner:
        """Return a learner of one output alone, which does not use the others."""
        (alone,) = super()._new_learners([self._noise[output]])
        for source, x, values, variances in self._rows:
            if np.isfinite(values[output]):
                alone.add(source, x, float(values[output]), float(variances[output]))
        return alone

    @property
    def has_primary(self) -> bool:
        """Whether there is a value of the primary source, of any output."""
        return any(row[0] == 0 for row in self._rows)

    def add(self, source: int, x: Array, value: Values, variance: Values) -> None:
        """Add one evaluation: M values of a source at x, shape (D,), NaN where there is none, and their variances."""
        self._rows.append((source, x, value, variance))

    @property
    def belief(self) -> ReducedBelief | None:
        """What is believed of all outputs; None if nothing was observed."""
        if not self._rows:
            return None
        basis = self._updated()
        known = tuple(bool(np.isfinite(y).any()) for y in self.data.of_source(0).y.T)
        return ReducedBelief(self.outputs, tuple(part.belief for part in self._learners), known, basis)

    @property
    def refit_warnings(self) -> list[str]:
        """The warnings of the latest refit of each component, each once."""
        return list(dict.fromkeys(message for learner in self._learners for message in learner.refit_warnings))

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set the latest refits to those that `fitted` returned for the same first evaluations."""
        self._updated()
        super().restore(fitted)

    def _updated(self) -> Basis:
        """Return the present basis, whose components the learners then have of all evaluations."""
        data = self.data
        at = basis_made_at(data.s)
        if self._basis is None or at != self._made_at:
            self._basis, self._made_at, self._scored = Basis.of(data.first(at)), at, 0
            self._learners = super()._new_learners(self._component_noise(self._basis))
        new = slice(self._scored, len(data.s))
        scores = self._basis.scores(data.y[new], data.noise_var[new])
        for source, x, values, variances in zip(data.s[new], data.X[new], *scores, strict=True):
            for learner, value, variance in zip(self._learners, values.tolist(), variances.tolist(), strict=True):
                learner.add(int(source), x, value, variance)
        self._scored = len(data.s)
        return self._basis

    def _component_noise(self, basis: Basis) -> list[list[Noise]]:
        """Return the noise variance of each component of each source: learned, if that of any of its outputs is."""
        by_source: list[list[Noise]] = []
        for levels in zip(*self._noise, strict=True):
            known = [level for level in levels if not isinstance(level, str)]
            learned: list[Noise] = ["learn"] * len(basis.sizes)
            by_source.append(learned if len(known) < len(levels) else basis.noise(np.array(known)).tolist())
        return [list(of_component) for of_component in zip(*by_source, strict=True)]

    def _evaluations(self, output: int, n: int) -> int:
        return n  # every evaluation tells of every component


def learner_of(outputs: Sequence[str], model: Model | MultiSourceGP) -> type[OutputsLearner]:
    """Return the kind of learner for several outputs: of each, or of a few components if there are many."""
    many = len(outputs) > SETTINGS.outputs and not isinstance(model, MultiSourceGP)
    return ReducedLearner if many else OutputsLearner
