"""Model structures: their terms and the priors of their hyperparameters; and the named models made of them.

The structures of the default, "auto", were chosen by measurement (docs/arena.md). With levels m_l of the sources,
numbered in order of fidelity, a fast process g and a slow process h:

    shared, private   f_l = m_l + A_l (e^{γ/2} (g + √ζ_l c_l) + h + √η_l d_l)    c_l on the scale of g, d_l on that of h
    chain             f_l = m_l + ρ_l (f_{l+1} - m_{l+1}) + δ_l           the last one is A (g + e^{γ/2} h); h and δ_l
                                                                          have linear trends
    star              f_l = m_l + ρ_l (f_0 - m_0) + δ_l                   the primary one is A (g + e^{γ/2} h)
    Richardson        f_l = m_l + A (g + e^{γ/2} h) + s_l (e + √η_l d_l)  with s_l that shrinks from level to level

and, where the sources have known fidelities, numbers h_lk for knobs k that tend to zero with the error,

    refined           f_l = m + A (g + e^{γ/2} h) + Σ_k s_k (h_lk^p_k e_k + r_k h_lk^(p_k + t_k) d_k(h_lk)) + Σ_jk ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from ..common.validation import Array, non_negative_number
from ..gp.coregionalisation import Term
from ..gp.kernels import RBF, Matern, ProductKernel
from ..gp.posterior import MultiSourceGP, gp_to_dict
from ..measures.base import Measure
from .priors import (
    DIFFERENCE,
    PRIORS,
    REFINEMENT,
    SHARED,
    TREND,
    Gamma,
    LogGamma,
    Normal,
    StudentT,
    lengthscale,
    wide_lengthscale,
)

#: the noise on observations of a source: a variance, or "learn"
Noise: TypeAlias = float | Literal["learn"]
Scale: TypeAlias = Callable[[float, int], LogGamma | Normal]
ModelName: TypeAlias = Literal["auto", "icm", "lmc", "ar", "vbq"]


def noise_level(value: Any) -> Noise:
    """Return a noise variance or "learn"; raise an error for anything else."""
    if isinstance(value, str):
        if value != "learn":
            raise ValueError(f"noise must be a variance or 'learn', got {value!r}")
        return "learn"
    return non_negative_number(value, "noise")


@dataclass(frozen=True)
class TermPrior:
    """The priors of the hyperparameters of one term; notation as in `layout`."""

    scale: LogGamma | Normal  #: prior of log λ
    per_dimension: bool = True  #: whether each input has its own lengthscale
    weights: Normal | None = None  #: prior of each w_l; None fixes them to the source's relation
    shared: bool = True  #: whether sources share the term at all
    own: Normal | None = None  #: prior of each log η_l; None fixes η to zero
    gain: Normal | None = None  #: prior of γ, the log of its variance relative to other terms; None fixes it to 0
    among: tuple[int, ...] | None = None  #: the sources that have the term; None means all
    scales_of: int | None = None  #: the earlier term whose lengthscales it shares; None gives it its own
    trend: float = 0.0  #: variance of its linear trend, relative to its own
    constant: float = 0.0  #: variance of its constant, relative to its own
    correlation: Array | None = None  #: C, (L, L); None means that all entries are one


@dataclass(frozen=True)
class Factor:
    """A hyperparameter t that multiplies the amplitudes of sources in terms by e^{t · effect}."""

    prior: Gamma | Normal | StudentT
    effect: Array  #: (Q, L), for each term and source
    start: float = 0.0  #: start of searches, relative to the centre of the prior
    knob: str | None = None  #: the knob whose exponent it is


@dataclass(frozen=True)
class ModelPrior:
    """The terms of a model, and the priors of the scale, the level and the noise of each source."""

    terms: tuple[TermPrior, ...]
    #: factors of the amplitudes; with factors, all sources have one unit
    factors: tuple[Factor, ...] = ()
    #: the kernel of all terms; its lengthscales are ignored
    kernel: ProductKernel = field(default_factory=lambda: RBF(1.0))
    #: prior of each a_l, relative to a spread common to all sources; None takes the scale of each source from its
    #: values
    amplitude: StudentT | None = None
    #: prior standard deviation of each source's unknown level, in units of its spread, or the covariance (L, L) of
    #: these; None fixes levels to the averages
    level: float | Array | None = None
    #: the sources that return the same quantity, and therefore have one unit
    alike: tuple[int, ...] = ()
    one_level: bool = False  #: whether these have one unknown level
    target: int = 0  #: the source whose integral is the target
    #: whether a source may be unrelated to the primary one, or share its terms with the opposite sign
    open_relations: bool = False
    #: prior of a learned log noise variance, in units of the source's squared spread
    log_noise: Normal = field(default_factory=lambda: Normal(float(np.log(1e-4)), 3.0))
    #: (knobs, L): log of each knob of the sources that are alike. Learned noise variances of these are one variance
    #: times a power of each knob
    noise_knobs: Array | None = None
    #: unit of the outputs of all sources; None takes it from the data
    spread: float | None = None

    @property
    def one_unit(self) -> bool:
        """Whether all sources have one unit, the average of their spreads."""
        return self.amplitude is not None or bool(self.factors)


@dataclass(frozen=True)
class Fidelities:
    """Fidelities of sources: numbers that tend to zero with the error, one for each knob of the simulator.

    Attributes
    ----------
    knobs : tuple of str
        Names of the knobs.
    values : tuple of (tuple of float, or None)
        For each source its number for each knob; None for a source without a fidelity.
    limit : bool
        Whether the target is the integral of the limit f(x, 0), an additional, last source without observations.
    """

    knobs: tuple[str, ...]
    values: tuple[tuple[float, ...] | None, ...]
    limit: bool = False

    @property
    def target(self) -> int:
        """The source whose integral is the target."""
        return len(self.values) if self.limit else 0

    @property
    def declared(self) -> tuple[int, ...]:
        """The sources with known fidelities."""
        return tuple(source for source, value in enumerate(self.values) if value is not None)

    @property
    def order(self) -> list[int] | None:
        """The sources from the finest to the coarsest, averaged over knobs; None if one has no fidelity."""
        if None in self.values:
            return None
        coarseness = self.logarithms(len(self.values)).mean(axis=0)
        return [0, *(source for source in np.argsort(coarseness, kind="stable").tolist() if source)]

    def among(self, sources: Sequence[int]) -> Fidelities | None:
        """Return the fidelities of the given sources; None unless the primary source and another one have one."""
        values = tuple(value if source in sources else None for source, value in enumerate(self.values))
        found = replace(self, values=values if self.limit else values[: max(sources) + 1])
        return found if 0 in found.declared and len(found.declared) > 1 else None

    def spread(self, sources: Sequence[int], most: int) -> list[int]:
        """Return some of the sources: all without a fidelity, and up to ``most`` levels that are far from each other.

        The finest level is among them.
        """
        levels = sorted((s for s in sources if s in self.declared), key=lambda s: self.values[s] or (), reverse=True)
        logs = self.logarithms(len(self.values))[:, levels].T
        logs /= np.maximum(np.ptp(logs, axis=0), np.finfo(float).tiny)
        found = [int(logs.sum(axis=1).argmin())] if levels else []
        while len(found) < min(most, len(levels)):
            squares = ((logs[:, None] - logs[found]) ** 2).sum(axis=2).min(axis=1)
            found.append(int(np.round(squares, 9).argmax()))
        chosen = {levels[row] for row in found}
        return [source for source in sources if source in chosen or source not in self.declared]

    def noise_of_all(self, variances: Array) -> Array:
        """Return noise variances of sources (L,), with NaN filled in by a power law of the knobs, fitted to the others.

        The exponents are the most probable ones under their prior. Sources without a fidelity get zero for NaN.
        """
        levels = [source for source in self.declared if source < len(variances)]
        known = [source for source in levels if variances[source] > 0]
        unknown = [source for source in levels if np.isnan(variances[source])]
        found = np.nan_to_num(variances)
        if known and unknown:
            logs = self.logarithms(max(len(variances), len(self.values)))
            away = logs[:, known] - logs[:, known].mean(axis=1, keepdims=True)
            y = np.log(variances[known]) - REFINEMENT.noise.centre * logs[:, known].sum(axis=0)
            prior = np.eye(len(logs)) * (REFINEMENT.scatter / REFINEMENT.noise.spread) ** 2
            slopes = np.linalg.solve(away @ away.T + prior, away @ (y - y.mean())) + REFINEMENT.noise.centre
            middle = np.log(variances[known]).mean()
            at = logs[:, unknown] - logs[:, known].mean(axis=1, keepdims=True)
            found[unknown] = np.exp(middle + slopes @ at)
        return found

    def logarithms(self, n_sources: int) -> Array:
        """Return the log of each knob relative to its largest value, shape (knobs, L); zero without a fidelity."""
        known = np.array([self.values[source] for source in self.declared])
        logs = np.zeros((len(self.knobs), n_sources))
        logs[:, list(self.declared)] = np.log(known / known.max(axis=0)).T
        return logs


@dataclass(frozen=True)
class Model:
    """The structures of a model, and how their hyperparameters are used; or a process with given hyperparameters."""

    name: str
    #: returns one prior for each structure, from the sources in order of fidelity, the primary one first, and the
    #: number of inputs
    structures: Callable[[Sequence[int], int], tuple[ModelPrior, ...]]
    marginalised: bool = True  #: whether to average over hyperparameters; otherwise the most probable ones are used
    secondaries: bool = True  #: whether secondary sources are used
    warped: bool = False  #: whether skewed values may be modelled as exponentials
    #: whether secondary sources that do not improve the prediction of the primary one are left out
    leaves_out: bool = False
    process: MultiSourceGP | None = None  #: the process, if hyperparameters are given
    #: replaces ``structures`` if fidelities are known
    refined: Callable[[Sequence[int], int, Fidelities], tuple[ModelPrior, ...]] | None = None
    fidelities: Fidelities | None = None  #: of the sources; None if unknown

    def priors(self, order: Sequence[int], dim: int) -> tuple[ModelPrior, ...]:
        """Return one prior for each structure, for the sources in order of fidelity and the number of inputs."""
        known = None if self.fidelities is None else self.fidelities.among(order)
        if known is None or self.refined is None:
            return self.structures(order, dim)
        target, order = known.target, [source for source in order if source < len(known.values)]
        alike = (*known.declared, target) if known.limit else known.declared
        logs = known.logarithms(len(order) + known.limit)
        return tuple(
            replace(prior, alike=alike, target=target, noise_knobs=logs) for prior in self.refined(order, dim, known)
        )

    @property
    def given(self) -> bool:
        """Whether hyperparameters are given, so that nothing has to be learned."""
        return self.process is not None

    def check_for(self, n_sources: int, measure: Measure) -> None:
        """Raise ValueError unless the model fits this number of sources and this distribution of the inputs."""
        if self.process is not None:
            self.process.check_for(n_sources, measure)

    def of_sources(self, kept: Sequence[int]) -> ModelName | MultiSourceGP:
        """Return the model of the given sources, in the form in which users pass it."""
        if self.process is None:
            return cast(ModelName, self.name)
        terms = [Term(term.B[np.ix_(kept, kept)], term.kernel) for term in self.process.terms]
        return MultiSourceGP(terms, self.process.measure, self.process.noise[kept], self.process.mean[kept])

    def to_json(self) -> str | dict[str, Any]:
        """Return the name, or the process in JSON-serialisable form."""
        return self.name if self.process is None else gp_to_dict(self.process)


def common_and_own(order: Sequence[int], dim: int, fractions: tuple[float, float] = (0.2, 0.7)) -> ModelPrior:
    """Return the prior of sources that share a fast and a slow process, and have a fast and a slow one each."""
    fast, slow = (lengthscale(fraction, dim) for fraction in fractions)
    return ModelPrior(
        (TermPrior(fast, gain=Normal(0.0, 2.0), own=Normal(-3.0, 1.5)), TermPrior(slow, own=Normal(-3.0, 1.5))),
        amplitude=StudentT(0.0, 0.7, 4.0),
        level=10.0,
        open_relations=True,
    )


def chain(order: Sequence[int], dim: int) -> ModelPrior:
    """Return the prior of Kennedy and O'Hagan's chain: each source is a multiple of the next one plus a difference.

    Sources are in order of fidelity. Differences shrink from level to level, so that those between coarse levels are
    informative about those between fine ones.
    """
    L, n = len(order), len(SHARED)
    # Term n + i is the difference of level L - 2 - i, which all finer levels inherit.
    terms = [TermPrior(wide_lengthscale(fraction, dim)) for fraction in SHARED]
    terms[-1] = replace(terms[-1], trend=TREND)
    inheriting = [tuple(order[: level + 1]) for level in range(L - 2, -1, -1)]
    terms += _differences(wide_lengthscale(DIFFERENCE, dim), inheriting, n, TREND)
    level_of = np.array([L - 1] * n + list(range(L - 2, -1, -1)))  # of each term: the coarsest level that has it
    finer = level_of[:, None] > np.arange(L)  # (Q, L): whether a source inherits the term
    differences = np.arange(len(terms)) - n  # numbered from the coarsest; negative for the shared process
    factors = _shared_process(len(terms), L)
    factors += [Factor(PRIORS.rho, (finer[:, [step]] & (np.arange(L) <= step)).astype(float)) for step in range(L - 1)]
    if L > 1:
        factors.append(Factor(PRIORS.difference, _in_terms(differences >= 0, L), PRIORS.start))
    if L > 2:
        factors.append(Factor(PRIORS.refinement, _in_terms(np.maximum(differences, 0), L)))
        factors += [Factor(PRIORS.step, _in_terms(differences >= i, L)) for i in range(1, L - 1)]
    return ModelPrior(tuple(terms), _by_source(factors, order), level=10.0)


def star(order: Sequence[int], dim: int) -> ModelPrior:
    """Return the prior of a star: each secondary source is a multiple of the primary one plus a difference."""
    L, n = len(order), len(SHARED)
    terms = [TermPrior(LogGamma(fraction, 3.0)) for fraction in SHARED]
    terms += _differences(LogGamma(DIFFERENCE, 3.0), [(source,) for source in order[1:]], n)
    factors = _shared_process(len(terms), L)
    for i in range(1, L):
        shared = (np.arange(len(terms)) < n)[:, None] & (np.arange(L) == i)
        own = _in_terms(np.arange(len(terms)) == n + i - 1, L)
        factors += [Factor(PRIORS.rho, shared.astype(float)), Factor(PRIORS.difference, own, PRIORS.start)]
    return ModelPrior(tuple(terms), _by_source(factors, order), level=10.0)


def richardson(order: Sequence[int], dim: int) -> ModelPrior:
    """Return the prior of levels with a common error that shrinks from level to level, plus a specific part."""
    L, n = len(order), len(SHARED)
    terms = [TermPrior(lengthscale(fraction, dim)) for fraction in SHARED]
    terms.append(TermPrior(lengthscale(DIFFERENCE, dim), own=Normal(-4.0, 2.0)))
    finer = L - 1 - np.arange(L)  # number of levels by which each is finer than the coarsest
    error = (np.arange(len(terms)) == n)[:, None]
    factors = _shared_process(len(terms), L)
    factors.append(Factor(PRIORS.difference, 0.5 * (error & (finer >= 0)), PRIORS.start))
    factors.append(Factor(PRIORS.refinement, 0.5 * error * finer))
    factors += [Factor(PRIORS.step, 0.5 * (error & (finer >= i))) for i in range(1, L)]
    return ModelPrior(tuple(terms), _by_source(factors, order), level=10.0)


def refined(order: Sequence[int], dim: int, fidelities: Fidelities, scale: Scale, trend: float = 0.0) -> ModelPrior:
    """Return the prior of levels of one simulator: f(x, h) = f(x, 0) + e(x, h), where e has variances like h^2p.

    After Tuo, Wu and Yu (2014). Each knob has an error with an exponent, and each pair of knobs one that shrinks with
    both. An error has a leading part, the same for all h except for its size, and a rest that shrinks faster. Sources
    without a fidelity are multiples of f(x, 0) plus differences, as in a star.
    """
    L, n, R = len(order) + fidelities.limit, len(SHARED), REFINEMENT
    log_h = fidelities.logarithms(L)
    knobs = [k for k in range(len(log_h)) if log_h[k].any()]
    pairs = [*combinations(knobs, 2)]
    others = [source for source in order[1:] if source not in fidelities.declared]
    error = TermPrior(scale(DIFFERENCE, dim), among=fidelities.declared, trend=trend, constant=R.constant)
    inherited = replace(error, scales_of=n)
    terms = [TermPrior(scale(fraction, dim)) for fraction in SHARED]
    terms[-1] = replace(terms[-1], trend=trend)
    for k in knobs:
        between = np.exp(-R.decay * np.abs(log_h[k][:, None] - log_h[k]))
        terms += [inherited if k != knobs[0] else error, replace(inherited, correlation=between)]
    terms += [inherited] * len(pairs)
    terms += _differences(scale(DIFFERENCE, dim), [(source,) for source in others], len(terms), trend)
    Q = len(terms)
    of = np.arange(Q)
    factors = _shared_process(Q, L)
    for i, k in enumerate(knobs):
        leading, rest = of == n + 2 * i, of == n + 2 * i + 1
        crossed = np.isin(of, [n + 2 * len(knobs) + j for j, pair in enumerate(pairs) if k in pair])
        factors += [
            Factor(R.exponent, (leading | rest | crossed)[:, None] * log_h[k], knob=fidelities.knobs[k]),
            Factor(R.difference, _in_terms(leading | rest, L), PRIORS.start),
            Factor(R.rest, _in_terms(rest, L)),
            Factor(R.faster, rest[:, None] * log_h[k]),
        ]
    for j in range(len(pairs)):
        factors.append(Factor(R.difference, _in_terms(of == n + 2 * len(knobs) + j, L), PRIORS.start))
    for j, source in enumerate(others):
        shared = (of < n)[:, None] & (np.arange(L) == source)
        own = _in_terms(of == Q - len(others) + j, L)
        factors += [Factor(PRIORS.rho, shared.astype(float)), Factor(PRIORS.difference, own, PRIORS.start)]
    return ModelPrior(tuple(terms), tuple(factors), level=10.0, one_level=True)


def refinements(order: Sequence[int], dim: int, fidelities: Fidelities) -> tuple[ModelPrior, ...]:
    """Return the structures over which the default averages if fidelities are known."""
    found = tuple(refined(order, dim, fidelities, *about) for about in ((lengthscale, 0.0), (wide_lengthscale, TREND)))
    if fidelities.limit:
        return found
    return (chain(order, dim), *found) if len(order) <= REFINEMENT.few else found


def _differences(
    scale: LogGamma | Normal, members: Sequence[tuple[int, ...]], n: int, trend: float = 0.0
) -> list[TermPrior]:
    """Return a term for each difference, shared by the given sources, to follow n other terms.

    The terms have common lengthscales, because the few observations of fine levels cannot determine separate ones.
    """
    return [TermPrior(scale, among=some, scales_of=n if i else None, trend=trend) for i, some in enumerate(members)]


def _shared_process(n_terms: int, n_sources: int) -> list[Factor]:
    """Return the factors of the overall amplitude, and of the terms of SHARED relative to the first one."""
    gains = [Factor(PRIORS.gain, _in_terms(np.arange(n_terms) == q, n_sources)) for q in range(1, len(SHARED))]
    return [Factor(PRIORS.amplitude, np.ones((n_terms, n_sources))), *gains]


def _in_terms(terms: Any, n_sources: int) -> Array:
    """Return the effect (Q, L) of a log variance on the given terms (Q,), the same for all sources."""
    return 0.5 * np.repeat(np.asarray(terms, dtype=float)[:, None], n_sources, axis=1)


def _by_source(factors: Sequence[Factor], order: Sequence[int]) -> tuple[Factor, ...]:
    """Return factors with effects indexed by source number instead of by position in the order of fidelity."""
    place = np.argsort(order)
    return tuple(replace(factor, effect=factor.effect[:, place]) for factor in factors)


def icm(order: Sequence[int], dim: int, fraction: float = 0.2) -> ModelPrior:
    """Return the prior of the paper's model: one term, one lengthscale, scales and levels by empirical Bayes."""
    term = TermPrior(LogGamma(fraction, 3.0), per_dimension=False, weights=Normal(1.0, 0.5), own=Normal(-5.0, 3.0))
    return ModelPrior((term,))


