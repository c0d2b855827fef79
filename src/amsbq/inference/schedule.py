"""Observations of a run, and the belief that decisions and answers are based on.

Hyperparameters are refitted on a schedule that depends only on which sources were observed in turn. Between two refits
they are kept, and the posteriors are conditioned on each new observation: the belief after n observations does not
depend on when it was looked at before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..gp.data import Data
from ..gp.posterior import MultiSourceGP
from ..measures.base import Measure
from ..messages import collected_warnings
from ..validation import Array, IntArray
from .belief import Belief, FixedBelief, Integrals, LearnedBelief, from_hyperparameters, learn
from .structures import Model, Noise


@dataclass(frozen=True)
class ScheduleSettings:
    """When hyperparameters are refitted."""

    #: observations, and observations of the primary source, up to which they are refitted after each one: a fit to few
    #: changes with every one, and those of the primary source decide between structures
    every_one_until: int = 25
    #: beyond, growth of the number of observations from one refit to the next: refits to n observations then take a
    #: time that grows like that of the last one, not n times as much
    growth: float = 1.08
    #: but at least once in so many observations, as long as there are fewer than that of the primary source: those of
    #: others, of which few are used then, take no longer the more there are
    longest: int = 100
    few_primary: int = 2000


SETTINGS = ScheduleSettings()


def scheduled_refit(n: int) -> int:
    """Return the number of observations at the latest scheduled refit, when there are n of them.

    >>> [scheduled_refit(n) for n in (1, 25, 26, 27, 30)]
    [1, 25, 25, 27, 30]
    """
    return latest_stage(n, SETTINGS.every_one_until, SETTINGS.growth)


def latest_stage(n: int, first: int, growth: float) -> int:
    """Return the latest number on a schedule that is at most n: each up to the first, which then grows by a factor.

    >>> [latest_stage(n, 4, 1.25) for n in (0, 3, 4, 5, 6, 7, 100)]
    [0, 3, 4, 5, 5, 7, 91]
    """
    if n <= first:
        return n
    stage = int(math.log(n / first) / math.log(growth))
    at = math.ceil(first * growth**stage)
    return at if at <= n else math.ceil(first * growth ** (stage - 1))


def latest_refit(s: IntArray) -> int:
    """Return the number of observations at the latest refit, from the sources s (n,) of all observations in turn.

    >>> latest_refit(np.array([1] * 27 + [0, 1]))
    28
    """
    primary, at = np.flatnonzero(s == 0), scheduled_refit(len(s))
    if len(primary) < SETTINGS.few_primary:
        at = max(at, len(s) // SETTINGS.longest * SETTINGS.longest)
    few = primary[: SETTINGS.every_one_until]
    return max(at, int(few[-1]) + 1 if len(few) else 0)


@dataclass(frozen=True)
class Turns:
    """Which of the scheduled refits a learner makes, if several learners take turns to keep the time of a step low.

    Attributes
    ----------
    every : int
        How many of them take turns; 1 if each makes all refits.
    phase : int
        The number of the learner among them.
    """

    every: int = 1
    phase: int = 0

    def latest(self, s: IntArray) -> int:
        """Return the number of observations at the latest refit, from the sources s (n,) of all observations in turn.

        All refits to no more observations than take turns are made.

        >>> [Turns(3, 1).latest(np.zeros(n, dtype=int)) for n in range(1, 10)]
        [1, 2, 3, 3, 5, 5, 5, 8, 8]
        """
        n = latest_refit(s)
        while n > self.every and (n + self.phase) % self.every:
            n = latest_refit(s[: n - 1])
        return n


@dataclass(frozen=True)
class _Refit:
    """A belief learned from the first n observations, and the warnings that were issued."""

    n: int
    belief: Belief
    warnings: list[str]


class Learner:
    """Observations, and the belief that decisions and answers are based on.

    Parameters
    ----------
    model : Model or MultiSourceGP
        A model whose hyperparameters are learned, or a Gaussian process that has them.
    measure : Measure
        The distribution of the inputs.
    noise : list of float or "learn"
        Noise variance of each source.
    seed : int
        Seed of the hyperparameter draws.
    names : list of str, optional
        What warnings call the sources.
    order : list of int, optional
        The sources in order of fidelity; by default those with the fewest observations come first.
    turns : Turns
        Which of the scheduled refits it makes; by default all.
    """

    def __init__(
        self,
        model: Model | MultiSourceGP,
        measure: Measure,
        noise: Sequence[Noise],
        seed: int,
        names: Sequence[str] | None = None,
        order: Sequence[int] | None = None,
        turns: Turns | None = None,
    ) -> None:
        self.turns = turns or Turns()
        self.model, self.measure, self.noise, self.seed, self.names = model, measure, noise, seed, names
        self.order = order
        self._data, self._n_values = Data.empty(measure.dim), 0
        #: evaluations that are not in the arrays yet: source, x, value, variance and gradient
        self._new: list[tuple[int, Array, float, float, Array]] = []
        self.integrals: Integrals = ()  #: those of sources that are known
        self._belief: Belief | None = self.learned(self._data) if isinstance(model, MultiSourceGP) else None
        self._conditioned_on = 0  # the number of observations that the belief is conditioned on
        self._refit: _Refit | None = None
        self._whole: tuple[int, Belief] | None = None  # of how many observations, and that belief

    def __len__(self) -> int:
        """Return the number of values."""
        return self._n_values + len(self._new)

    @property
    def data(self) -> Data:
        """All observations, in the order in which they were added."""
        if self._new:
            sources, X, y, variances, gradients = zip(*self._new, strict=True)
            values = Data(np.array(sources, dtype=np.intp), np.array(X), np.array(y), np.array(variances))
            new = values.with_gradients(self.measure, np.array(gradients))
            self._n_values += len(self._new)
            self._data, self._new = self._data.followed_by(new), []
        return self._data

    @property
    def has_primary(self) -> bool:
        """Whether there is a value of the primary source, without which its integral is unknown."""
        return bool((self.data.s == 0).any())

    @property
    def alone(self) -> bool:
        """Whether the belief is on the primary source only: others tell nothing of it, or are not to be used."""
        belief = self.belief
        return belief is not None and belief.posteriors.models.n_sources < len(self.noise)

    def add(self, source: int, x: Array, value: float, variance: float, gradient: Array | None = None) -> None:
        """Add the value of a source at x, shape (D,), the variance of its noise, and its gradient, NaN if not known."""
        self._new.append((source, x, value, variance, np.full(len(x), np.nan) if gradient is None else gradient))

    @property
    def belief(self) -> Belief | None:
        """The belief by the hyperparameters of the latest scheduled refit, conditioned on all observations.

        None if there are no observations, unless hyperparameters are fixed. The first access after an observation may
        take seconds.
        """
        n = len(self)
        at = self.turns.latest(self.data.values.s)
        if n and (self._refit is None or self._refit.n != at):
            self._refit = self._refitted(at)
            self._belief, self._conditioned_on = self._refit.belief, at
        if n != self._conditioned_on and self._belief is not None:
            with collected_warnings(), np.errstate(all="ignore"):  # the next refit issues its own
                for k in range(self._conditioned_on, n):  # one by one: rounding must not depend on earlier accesses
                    extended = self._extended(self._belief, self.data.first(k + 1))
                    self._belief, self._conditioned_on = extended, k + 1  # together: an interrupt may come at any time
        return self._belief

    @property
    def whole(self) -> Belief | None:
        """The belief on all sources: learned once more if some are left out, which may take seconds."""
        if not self.alone:
            return self.belief
        if self._whole is None or self._whole[0] != len(self):
            with collected_warnings(), np.errstate(all="ignore"):
                self._whole = len(self), self.learned_of_all(self.data)
        return self._whole[1]

    @property
    def refit_warnings(self) -> list[str]:
        """The warnings of the latest refit."""
        return [] if self._refit is None else self._refit.warnings

    @property
    def refitted_at(self) -> int:
        """The number of observations at the latest refit; 0 before the first."""
        return 0 if self._refit is None else self._refit.n

    def fitted(self) -> dict[str, Any] | None:
        """Return the latest refit as JSON types, or None if there is none or hyperparameters are fixed.

        The dictionary has ``n``, the number of observations, ``hyperparameters`` and ``warnings``.
        """
        latest = self._refit
        if latest is None or isinstance(self.model, MultiSourceGP):
            return None
        return {"n": latest.n, "hyperparameters": self._hyperparameters(latest.belief), "warnings": latest.warnings}

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set the latest refit to one that `fitted` returned for the same first observations."""
        n, parameters = fitted["n"], fitted["hyperparameters"]
        if isinstance(self.model, MultiSourceGP) or parameters.get("tempered"):  # by a release with another default
            return
        data = self.data.first(n)
        belief = self._remembered(data, parameters)
        self._refit, self._belief, self._conditioned_on = _Refit(n, belief, fitted["warnings"]), belief, n

    def _refitted(self, n: int) -> _Refit:
        # They are issued with the estimate. Floating-point errors are those of proposals that are then rejected.
        with collected_warnings() as messages, np.errstate(all="ignore"):
            belief = self.learned(self.data.first(n))
        return _Refit(n, belief, messages)

    def learned(self, data: Data) -> Belief:
        """Return the belief that is learned from observations."""
        return self._learned_by(self.model, data)

    def _extended(self, belief: Belief, data: Data) -> Belief:
        """Return a belief with the same hyperparameters on more observations; ``data`` begin with the old ones."""
        return belief.extend(data)

    def learned_of_all(self, data: Data) -> FixedBelief | LearnedBelief:
        """Return the belief on all sources, none of which is left out, that is learned from observations."""
        model = self.model if isinstance(self.model, MultiSourceGP) else replace(self.model, leaves_out=False)
        return self._learned_by(model, data)

    def _learned_by(self, model: Model | MultiSourceGP, data: Data) -> FixedBelief | LearnedBelief:
        return learn(model, self.measure, data, self.noise, self.seed, self.names, self.order, self.integrals)

    def _hyperparameters(self, belief: Any) -> dict[str, Any]:
        """Return all that was learned, as plain numbers and lists."""
        assert isinstance(belief, LearnedBelief)
        return belief.hyperparameters()

    def _remembered(self, data: Data, parameters: dict[str, Any]) -> Belief:
        """Return the belief that was learned from the same observations before, from what was learned."""
        assert not isinstance(self.model, MultiSourceGP)
        return from_hyperparameters(self.model, self.measure, data, self.noise, self.seed, parameters, self.integrals)
