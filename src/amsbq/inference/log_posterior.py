"""The posterior density of hyperparameters θ, given observations.

Everything is learned in standard units, so that the user's units do not matter: lengthscales are fractions of the
width of the measure, and outputs of each source are in units of a spread around a level. The density is p(θ | y) ∝ p(y
| θ) p(θ), with independent priors that do not depend on how the sources are numbered.

Notation: θ (P,), Θ (K, P) and relations (K, L) as in `layout`.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np

from ..common.validation import Array, read_only
from ..gp.coregionalisation import ModelBatch, TermGroup
from ..gp.data import Data
from ..gp.embeddings import EmbeddingBatch
from ..gp.gram import Evidence
from ..gp.posterior_batch import PosteriorBatch
from ..gp.trends import NO_TRENDS, Linear, Trends, linear_kernel
from ..measures.base import Measure
from ..measures.uniform import Uniform
from .layout import Decoded, Layout
from .locations import near_replicates
from .preparation import StandardUnits, fewest_first, inputs_in_order, noise_of_values
from .structures import ModelPrior, Noise

#: Share of the diagonal added to every Gram matrix while learning. It is the same for every θ, and larger than
#: noise-free data need: a jitter that changes with θ would make the density discontinuous.
LEARNING_JITTER = 1e-10


class LogPosterior:
    """The log posterior density of θ for a model structure, given observations.

    Parameters
    ----------
    prior : ModelPrior
    measure : Measure
    data : Data
        Its ``noise_var`` holds only the known variance of each observation.
    noise : one for each source
        The noise variance of its observations, or "learn".
    integrated : bool
        Whether integrals will be computed: raise ValueError if the kernel has none under the measure.
    constant_primary : bool
        Whether all primary values are equal. The primary source then has noise of the size of the spread, also in
        future values: the density would otherwise grow without bound as the scale shrinks.

    Attributes
    ----------
    layout : Layout
    units : StandardUnits
    """

    def __init__(
        self,
        prior: ModelPrior,
        measure: Measure,
        data: Data,
        noise: Sequence[Noise],
        integrated: bool = True,
        constant_primary: bool = False,
    ) -> None:
        self.prior, self.measure, self.data, self.n_sources = prior, measure.for_learning(), data, len(noise)
        self.learned = np.flatnonzero([level == "learn" for level in noise])
        self.noise = np.array([0.0 if level == "learn" else level for level in noise], dtype=float)
        self.units = StandardUnits.of(
            data, self.n_sources, prior.one_unit, prior.alike, self.measure, noise_of_values(data, noise)
        )
        if prior.spread is not None:
            self.units = StandardUnits(self.units.levels, np.full(self.n_sources, prior.spread))
        self.constant_primary = constant_primary
        if integrated:
            EmbeddingBatch(prior.kernel, self.measure.latent.width[None], self.measure)  # raises
        self.layout = Layout(prior, self.n_sources, measure.dim, self.learned)
        orders = fewest_first(data, self.n_sources), inputs_in_order(data, self.measure)
        self._columns = self.layout.permutation(*map(np.argsort, orders))

    @cached_property
    def _evidence(self) -> Evidence:
        """The log evidence of the observations; large, and not needed for conditioning alone."""
        # derivatives with respect to latent coordinates in units of their widths: the user's units do not matter
        per_width = self.data.sites.per_width(self.measure)
        standard = self.units.standardise(self.data.rescaled(per_width))
        with np.errstate(over="ignore"):  # leads to the error "no hyperparameters fit" in `modes`
            noise_var = self._standard_noise[standard.s] + standard.noise_var
        return Evidence(
            replace(standard.sites, X=self.measure.to_latent(standard.X)),
            standard.y,
            self.prior.kernel,
            self._constant,
            noise_var,
            LEARNING_JITTER,
            self.measure.latent.width,
            self.measure.categorical,
            self._linear.observed(self.measure, standard.sites) / per_width[:, None],
            [term.trend for term in self.prior.terms],
            [term.constant for term in self.prior.terms],
        )

    @cached_property
    def _linear(self) -> Linear:
        """The linear functions of trends."""
        return linear_kernel(self.measure)

    @property
    def _standard_noise(self) -> Array:
        """The given noise variances in standard units, shape (L,)."""
        with np.errstate(over="ignore"):
            declared = np.asarray(self.noise / self.units.spreads / self.units.spreads)
        declared[0] += self.constant_primary
        return declared

    @property
    def _constant(self) -> Array:
        """The prior covariance of the unknown levels of the sources, in standard units, shape (L, L)."""
        if isinstance(self.prior.level, np.ndarray):
            return self.prior.level
        same = np.eye(self.n_sources)
        if self.prior.one_level:
            same[np.ix_(self.prior.alike, self.prior.alike)] = 1.0
        return (self.prior.level or 0.0) ** 2 * same

    def on(self, data: Data) -> LogPosterior:
        """Return the posterior density given other observations, in the same standard units."""
        other = copy(self)
        other.data = data
        other.__dict__.pop("_evidence", None)
        return other

    def log_posterior_and_grad(self, Theta: Array, relations: Array | None = None) -> tuple[Array, Array]:
        """Return log p(y | θ) + log p(θ), shape (K,), and its gradient, shape (K, P).

        The density is that of observations in standard units; it is -inf where it cannot be evaluated. Relations
        between the sources are given for each θ, shape (K, L), or once for all, shape (L,).
        """
        return self._evaluate(Theta, self._relations(relations))

    def log_posterior(self, Theta: Array, relations: Array | None = None) -> Array:
        """Return log p(y | θ) + log p(θ), shape (K,)."""
        return self._evaluate(Theta, self._relations(relations), with_grad=False)[0]

    def primary_log_densities(self, Theta: Array, relations: Array | None = None) -> Array:
        """Return the log density of each primary value given all other observations, in standard units: shape (K, n).

        Values at locations that nearly coincide count as one, their mean: each of them alone would determine the
        others.
        """
        relations = self._relations(relations)
        rows = np.flatnonzero((self.data.s == 0) & ~self.data.sites.differentiated)
        numbers = near_replicates(self.data.X[rows], self.measure)
        groups = [rows[numbers == number] for number in range(numbers.max(initial=-1) + 1)]
        logs = np.empty((len(Theta), len(groups)))
        for part in self._evidence.batches(len(Theta), len(self.prior.terms)):
            of = relations if len(relations) == 1 else relations[part]
            _, group, noise = self._terms(Theta[part], of)
            logs[part] = self._evidence.leave_out(groups, group, noise)
        return logs

    def models(self, Theta: Array, relations: Array | None = None) -> ModelBatch:
        """Return the models with hyperparameters Θ, of outputs in standard units."""
        at = self.layout.decode(Theta, self._relations(relations))
        noise = np.tile(self._standard_noise, (len(at.noise), 1))
        noise[:, self.learned] += at.noise
        group = TermGroup(self.prior.kernel, at.B(), at.scales * self.measure.latent.width)
        constants = np.array([term.constant for term in self.prior.terms])
        constant = self._constant + np.einsum("q,kqij->kij", constants, group.B)
        shares = np.array([term.trend for term in self.prior.terms])
        trends = NO_TRENDS
        if shares.any():
            trends = Trends((self._linear,), (np.einsum("q,kqij->kij", shares, group.B),))
        target = self.prior.target
        return ModelBatch(self.measure, (group,), constant, noise, np.zeros_like(noise), trends, target)

    def condition(self, Theta: Array, relations: Array | None = None) -> PosteriorBatch:
        """Return the posteriors of the sources, in standard units, for each θ."""
        models = self.models(Theta, relations)
        return PosteriorBatch.condition(models, self.units.standardise(self.data), LEARNING_JITTER)

    def prior_draws(self, n: int, seed: int) -> Array:
        """Return n evenly spread draws of θ from the prior, shape (n, P)."""
        return self.layout.from_uniform(self.even_draws(n, seed))

    def even_draws(self, n: int, seed: int) -> Array:
        """Return n points spread evenly over the unit cube, shape (n, P)."""
        return self.permuted(_even_draws(n, self.layout.size, seed))

    def permuted(self, values: Array) -> Array:
        """Return random numbers (n, P) for θ, permuted to match a relabelling of the sources and inputs."""
        return np.asarray(values[:, self._columns])

    def _relations(self, relations: Array | None) -> Array:
        """Return relations of shape (K, L) or (1, L); by default all sources are related."""
        relations = np.ones(self.n_sources) if relations is None else relations
        return relations if relations.ndim == 2 else relations[None]

    def _evaluate(self, Theta: Array, relations: Array, with_grad: bool = True) -> tuple[Array, Array]:
        """Return values (K,) and gradients (K, P); without ``with_grad`` the gradients are meaningless."""
        inside = (Theta >= self.layout.low) & (Theta <= self.layout.high)
        if not inside.all():
            rows = inside.all(axis=1)
            values, gradients = np.full(len(Theta), -np.inf), np.zeros_like(Theta)
            if rows.any():
                of = relations if len(relations) == 1 else relations[rows]
                values[rows], gradients[rows] = self._evaluate(Theta[rows], of, with_grad)
            return values, gradients
        values, gradients = np.empty(len(Theta)), np.empty_like(Theta)
        for part in self._evidence.batches(len(Theta), len(self.prior.terms)):
            of = relations if len(relations) == 1 else relations[part]
            values[part], gradients[part] = self._log_evidence(Theta[part], of, with_grad)
        self.layout.add_log_prior(Theta, values, gradients)
        if not np.isfinite(values.sum()):
            gradients[~np.isfinite(values)] = 0.0
        return values, gradients

    def _terms(self, Theta: Array, relations: Array) -> tuple[Decoded, TermGroup, Array | None]:
        """Return the decoded Θ, their terms, and the learned noise variances, None if there are none."""
        at = self.layout.decode(Theta, relations)
        group = TermGroup(self.prior.kernel, at.B(), at.scales)
        if not len(self.learned):
            return at, group, None
        noise = np.zeros((len(Theta), self.n_sources))
        noise[:, self.learned] = at.noise
        return at, group, noise

    def _log_evidence(self, Theta: Array, relations: Array, with_grad: bool) -> tuple[Array, Array]:
        at, group, noise = self._terms(Theta, relations)
        if not with_grad:
            return self._evidence.log_evidence(group, noise), np.zeros_like(Theta)
        values, gradient = self._evidence.log_evidence_and_grad(group, noise)
        by_log_noise = at.noise * gradient.by_noise[:, self.learned]
        return values, at.gradient(gradient.by_B, gradient.by_log_scales, by_log_noise)


@lru_cache(maxsize=64)
def _even_draws(n: int, dim: int, seed: int) -> Array:
    """Return n points spread evenly over the unit cube, away from its faces."""
    return read_only(np.clip(Uniform(np.zeros(dim), 1.0).sobol(n, seed), 1e-4, 1 - 1e-4))