def lmc(
    order: Sequence[int], dim: int, fractions: tuple[float, ...] = (0.15, 0.7), nu: float | None = None
) -> ModelPrior:
    """Return the prior of a linear model of coregionalisation: terms on separate scales, unknown source levels.

    Sources are expected to agree best on the shortest scale: most differences between them vary slowly.
    """
    terms = (
        TermPrior(
            LogGamma(fraction, 3.0),
            weights=Normal(1.0, 0.5),
            own=Normal(-8.0, 4.0) if fraction == min(fractions) else Normal(-2.0, 2.0),
        )
        for fraction in fractions
    )
    return ModelPrior(tuple(terms), kernel=RBF(1.0) if nu is None else Matern(nu, 1.0), level=10.0)


def default_structures(order: Sequence[int], dim: int) -> tuple[ModelPrior, ...]:
    """Return the structures over which the default averages."""
    if len(order) == 1:
        return common_and_own(order, dim), chain(order, dim)
    structures = common_and_own(order, dim), chain(order, dim), star(order, dim)
    return structures if len(order) == 2 else (*structures, richardson(order, dim))


def _only(name: str, structure: Callable[[Sequence[int], int], ModelPrior], **options: Any) -> Model:
    """Return the model of a single structure."""
    return Model(name, lambda order, dim: (structure(order, dim),), **options)


