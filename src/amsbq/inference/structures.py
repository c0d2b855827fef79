"""The models by name: what each believes before the data, and what is done with its hyperparameters.

The default, "auto", was chosen by measurement (`benchmarks/calibration.py`): sources share what varies quickly and what
varies slowly, and differ by something slow,

    f_l(x) = m_l + A_l (e^{γ/2} g(x) + h(x) + √η_l d_l(x)),    h and d_l on the same scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ..gp.kernels import RBF, Matern, ProductKernel
from ..validation import non_negative_number
from .priors import LogGamma, Normal, StudentT

Noise = float | Literal["learn"]


def noise_level(value: Any) -> Noise:
    """The noise of a source: a variance, or "learn"."""
    if isinstance(value, str):
        if value != "learn":
            raise ValueError(f"noise must be a variance or 'learn', got {value!r}")
        return "learn"
    return non_negative_number(value, "noise")


@dataclass(frozen=True)
class TermPrior:
    """What is believed of one term before the data."""

    scale: LogGamma  #: of log λ
    per_dimension: bool = True  #: a lengthscale for each input, or one for all
    weights: Normal | None = None  #: of each w_l; None makes them 1
    shared: bool = True  #: whether there is a w at all
    own: Normal | None = None  #: of each log η_l; None makes η zero
    gain: Normal | None = None  #: of γ, the log of its variance beside that of other terms; None makes it 0
    among: tuple[int, ...] | None = None  #: the sources that have a part in it; None is all of them


@dataclass(frozen=True)
class ModelPrior:
    """The terms of a model, and how the scale, the level and the noise of each source are treated."""

    terms: tuple[TermPrior, ...]
    #: of all terms, with whatever lengthscales
    kernel: ProductKernel = field(default_factory=lambda: RBF(1.0))
    #: of each a_l, around a spread common to all sources; None takes the scale of each from its own observations
    amplitude: StudentT | None = None
    #: standard deviation of an unknown constant for each source, in units of its spread; None fixes it to the average
    level: float | None = None
    #: of the log noise variance of a source in units of its spread, where it is learned
    log_noise: Normal = field(default_factory=lambda: Normal(float(np.log(1e-4)), 3.0))
    #: the unit of the outputs of all sources, if it need not be taken from the data
    spread: float | None = None


def noise_levels(noise: Any, n_sources: int) -> list[Noise]:
    """One noise variance for each source: a number or "learn"."""
    given = list(noise) if isinstance(noise, Sequence) and not isinstance(noise, str) else None
    levels = given if given is not None else [noise] * n_sources
    if len(levels) < n_sources:
        raise ValueError(f"noise must be one number, 'learn', or one of them for each of {n_sources} sources")
    return [noise_level(level) for level in levels]


@dataclass(frozen=True)
class Model:
    """A prior for any number of sources, and how it is used."""

    prior: Callable[[int], ModelPrior]
    marginalised: bool = True  #: average over the hyperparameters, or take the most probable ones
    secondaries: bool = True  #: whether other sources than the primary one are used


def common_and_own(n_sources: int, fractions: tuple[float, float] = (0.2, 0.7)) -> ModelPrior:
    """A fast and a slow process that sources share, and a slow one that each has to itself."""
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
    """The paper's: one term with one lengthscale, scales and levels from the data (empirical Bayes)."""
    term = TermPrior(LogGamma(fraction, 3.0), per_dimension=False, weights=Normal(1.0, 0.5), own=Normal(-5.0, 3.0))
    return ModelPrior((term,))


def lmc(n_sources: int, fractions: tuple[float, ...] = (0.15, 0.7), nu: float | None = None) -> ModelPrior:
    """Terms on separate scales, a lengthscale per input, and an unknown level of each source.

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
    """Kennedy and O'Hagan's, for sources in order of fidelity: each is what the next one knows, and a term of its own.

    Term q belongs to source q and is seen, with a weight for each, by all sources above it.
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
    """The model of that name."""
    if name not in MODELS:
        raise ValueError(f"model must be one of {', '.join(map(repr, MODELS))} or a MultiSourceGP, got {name!r}")
    return MODELS[name]
