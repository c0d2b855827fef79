"""`Learner`: the observations of a run, and the posterior on which decisions and answers are based.

Hyperparameters are refitted on a schedule that depends only on the order in which sources were observed. Between refits
they are kept, and the posterior is conditioned on each new observation. New hyperparameter draws are made at the first
refit, and whenever the number of observations, of all sources or of the primary one, has doubled since. In between,
draws are carried along through all scheduled refits: the posterior after n observations does not depend on when it was
accessed.

Notation: M outputs, N evaluations. An output that is missing in an evaluation, NaN, is not observed there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..common.messages import collected_warnings
from ..common.validation import Array, IntArray, Values, read_only
from ..gp.data import Data
from ..inference.particles import Integrals
from ..inference.structures import Model, Noise
from ..measures.base import Measure
from .basis import SETTINGS as REDUCTION
from .basis import Basis, PrincipalBasis, basis_made_at
from .channel import Channel, ChannelFitter
from .posterior import Posterior
from .schedule import SETTINGS as SCHEDULE
from .schedule import Turns, choice_stage, latest_search
from .transforms import IDENTITY, OutputRange, Shape, Transform


@dataclass(frozen=True)
class _Refit:
    """The channel learned from the first n observations, and the warnings issued by the refit."""

    n: int
    channel: Channel
    warnings: list[str]


class _ChannelLearner:
    """The latest refit of a channel, and the channel conditioned on later observations."""

    def __init__(self, fitter: ChannelFitter, turns: Turns) -> None:
        self.fitter, self.turns = fitter, turns
        self.refit: _Refit | None = None
        self._channel: Channel | None = None
        self._conditioned_on = 0  # number of observations that the channel is conditioned on
        #: numbers of observations at the latest new draws, by the schedule, and at the latest refit
        self._drawn_at = self._carried_to = 0
        self._chosen: list[Shape] | None = None  # the transforms in use, for a known range
        if fitter.model.given:
            self._channel = fitter.learned(Data.empty(fitter.measure.dim))

    def on(self, data: Data, integrals: Integrals) -> Channel | None:
        """Return the channel of the latest scheduled refit, conditioned on all observations.

        None if there are no observations, unless hyperparameters are given.
        """
        n, at = len(data.values.y), self.turns.latest(data.values.s)
        if n and (self.refit is None or self.refit.n != at):
            # Floating-point errors come from proposals that are rejected.
            with np.errstate(all="ignore"):
                self.refit = self._refitted(data.first(at), integrals)
            self._channel, self._conditioned_on = self.refit.channel, at
        if n != self._conditioned_on and self._channel is not None:
            with collected_warnings(), np.errstate(all="ignore"):  # the next refit issues its own
                for k in range(self._conditioned_on, n):  # one by one: rounding must not depend on earlier accesses
                    more = data.first(k + 1)
                    holds = self._channel.holds(more)
                    extended = self._channel.extend(more) if holds else self.fitter.fresh().learned(more, integrals)
                    self._channel, self._conditioned_on = extended, k + 1  # together: an interrupt may come at any time
        return self._channel

    @property
    def chosen(self) -> list[Shape] | None:
        """The transforms in use for a known range; None without one, or before the first refit."""
        return None if self.refit is None or self.fitter.known is None else self.refit.channel.shapes

    def _refitted(self, data: Data, integrals: Integrals) -> _Refit:
        """Return the refit to observations, with draws carried along from refit to refit.

        Draws are new at the first scheduled refit, and when the number of all observations, or of those of the primary
        source, has doubled since. Later scheduled refits that were skipped, for lack of an access or because they took
        place in another process, are made now.
        """
        at, s = len(data.values.y), data.values.s
        drawn_at = self._drawn_at if self._drawn_at <= at else 0
        drawn_at = latest_search(s, self.turns.refits(s, max(drawn_at, 1)), drawn_at)
        before, self._carried_to = self._carried_to, 0  # set again at the end: an interrupt may come at any time
        self._drawn_at = drawn_at
        if not drawn_at <= before < at:
            before = 0
            self.fitter.memory.clear()
        for n in self.turns.refits(s, max(drawn_at, before + 1)):
            chosen = None if n == drawn_at or choice_stage(n) > before else self._chosen
            with collected_warnings() as messages:
                channel = self.fitter.learned(data.first(n), integrals, chosen)
            before, self._chosen = n, None if self.fitter.known is None else channel.shapes
        self._carried_to = at
        return _Refit(at, channel, messages)

    def to_dict(self) -> dict[str, Any] | None:
        """Return the latest refit in JSON-serialisable form; None if there is none."""
        latest = self.refit
        if latest is None:
            return None
        alternatives = latest.channel.to_dict()
        return {"n": latest.n, "alternatives": alternatives, "warnings": latest.warnings}

    def restore(self, content: dict[str, Any], data: Data, integrals: Integrals) -> None:
        """Set the latest refit to one that `to_dict` returned for the same first observations."""
        n, self._drawn_at, self._carried_to = content["n"], 0, 0
        channel = self.fitter.restored(content["alternatives"], data.first(n), integrals)
        self.refit, self._channel, self._conditioned_on = _Refit(n, channel, content["warnings"]), channel, n


class Learner:
    """Observations, and the posterior on which decisions and answers are based.

    Parameters
    ----------
    model : Model
        Its hyperparameters are learned for each output, or given.
    measure : Measure
        The distribution of the inputs.
    noise : list of list of float or "learn"
        Noise variance of each output of each source, shape (M, sources).
    seed : int
        Seed of the hyperparameter draws.
    names : list of str, optional
        Names of the sources in warnings.
    order : list of int, optional
        The sources in order of fidelity; by default those with the fewest observations come first.
    outputs : list of str, optional
        Names of the outputs, if there are several.
    ranges : list of OutputRange or None, optional
        The known range of each output.

    Attributes
    ----------
    integrals : list of Integrals
        Known integrals of sources, for each output.
    """

    def __init__(
        self,
        model: Model,
        measure: Measure,
        noise: Sequence[Sequence[Noise]],
        seed: int,
        names: Sequence[str] | None = None,
        order: Sequence[int] | None = None,
        outputs: Sequence[str] | None = None,
        ranges: Sequence[OutputRange | None] | None = None,
    ) -> None:
        self.measure, self.noise, self.order = measure, noise, order
        self.outputs = None if outputs is None else tuple(outputs)
        self.ranges = list(ranges or [None] * len(noise))
        self.integrals: list[Integrals] = [() for _ in noise]
        self._fitter = ChannelFitter(model, measure, (), seed, names, order)
        self._rows: list[tuple[int, Array, Array, Array, Array]] = []  # source, x, values, variances, gradients
        self._stacked: tuple[Any, ...] | None = None
        self._latest: Posterior | None = None
        self._latest_state: tuple[Any, ...] | None = None  # number of evaluations, and integrals, of `_latest`
        self._whole: tuple[int, Posterior | None] | None = None  # number of evaluations, and the posterior given them
        self._parent: Learner | None = None  # the learner of all outputs, if this is a view of one of them
        self._output = self._seen = 0  # number of that output, and of its values then
        self._reduced = len(noise) > REDUCTION.outputs and not model.given
        self._basis: Basis = Basis.separate(len(noise))
        self._transforms: tuple[Transform, ...] | None = None  # applied before the basis, unless outputs are separate
        self._made_at = 0  # number of evaluations that the basis is made from
        self._channels = [] if self._reduced else self._new_channels(noise, self.ranges)

    def _new_channels(
        self, noise: Sequence[Sequence[Noise]], ranges: Sequence[OutputRange | None]
    ) -> list[_ChannelLearner]:
        """Return the learners of the channels; they take turns with refits."""
        every = math.ceil(len(noise) / SCHEDULE.refits)
        fitter = self._fitter.for_principal_component() if self._reduced else self._fitter
        return [
            _ChannelLearner(replace(fitter.fresh(), noise=levels, known=known), Turns(every, r % every, self._made_at))
            for r, (levels, known) in enumerate(zip(noise, ranges, strict=True))
        ]

    def of_output(self, output: int) -> Learner:
        """Return a learner of one of the outputs, for inspection."""
        view = Learner(
            self._fitter.model,
            self.measure,
            [self.noise[output]],
            self._fitter.seed,
            self._fitter.names,
            self.order,
            ranges=[self.ranges[output]],
        )
        view._parent, view._output, view.integrals = self, output, [self.integrals[output]]
        for source, x, values, variances, slopes in self._rows:
            if np.isfinite(values[output]):
                view.add(source, x, values[output], variances[output], slopes[output])
        view._seen = len(view)
        return view

    def __len__(self) -> int:
        """Return the number of evaluations."""
        return len(self._rows)

    def add(self, source: int, x: Array, value: Values, variance: Values, gradient: Array | None = None) -> None:
        """Add the values (M,) of a source at x (D,), NaN where missing, their variances, and gradients (M, D)."""
        M, D = len(self.noise), self.measure.dim
        slopes = np.full((M, D), np.nan) if gradient is None else np.reshape(gradient, (M, D))
        self._rows.append((source, x, np.reshape(value, M), np.reshape(variance, M), slopes))
        self._stacked = None

    def _arrays(self) -> tuple[IntArray, Array, Array, Array, Array]:
        """Return sources (N,), locations (N, D), values and variances (N, M), and gradients (N, M, D)."""
        if self._stacked is None:
            M, D = len(self.noise), self.measure.dim
            shapes: Any = ((), (D,), (M,), (M,), (M, D))
            columns: Any = zip(*self._rows, strict=True) if self._rows else [()] * len(shapes)
            arrays = [np.array(column).reshape(-1, *shape) for column, shape in zip(columns, shapes, strict=True)]
            self._stacked = tuple(map(read_only, [arrays[0].astype(np.intp), *arrays[1:]]))
        return self._stacked

    @property
    def data(self) -> Data:
        """All observations, in the order in which they were added; with several outputs, values are (N, M)."""
        sources, X, Y, variances, _ = self._arrays()
        return self._observed(0) if self.outputs is None else Data(sources, X, Y, variances)

    def _observed(self, output: int) -> Data:
        """Return the observations of one output."""
        sources, X, Y, variances, gradients = self._arrays()
        return self._values(sources, X, Y[:, output], variances[:, output], gradients[:, output])

    def _values(self, sources: IntArray, X: Array, y: Array, variances: Array, gradients: Array) -> Data:
        """Return the observations of a function of the inputs from values y (N,), NaN where not observed."""
        of = np.isfinite(y)
        return Data(sources[of], X[of], y[of], variances[of]).with_gradients(self.measure, gradients[of])

    def differentiated(self) -> list[int]:
        """Return the source of each evaluation with a gradient of any output."""
        sources, *_, gradients = self._arrays()
        found: list[int] = sources[np.isfinite(gradients).any(axis=(1, 2))].tolist()
        return found

    @property
    def has_primary(self) -> bool:
        """Whether the primary source has a value of any output."""
        return any(self._known())

    def _known(self) -> tuple[bool, ...]:
        sources, _, Y, *_ = self._arrays()
        return tuple(np.isfinite(Y[sources == 0]).any(axis=0).tolist())

    @property
    def posterior(self) -> Posterior | None:
        """The posterior with the hyperparameters of the latest scheduled refits, conditioned on all observations.

        None if there are no observations, unless hyperparameters are given. The first access after an observation may
        take seconds.
        """
        if self._parent is not None and len(self) == self._seen:
            every = self._parent.posterior
            self._latest = self._latest or (None if every is None else every[self._output])
            return self._latest if self._latest is not None and self._latest.components else None
        if self._latest_state != (state := (len(self._rows), *self.integrals)):
            by_channel = self._channel_data()
            pairs = zip(self._channels, by_channel, strict=True)
            self._latest = self._posterior([each.on(*about) for each, about in pairs])
            self._latest_state = state
        return self._latest

    def learned(self, leaves_out: bool | None = None) -> Posterior | None:
        """Return the posterior, learned again from all observations regardless of the schedule."""
        by_channel = self._channel_data(of_all=True)  # first: it may make new channels
        pairs = zip(self._channels, by_channel, strict=True)
        return self._posterior(
            [
                channel.fitter.leaving_out(leaves_out).fresh().learned(*about, channel.chosen)
                if self._learnable(about)
                else None
                for channel, about in pairs
            ]
        )

    def _learnable(self, about: tuple[Data, Integrals]) -> bool:
        """Return whether a channel can be learned: always for one output or a given model, else once it has a value."""
        return self.outputs is None or len(about[0].y) > 0 or self._fitter.model.given

    def without(self, source: int, x: Array, value: float) -> Learner:
        """Return a learner of all evaluations of the only output except one with that source, x and value."""
        other, left = copy(self), list(self._rows)
        del left[next(i for i, row in enumerate(left) if row[0] == source and row[2] == value and (row[1] == x).all())]
        other._rows, other._stacked, other._parent, other._latest_state = left, None, None, None
        return other

    def whole(self) -> Posterior | None:
        """Return the posterior with all sources; if some are left out, it is learned again, which may take seconds."""
        posterior = self.posterior
        if posterior is None or posterior.includes(len(self.noise[0]) - 1):
            return posterior
        if self._whole is None or self._whole[0] != len(self):
            with collected_warnings(), np.errstate(all="ignore"):
                self._whole = len(self), self.learned(leaves_out=False)
        return self._whole[1]

    def _posterior(self, channels: Sequence[Channel | None]) -> Posterior | None:
        if all(channel is None for channel in channels):
            return None
        basis, transforms = self._basis, self._transforms
        known = (True,) if self.outputs is None else self._known()  # a single output has at least a guess
        return Posterior(self.measure, tuple(channels), basis, transforms, known, self.outputs)

    @property
    def alone(self) -> bool:
        """Whether the posterior covers the primary source alone: others are uninformative, or not to be used."""
        posterior = self.posterior
        return posterior is not None and posterior.n_sources < len(self.noise[0])

    def _channel_data(self, of_all: bool = False) -> list[tuple[Data, Integrals]]:
        """Return the observations and known integrals of each channel, by the scheduled basis or one of all data."""
        if not self._reduced:
            return [(self._observed(m), known) for m, known in enumerate(self.integrals)]
        if not self._rows:
            return []
        sources, X, G, variances, slopes = self._before_basis(len(self._rows) if of_all else None)
        scores, noise = self._basis.scores(G, variances)
        gradients = self._basis.slopes(slopes)
        columns = zip(scores.T, noise.T, gradients.swapaxes(0, 1), strict=True)
        return [
            (self._values(sources, X, *column), known)
            for column, known in zip(columns, self._known_scores(), strict=True)
        ]

    def _before_basis(self, made_at: int | None = None) -> tuple[IntArray, Array, Array, Array, Array]:
        """Return all evaluations as values of latent processes; the basis is updated when due."""
        sources, X, Y, variances, gradients = self._arrays()
        at = basis_made_at(sources) if made_at is None else made_at
        if at != self._made_at:
            self._transforms = tuple(
                IDENTITY if known is None else Transform.of(known.plainest, known, y[:at][np.isfinite(y[:at])])
                for known, y in zip(self.ranges, Y.T, strict=True)
            )
        assert self._transforms is not None
        divided = [each.divided(levels) for each, levels in zip(self._transforms, self.noise, strict=True)]
        G, noise, slopes = Y.copy(), variances.copy(), gradients.copy()
        for m, (transform, (declared, _)) in enumerate(zip(self._transforms, divided, strict=True)):
            of = np.isfinite(Y[:, m])
            g = transform.transformed(Data(sources[of], X[of], Y[of, m], variances[of, m]), declared, self.measure)
            G[of, m], noise[of, m] = g.y, g.noise_var
            slopes[of, m] *= transform.slopes_at(Y[of, m])[:, None]
        if at != self._made_at:
            basis = PrincipalBasis.of(sources[:at], G[:at])
            levels = basis.noise([others for _, others in divided])
            self._basis, self._made_at = basis, at
            self._channels = self._new_channels(levels, [None] * len(levels))
        return sources, X, G, noise, slopes

    def _known_scores(self) -> list[Integrals]:
        """Return the known integrals of the principal components, for sources with known integrals of all outputs."""
        by_output = [{source: (value, variance) for source, value, variance in known} for known in self.integrals]
        sources = sorted(set.intersection(*(set(known) for known in by_output)))
        if not sources or not all(transform.affine for transform in self._transforms or ()):
            return [()] * len(self._channels)
        pairs = np.array([[known[source] for known in by_output] for source in sources])
        values, variances = self._basis.scores(pairs[:, :, 0], pairs[:, :, 1])
        columns = zip(values.T.tolist(), variances.T.tolist(), strict=True)
        return [tuple(zip(sources, *column, strict=True)) for column in columns]

    @property
    def refit_warnings(self) -> list[str]:
        """The distinct warnings of the latest refits of all channels; those about one of several outputs name it."""
        found = []
        for r, channel in enumerate(self._channels):
            of = self._basis.outputs_of(r)
            name = f"{self.outputs[of[0]]}: " if self.outputs is not None and len(of) == 1 else ""
            found += [] if channel.refit is None else [f"{name}{message}" for message in channel.refit.warnings]
        return list(dict.fromkeys(found))

    @property
    def refitted_at(self) -> int:
        """The number of evaluations at the latest refit of any channel; 0 before the first."""
        Y, latest = self._arrays()[2], 0
        for r, channel in enumerate(self._channels):
            if channel.refit is not None:
                observed = np.flatnonzero(np.isfinite(Y[:, self._basis.outputs_of(r)]).any(axis=1))
                latest = max(latest, int(observed[channel.refit.n - 1]) + 1)
        return latest

    def fitted(self) -> dict[str, Any] | None:
        """Return the latest refits in JSON-serialisable form, or None if there are none or hyperparameters are given.

        The dictionary has ``n``, the number of evaluations, ``hyperparameters``, and ``warnings``.
        """
        if self._fitter.model.given or all(each.refit is None for each in self._channels):
            return None
        channels = [channel.to_dict() for channel in self._channels]
        return {"n": self.refitted_at, "hyperparameters": {"channels": channels}, "warnings": self.refit_warnings}

    def restore(self, fitted: dict[str, Any]) -> None:
        """Set the latest refits to those that `fitted` returned for the same first evaluations."""
        stored = stored_channels(fitted)
        by_channel = self._channel_data()
        if self._fitter.model.given or len(stored) != len(by_channel):
            return  # from a release with other channels: they are learned again
        contents = zip(self._channels, by_channel, stored, strict=True)
        for channel, (data, integrals), content in contents:
            if content is not None:
                channel.restore(content, data, integrals)
        self._latest_state = None


def stored_channels(fitted: dict[str, Any]) -> list[dict[str, Any] | None]:
    """Return the latest refit of each channel from the result of `Learner.fitted`, perhaps of an earlier release."""
    parameters = fitted["hyperparameters"]
    if "channels" in parameters:
        found: list[dict[str, Any] | None] = parameters["channels"]
        return found
    fits = parameters.get("outputs", [fitted])
    if any(fit is not None and fit["hyperparameters"].get("tempered") for fit in fits):
        return []
    return [None if fit is None else {**fit, "alternatives": _alternatives(fit["hyperparameters"])} for fit in fits]


def _alternatives(parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the hyperparameters stored by a release without alternatives, in the current form."""
    first = {"transform": None, **parameters, "weight": parameters.get("share", 1.0)}
    if "plain" not in parameters:
        return [first]
    return [first, {"transform": None, **parameters["plain"], "weight": 1 - parameters["share"]}]