MODELS = {
    model.name: model
    for model in (
        Model("auto", default_structures, warped=True, leaves_out=True, refined=refinements),
        _only("icm", icm, marginalised=False),
        _only("lmc", lmc),
        _only("ar", chain),
        _only("vbq", icm, marginalised=False, secondaries=False),
    )
}


def checked_order(order: Any, n_sources: int) -> list[int]:
    """Return the sources in order of fidelity, the primary one first; raise ValueError if one is missing."""
    given = list(order) if isinstance(order, Sequence | np.ndarray) else [order]
    if sorted(map(repr, given)) != sorted(map(repr, range(n_sources))) or given[0] != 0:
        raise ValueError(
            f"order must be the indices of all {n_sources} sources from the most to the least faithful one, with 0, "
            f"the primary one, first, such as {list(range(n_sources))}; got {order!r}"
        )
    return [int(source) for source in given]


def as_model(model: object) -> Model:
    """Return the model of that name, or of that process; otherwise, raise a ValueError that lists the names."""
    if isinstance(model, MultiSourceGP):
        return Model(repr(model), _no_structures, process=model)
    if not isinstance(model, str) or model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(map(repr, MODELS))} or a MultiSourceGP, got {model!r}")
    return MODELS[model]


def _no_structures(order: Sequence[int], dim: int) -> tuple[ModelPrior, ...]:
    return ()
