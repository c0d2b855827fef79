"""Model structures by name: their terms, the priors of their hyperparameters, and how these are used.

The default, "auto", was chosen by measurement (docs/arena.md): sources share a fast and a slow process,
and differ by a slow one,

    f_l(x) = m_l + A_l (e^{γ/2} g(x) + h(x) + √η_l d_l(x)),    h and d_l on the same scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from ..gp.kernels import RBF, Matern, ProductKernel
from ..validation import non_negative_number
from .priors import LogGamma, Normal, StudentT

#: the noise on observations of a source: a variance, or "learn"
Noise: TypeAlias = float | Literal["learn"]
ModelName: TypeAlias = Literal["auto", "icm", "lmc", "ar", "vbq"]


def noise_level(value: Any) -> Noise:
    """Return the noise of a source, a variance or "learn", or raise with what is accepted."""
    if isinstance(value, str):
        if value != "learn":
            raise ValueError(f"noise must be a variance or 'learn', got {value!r}")
        return "learn"
    return non_negative_number(value, "noise")


@dataclass(frozen=True)
class TermPrior:
    """The priors of the hyperparameters of one term; notation as in `layout`."""

    scale: LogGamma  #: prior of log λ
    per_dimension: bool = True  #: whether each input has a lengthscale of its own
    weights: Normal | None = None  #: prior of each w_l; None fixes them to the relation of the source
    shared: bool = True  #: whether sources share the term at all
    own: Normal | None = None  #: prior of each log η_l; None fixes η to zero
    gain: Normal | None = None  #: prior of γ, the log of its variance relative to other terms; None fixes it to 0
    among: tuple[int, ...] | None = None  #: the sources that have a part in the term; None means all


@dataclass(frozen=True)
class ModelPrior:
    """The terms of a model, and how the scale, the level and the noise of each source are treated."""

    terms: tuple[TermPrior, ...]
    #: the kind of all terms; its lengthscales do not matter
    kernel: ProductKernel = field(default_factory=lambda: RBF(1.0))
    #: prior of each a_l, around a spread common to all sources; None takes the scale of each from its observations
    amplitude: StudentT | None = None
    #: standard deviation of an unknown constant for each source, in units of its spread; None fixes it to the average
    level: float | None = None
    #: prior of the log noise variance of a source, in units of its squared spread, where it is learned
    log_noise: Normal = field(default_factory=lambda: Normal(float(np.log(1e-4)), 3.0))
    #: the unit of the outputs of all sources, if it need not be taken from the data
    spread: float | None = None


def noise_levels(noise: Any, n_sources: int) -> list[Noise]:
    """Return one noise variance or "learn" for each source, or raise with what is accepted."""
    given = list(noise) if isinstance(noise, Sequence) and not isinstance(noise, str) else None
    levels = given if given is not None else [noise] * n_sources
    if len(levels) < n_sources:
        raise ValueError(f"noise must be one number, 'learn', or one of them for each of {n_sources} sources")
    return [noise_level(level) for level in levels]


@dataclass(frozen=True)
class Model:
    """A model structure: its prior for any number of sources, and how its hyperparameters are used."""

    prior: Callable[[int], ModelPrior]
    marginalised: bool = True  #: average over the hyperparameters, or take the most probable ones
    secondaries: bool = True  #: whether other sources than the primary one are used


def common_and_own(n_sources: int, fractions: tuple[float, float] = (0.2, 0.7)) -> ModelPrior:
    """Return the prior of the default: a fast and a slow process that sources share, and a slow one for each."""
    fast, slow = fractions
    return ModelPrior(
        (
            TermPrior(LogGamma(fast, 3.0), gain=Normal(0.0, 2.0)),
            TermPrior(LogGamma(slow, 3.0), own=Normal(-4.0, 3.0)),
        ),
        amplitude=StudentT(0.0, 0.7, 4.0),
        level=10.0,
    )


def icm(n_sources: int, fraction: float = 0.2) -> ModelPrior:
    """Return the prior of the paper's model: one term, one lengthscale, scales and levels by empirical Bayes."""
    term = TermPrior(LogGamma(fraction, 3.0), per_dimension=False, weights=Normal(1.0, 0.5), own=Normal(-5.0, 3.0))
    return ModelPrior((term,))


def lmc(n_sources: int, fractions: tuple[float, ...] = (0.15, 0.7), nu: float | None = None) -> ModelPrior:
    """Return the prior of a linear model of coregionalisation: terms on separate scales, unknown levels of sources.

    On the shortest scale the sources are expected to agree best: what tells them apart mostly varies slowly.
    """
    terms = (
        TermPrior(
            LogGamma(fraction, 3.0),
            weights=Normal(1.0, 0.5),
            own=Normal(-8.0, 4.0) if fraction == min(fractions) else Normal(-2.0, 2.0),
        )
        for fraction in fractions
    )
    return ModelPrior(tuple(terms), _kernel(nu), level=10.0)


def autoregressive(n_sources: int, nu: float | None = None) -> ModelPrior:
    """Return the prior of an autoregressive model for sources in order of fidelity (Kennedy and O'Hagan).

    Each source is the next one plus a term of its own: term q belongs to source q and enters, with a weight for each,
    all sources above it.
    """
    fractions = np.linspace(0.5, 0.2, n_sources) if n_sources > 1 else [0.2]
    terms = (
        TermPrior(LogGamma(float(fraction), 3.0), weights=Normal(1.0, 1.0), among=tuple(range(q + 1)))
        for q, fraction in enumerate(fractions)
    )
    return ModelPrior(tuple(terms), _kernel(nu), level=10.0)


def _kernel(nu: float | None) -> ProductKernel:
    return RBF(1.0) if nu is None else Matern(nu, 1.0)


MODELS = {
    "auto": Model(common_and_own),
    "icm": Model(icm, marginalised=False),
    "lmc": Model(lmc),
    "ar": Model(autoregressive),
    "vbq": Model(icm, marginalised=False, secondaries=False),
}


def model_named(name: str) -> Model:
    """Return the model structure of that name, or raise with those that there are."""
    if name not in MODELS:
        raise ValueError(f"model must be one of {', '.join(map(repr, MODELS))} or a MultiSourceGP, got {name!r}")
    return MODELS[name]
