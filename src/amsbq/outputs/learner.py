"""Observations of several outputs, and the beliefs about each of them that decisions and answers are based on.

Notation: M outputs, N evaluations. An output that is missing in an evaluation, NaN, is not observed there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..gp.data import Data
from ..gp.posterior import MultiSourceGP
from ..inference.belief import Integrals
from ..inference.schedule import Learner, Turns
from ..inference.structures import Model, Noise
from ..measures.base import Measure
from ..validation import Array, Values, non_negative, read_only
from .beliefs import OutputsBelief


@dataclass(frozen=True)
class OutputsSettings:
    """How much is learned after each evaluation."""

    #: outputs whose hyperparameters are refitted after an evaluation; if there are more, they take turns, so that a
    #: step with ten outputs takes no more than about three times as long as with one
    refits: int = 2


SETTINGS = OutputsSettings()


def output_data(
    measure: Measure,
    n_sources: int,
    sources: ArrayLike,
    X: ArrayLike,
    Y: ArrayLike,
    noise_var: ArrayLike | None,
    outputs: Sequence[str],
) -> list[Data]:
    """Return the observations of each output that a user has passed as Y (N, M), without those that are NaN.

    The known variances of their noise are (N,) or (N, M). Raise an error that says what is wrong with them.
    """
    values = np.asarray(Y)
    if values.dtype.kind not in "fiu":
        raise TypeError(f"y must be real numbers, got dtype {values.dtype}")
    points = measure.check_points(X)
    if values.shape != (len(points), len(outputs)):
        raise ValueError(
            f"y must have shape ({len(points)}, {len(outputs)}), one row for each of X and one column for each output, "
            f"got shape {values.shape}"
        )
    if np.isinf(values).any():
        raise ValueError("y must be finite, or NaN where an output has no value; got inf")
    given = np.asarray(0.0 if noise_var is None else noise_var, dtype=float)
    known = np.broadcast_to(given[:, None] if given.ndim == 1 else given, values.shape)
    found = []
    for y, variances in zip(values.T, known.T, strict=True):
        rows = ~np.isnan(y)
        checked = Data.checked(
            measure, n_sources, sources, points, np.where(rows, y, 0.0), non_negative(variances, "noise_var")
        )
        found.append(checked.rows(rows))
    return found


class OutputsLearner:
    """Observations of M outputs at the same locations, and a `Learner` of each.

    Parameters
    ----------
    outputs : list of str
        Names of the outputs.
    model : Model or MultiSourceGP
        The model of each output: its hyperparameters are learned from its values, unless it has them.
    measure : Measure
        The distribution of the inputs.
    noise : list of list of float or "learn"
        Noise variance of each output of each source, shape (M, sources).
    seed : int
        Seed of the hyperparameter draws.
    names : list of str
        What warnings call the sources.
    order : list of int or None
        The sources in order of fidelity.
    kind : class
        What learns each output.
    """

    def __init__(
        self,
        outputs: Sequence[str],
        model: Model | MultiSourceGP,
        measure: Measure,
        noise: Sequence[Sequence[Noise]],
        seed: int,
        names: Sequence[str],
        order: Sequence[int] | None,
        kind: type[Learner] = Learner,
    ) -> None:
        self.outputs, self.dim, self.order = tuple(outputs), measure.dim, order
        self.integrals: Integrals = ()  #: none is known
        self.alone = False  #: all sources are used
        # all outputs are those of the same sources
        self._model = model if isinstance(model, MultiSourceGP) else replace(model, leaves_out=False)
        self._measure, self._noise, self._seed, self._names = measure, noise, seed, names
        self._kind = kind
        self._rows: list[tuple[int, Array, Array, Array]] = []
        self._learners = self._new_learners(noise)

    def _new_learners(self, noise: Sequence[Sequence[Noise]]) -> list[Learner]:
        """Return a learner for each list of the noise variances of all sources; they take turns with refits."""
        every = math.ceil(len(noise) / SETTINGS.refits)
        return [
            self._kind(self._model, self._measure, levels, self._seed, self._names, self.order, Turns(every, m % every))
            for m, levels in enumerate(noise)
        ]

    def of_output(self, output: int) -> Learner:
        """Return the learner of one output alone."""
        return self._learners[output]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def data(self) -> Data:
        """All evaluations in the order in which they were added: values and variances have shape (N, M)."""
        M = len(self.outputs)
        if not self._rows:
            return Data(np.zeros(0, dtype=np.intp), np.zeros((0, self.dim)), np.zeros((0, M)), np.zeros((0, M)))
        sources, X, Y, variances = zip(*self._rows, strict=True)
        return Data(np.array(sources, dtype=np.intp), *(read_only(np.array(each)) for each in (X, Y, variances)))

    @property
    def has_primary(self) -> bool:
        """Whether there is a value of the primary source, of any output."""
        return any(learner.has_primary for learner in self._learners)

    def add(self, source: int, x: Array, value: Values, variance: Values) -> None:
        """Add one evaluation: M values of a source at x, shape (D,), NaN where there is none, and their variances."""
        self._rows.append((source, x, value, variance))
        for learner, y, noise in zip(self._learners, value.tolist(), variance.tolist(), strict=True):
            if np.isfinite(y):
                learner.add(source, x, y, noise)

    @property
    def whole(self) -> OutputsBelief | None:
        """What is believed of all sources, which are all used."""
        return self.belief

    @property
    def belief(self) -> OutputsBelief | None:
        """What is believed of all outputs; None if nothing was observed, unless hyperparameters are fixed."""
        parts = tuple(learner.belief for learner in self._learners)
        known = tuple(learner.has_primary for learner in self._learners)
        return None if all(part is None for part in parts) else OutputsBelief(self.outputs, parts, known)

    @property
    def refit_warnings(self) -> list[str]:
        """The warnings of the latest refit of each output, which they name."""
        named = zip(self.outputs, self._learners, strict=True)
        return [f"{name}: {message}" for name, learner in named for message in learner.refit_warnings]

    @property
    def refitted_at(self) -> int:
        """The number of evaluations at the latest refit of any output; 0 before the first."""
        return max((self._evaluations(m, learner.refitted_at) for m, learner in enumerate(self._learners)), default=0)

    def fitted(self) -> dict[str, Any] | None:
        """Return the latest refits as JSON types, or None if there are none or hyperparameters are fixed.

        The dictionary has ``n``, the number of evaluations, ``hyperparameters``, which has the refit of each output in
        a list, as `Learner.fitted` returns it, and ``warnings``, which these have too.
        """
        fits = [learner.fitted() for learner in self._learners]
        if all(fit is None for fit in fits):
            return None
        return {"n": self.refitted_at, "hyperparameters": {"outputs": fits}, "warnings": self.refit_warnings}

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set the latest refits to those that `fitted` returned for the same first evaluations."""
        for learner, fit in zip(self._learners, fitted["hyperparameters"]["outputs"], strict=True):
            if fit is not None:
                learner.restore(fit)

    def _evaluations(self, output: int, n: int) -> int:
        """Return the number of evaluations after which an output had n values."""
        if not n:
            return 0
        observed = np.flatnonzero(np.isfinite([row[2][output] for row in self._rows]))
        return int(observed[n - 1]) + 1
