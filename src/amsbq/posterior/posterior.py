"""`Posterior`: the posterior of one output or of several, as a weighted mixture of conditioned components."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..common.validation import Array
from ..gp.posterior_batch import PosteriorBatch
from ..measures.base import Measure
from .basis import Basis
from .channel import Channel, score
from .component import Component
from .estimate import Estimate
from .estimates import AnyEstimate, Estimates
from .latent import SETTINGS as LATENT
from .latent import Latent, LeftOut, Members, averaged
from .nodes import Nodes
from .transforms import Transform

#: minimum number of posteriors of a channel that decisions use
FEWEST_DECIDING = 2


class Deciding(NamedTuple):
    """Basis of decisions: the posteriors of a channel, its weight, and the outputs to which it contributes."""

    posteriors: PosteriorBatch
    weights: Array  # of these posteriors, (K,)
    weight: float
    outputs: Sequence[int]
    important: int  # the output in which it weighs most, and its component
    component: Component
    members: Latent  # the members of that component that decisions use


class View(NamedTuple):
    """The integral by a part of the mixture: weight, mean and standard deviation."""

    weight: float
    mean: float
    std: float


@dataclass(frozen=True)
class Posterior:
    """The posterior of M outputs.

    Attributes
    ----------
    measure : Measure
        The distribution of the inputs.
    channels : tuple of Channel or None
        The channels of which outputs are made; None for a channel that was never observed.
    basis : Basis
        The composition of outputs from channels.
    transforms : tuple of Transform, or None
        Transforms of outputs that are made of several channels; None if each channel has its own.
    known : tuple of bool
        Whether the primary source has a value of each output, without which its integral is unknown.
    names : tuple of str or None
        Names of the outputs, if there are several.
    """

    measure: Measure
    channels: tuple[Channel | None, ...]
    basis: Basis
    transforms: tuple[Transform, ...] | None
    known: tuple[bool, ...]
    names: tuple[str, ...] | None

    def __getitem__(self, output: int) -> Posterior:
        """Return the posterior of one of the outputs."""
        used, one = self.basis.of_channels(output), self.basis.of_output(output)
        found = Posterior(
            self.measure,
            tuple(self.channels[r] for r in used),
            replace(one, loadings=one.loadings[:, used]),
            None if self.transforms is None else (self.transforms[output],),
            (self.known[output],),
            None,
        )
        found.__dict__["_outputs"] = [self._outputs[output]]  # keeps results that are already cached
        return found

    @property
    def n_sources(self) -> int:
        """The number of modelled sources: 1 if all channels leave the others out."""
        return max(channel.n_sources for channel in self.channels if channel is not None)

    @cached_property
    def whole(self) -> Posterior:
        """The posterior by the alternatives with the most sources."""
        if all(channel is None or channel.whole is channel for channel in self.channels):
            return self
        return replace(self, channels=tuple(None if channel is None else channel.whole for channel in self.channels))

    @property
    def secondary_weight(self) -> float:
        """The weight of alternatives with secondary sources, from 0 to 1, averaged over channels."""
        known = [channel for channel in self.channels if channel is not None]
        counted = (each.weight for channel in known for each in channel.alternatives if each.n_sources > 1)
        return sum(counted) / len(known)

    def includes(self, source: int) -> bool:
        """Return whether all outputs model a source."""
        return all(channel is None or channel.n_sources > source for channel in self.channels)

    @cached_property
    def _outputs(self) -> list[list[Component]]:
        """The components of each output; none if it was never observed."""
        if self.transforms is None:
            used = [self.channels[r] for (r,) in map(self.basis.of_channels, range(len(self.known)))]
            return [[] if each is None else [one.component for one in each.alternatives] for each in used]
        processes, basis = [channel.process for channel in self.channels if channel is not None], self.basis
        members = Members.of(processes)
        columns = zip(basis.loadings, basis.centre.tolist(), basis.rest.tolist(), basis.error.tolist(), strict=True)
        latents = [Latent.sum_of(members, processes, *column) for column in columns]
        pairs = zip(self.transforms, latents, strict=True)
        made = [Component(1.0, transform, latent, self.measure) for transform, latent in pairs]
        if all(transform.affine for transform in self.transforms):
            return [[component] for component in made]
        common = _common_nodes(self.measure, made)
        return [[replace(component, common=common)] for component in made]

    @property
    def components(self) -> list[Component]:
        """The components of the only output, the largest weight first."""
        (only,) = self._outputs
        return only

    @cached_property
    def estimate(self) -> AnyEstimate:
        """The estimate of the primary source's integral, or of those of several outputs."""
        found = [
            mixed(some, [component.integral for component in some]) if known and some else Estimate.unknown()
            for some, known in zip(self._outputs, self.known, strict=True)
        ]
        return found[0] if self.names is None else Estimates(found, self.names)

    def predict(self, source: int, X: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source at each X_i: (n,) each, or (n, M) with several outputs.

        They are NaN for outputs that leave the source out.
        """
        nothing = np.full(len(X), np.nan), np.full(len(X), np.nan)
        including = [[c for c in some if source < c.latent.n_sources] for some in self._outputs]
        found = [_together(some, [c.predict(source, X) for c in some]) if some else nothing for some in including]
        if self.names is None:
            return found[0]
        mean, std = (np.column_stack(columns) for columns in zip(*found, strict=True))
        return mean, std

    def main_effect(self, source: int, input: int, t: Array) -> tuple[Array, Array]:
        """Return the mean and standard deviation of a source as a function of one input, at t (m, 1): (m,) each."""
        including = [c for c in self.components if source < c.latent.n_sources]
        return _together(including, [c.main_effect(source, input, t) for c in including])

    def under(self, other: Measure) -> Estimate:
        """Return the integral of the primary source under another measure of the same inputs."""
        return mixed(self.components, [component.under(other) for component in self.components])

    def given(self, inputs: Sequence[int], t: Array) -> Estimates:
        """Return the average of the primary source over all other inputs, for values t (m, k) of k inputs."""
        by_component = zip(*(component.given(inputs, t) for component in self.components), strict=True)
        return Estimates([mixed(self.components, found) for found in by_component])

    def deciding(self, weights: Array, every: int = 1) -> list[Deciding]:
        """Return the bases of decisions, for outputs with weights (M,).

        All channels together have about one in ``every`` of the posteriors that a single channel would have.
        """
        shares = self.basis.shares(self._stds) if self.transforms is not None else np.eye(len(self.known))
        known = [(r, channel) for r, channel in enumerate(self.channels) if channel is not None]
        found = []
        for r, channel in known:
            fewest = FEWEST_DECIDING if len(known) + len(channel.leading) > 2 else 1
            important = int(np.argmax(weights * shares[:, r]))
            for i, weight in channel.leading:
                most = max(round(weight * LATENT.deciding / (every * len(known))), fewest)
                process = Latent.of(channel.alternatives[i].process).thinned(most)
                component = self._outputs[important][i]
                members, weight = component.latent.thinned(most), weight * float(weights @ shares[:, r])
                of = self.basis.outputs_of(r)
                found.append(Deciding(process.parts[0], process.weights, weight, of, important, component, members))
        return found

    def shrinkage(self, ratios: Array) -> Array:
        """Return the factor by which the standard deviation of each integral shrinks, (M,), NaN where unknown.

        The ratios are the factors on the variance of the integral, one for each entry of `deciding`.
        """
        left, every = iter(ratios.tolist()), []
        for channel in self.channels:
            some = () if channel is None else channel.leading
            every.append(sum(weight * next(left) for _, weight in some) if some else np.nan)
        return self.basis.shrinkage(self._stds, np.array(every))

    @cached_property
    def _stds(self) -> Array:
        """The standard deviation of the integral of each channel, shape (R,)."""
        return np.array(
            [np.nan if each is None else each.alternatives[0].component.integral.std for each in self.channels]
        )

    def views(self) -> list[View]:
        """Return the integral by parts of the mixture: by components, or by the structures of the only component."""
        if len(self.components) > 1:
            found = [component.integral for component in self.components]
            return [View(c.weight, each.mean, each.std) for c, each in zip(self.components, found, strict=True)]
        ((component,), latent) = self.components, self.components[0].latent
        if not component.transform.affine or np.isinf(latent.tails):
            return []
        (means, stds), level, spread = latent.integral(), latent.levels[latent.target], latent.spreads[latent.target]
        views = []
        for group in np.unique(latent.groups):
            of = latent.groups == group
            weight = float(latent.weights[of].sum())
            mean, variance = averaged((means[of, None], stds[of, None] ** 2), latent.weights[of] / weight)
            views.append(View(weight, float(level + spread * mean[0]), float(spread * np.sqrt(variance[0]))))
        return views

    def left_out(self) -> LeftOut:
        """Return all values of the only output, each with its prediction from all others.

        The predictions are by the component with the largest weight among those with the most sources.
        """
        return self.whole.components[0].latent.thinned(LATENT.deciding).leave_one_out()

    def primary_score(self) -> float:
        """Return a score of the predictions of primary values from all other values; larger is better.

        This is their total log density or, for outputs of known range, whose transforms may differ, minus a score.
        """
        component = self.whole.components[0]
        if not component.transform.range.assumed:
            return -score(component, [0])
        left = self.left_out()
        of = left.s == 0
        y, mean, variance = left.y[of], left.means[:, of], left.variances[:, of]
        logs = -0.5 * (y - mean) ** 2 / variance - 0.5 * np.log(2 * np.pi * variance)
        densities = np.logaddexp.reduce(logs, axis=0) - np.log(len(logs))
        slopes = component.transform.slopes_at(component.values_of(0, y, left.X[of])) / component.latent.spreads[0]
        return float(np.sum(densities + np.log(np.abs(slopes))))


def _common_nodes(measure: Measure, components: Sequence[Component]) -> Nodes:
    """Return nodes that several outputs share, denser where any of these varies or is uncertain."""

    def variation(X: Array) -> Array:
        found = np.array([component.variation(X) for component in components])
        return np.asarray((found / np.maximum(found.max(axis=1, keepdims=True), np.finfo(float).tiny)).max(axis=0))

    return Nodes.of(measure, variation)


def mixed(components: Sequence[Component], found: Sequence[Estimate]) -> Estimate:
    """Return the mixture of the estimates of a quantity by all components."""
    if len(found) == 1:
        return found[0]
    weights, ranges = [component.weight for component in components], {each.within for each in found}
    return Estimate(
        np.concatenate([each.centres for each in found]),
        np.concatenate([each.scales for each in found]),
        np.concatenate([weight * each.weights for weight, each in zip(weights, found, strict=True)]),
        min(each.dof for each in found),
        float(np.dot(weights, [each.effective_draws for each in found])),
        ranges.pop() if len(ranges) == 1 else (-np.inf, np.inf),
    )


def _together(components: Sequence[Component], moments: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return mean and standard deviation of a mixture from those of its components, without squares that overflow."""
    (mean, std), total = moments[0], components[0].weight
    for component, (other, its_std) in zip(components[1:], moments[1:], strict=True):
        share = component.weight / (total + component.weight)
        within = np.hypot(np.sqrt(1 - share) * std, np.sqrt(share) * its_std)
        std = np.hypot(within, np.sqrt(share * (1 - share)) * (mean - other))
        mean, total = mean + share * (other - mean), total + component.weight
    return mean, std
