"""One problem in many forms: each feature of the library is a level of a factor, and a setup has one level of each.

The primary source has the outputs h_m(z) = 2 + sin(2 z_0 + 0.3 m) + z_1²/2 + m z_0 z_1/10 of two coordinates z in the
unit square, between 1 and 5, or their logarithms. The secondary one is 0.9 h_m + 0.2 z_0 + 0.1, and a free one
0.8 h_m + 0.3 z_1. Noise is a function of the location, so that a run can be repeated. All of this was written down
before it was run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

import amsbq

SEED = 5
BUDGET, FEWER = 6.0, 5.0  #: and for several outputs, of which each step takes longer
NOISE = 0.05  #: standard deviation
LIMIT, SHARE = 2.9, 0.8  #: of exceedance, and of the quantile
N_TRUTH = 1 << 14

#: factor -> levels, the plain one first
LEVELS: dict[str, tuple[str, ...]] = {
    "inputs": ("uniform", "dependent", "discrete", "transformed", "empirical"),
    "outputs": ("one", "several", "many", "missing"),
    "values": ("any", "range", "log"),
    "noise": ("none", "declared", "learned", "reported"),
    "gradients": ("none", "gradients"),
    "free": ("none", "free"),
    "target": ("mean", "variance", "exceedance", "quantile"),
    "execution": ("sequential", "workers", "executor", "timeout"),
    "cost": ("declared", "measured"),
    "stop": ("budget", "tolerance"),
    "front": ("integrate", "journal", "ask and tell", "detached"),
}

Feature = tuple[str, str]  # a factor and one of its levels


@dataclass(frozen=True)
class Setup:
    """A level of each factor."""

    inputs: str = "uniform"
    outputs: str = "one"
    values: str = "any"
    noise: str = "none"
    gradients: str = "none"
    free: str = "none"
    target: str = "mean"
    execution: str = "sequential"
    cost: str = "declared"
    stop: str = "budget"
    front: str = "integrate"
    model: str = (
        "ar"  #: the default averages over several structures such as this one, which takes several times as long
    )
    #: "limit" for that to which the two sources tend as levels, the primary one next to it; for the default model only
    wanted: str = "primary"

    @property
    def features(self) -> list[Feature]:
        """All levels that are not plain."""
        pairs = [(factor, getattr(self, factor)) for factor in LEVELS]
        return [(factor, level) for factor, level in pairs if level != LEVELS[factor][0]]

    @property
    def name(self) -> str:
        """The features in words."""
        shown = ["measured cost" if pair == ("cost", "measured") else pair[1] for pair in self.features]
        shown += [] if self.wanted == "primary" else [self.wanted]
        return ", ".join(shown) or "plain"

    @property
    def names(self) -> list[str]:
        """The names of the outputs."""
        return [f"y{m}" for m in range({"one": 1, "several": 3, "missing": 3, "many": 12}[self.outputs])]

    @cached_property
    def measure(self) -> amsbq.Measure:
        """The distribution of the inputs."""
        if self.inputs == "dependent":
            return amsbq.GaussianCopula([stats.uniform(), stats.uniform()], [[1, 0.6], [0.6, 1]])
        if self.inputs == "discrete":
            return amsbq.Product([stats.uniform(), stats.randint(0, 4)])
        if self.inputs == "transformed":
            return amsbq.Transformed(amsbq.Product([stats.uniform(), stats.uniform()]), mixed)
        if self.inputs == "empirical":
            return amsbq.Empirical(np.random.default_rng(1).beta(2, 2, size=(300, 2)))
        return amsbq.Uniform([0, 0], [1, 1])

    def coordinates(self, X: Any) -> Any:
        """Return z (n, 2) for what sources are called with."""
        return X / [1, 3] if self.inputs == "discrete" else X

    @cached_property
    def sources(self) -> list[amsbq.Source]:
        """The sources, as a user would write them."""
        noise: Any = {"declared": NOISE**2, "learned": "learn"}.get(self.noise, 0.0)
        timeout = 60.0 if self.execution == "timeout" else None
        made = []
        for number, name in enumerate(("fine", "coarse")):
            own = self.names[:2] if self.outputs == "missing" and number else None
            function = Simulator(self, number)
            made.append(
                amsbq.Source(
                    function,
                    name=name,
                    cost="measured" if self.cost == "measured" else (1.0, 0.2)[number],
                    noise=noise,
                    timeout=timeout,
                    gradient=True if self.gradients == "gradients" else None,
                    outputs=own,
                    fidelity=self.fidelities[number],
                )
            )
        if self.free == "free":
            made.append(amsbq.Source(Formula(self), name="formula", cost=0, vectorized=True))
        return made

    @property
    def fidelities(self) -> list[dict[str, float] | None]:
        """The fidelity of each source."""
        known: list[Any] = [{"h": 1e-8}, {"h": 1.0}] if self.wanted == "limit" else [None, None]
        return known + ([None] if self.free == "free" else [])

    @property
    def goal(self) -> Any:
        """The target of the run."""
        kinds = {"exceedance": amsbq.Exceedance(self.limit), "quantile": amsbq.Quantile(SHARE), "variance": "variance"}
        return kinds.get(self.target, "mean")

    @property
    def limit(self) -> float:
        """The limit of exceedance, in the units of the values."""
        return float(np.log(LIMIT)) if self.values == "log" else LIMIT

    @property
    def knowledge(self) -> dict[str, Any]:
        """What is known of the values, as arguments of `integrate` and of `estimate`."""
        several: dict[str, Any] = {} if self.outputs == "one" else {"outputs": self.names}
        ranged: dict[str, Any] = {"output_range": (0.0, np.inf)} if self.values == "range" else {}
        return several | ranged | ({"log": True} if self.values == "log" else {})

    @property
    def options(self) -> dict[str, Any]:
        """All arguments of `Integrator`."""
        limit = {"limit": True} if self.wanted == "limit" else {}
        return {
            "budget": self.budget,
            "seed": SEED,
            "model": self.model,
            "target": self.goal,
            **self.knowledge,
            **limit,
        }

    @property
    def budget(self) -> float:
        """The budget."""
        return BUDGET if self.outputs == "one" else FEWER

    @property
    def stopping(self) -> dict[str, Any]:
        """When to stop before the budget is spent."""
        return {"abs_tol": 0.4} if self.stop == "tolerance" else {}

    @cached_property
    def truths(self) -> np.ndarray:
        """The target of each output, shape (M,)."""
        empirical = isinstance(self.measure, amsbq.Empirical)
        X = self.measure.samples if empirical else self.measure.sobol(N_TRUTH, 0)
        called = np.array([mixed(x) for x in X]) if self.inputs == "transformed" else X
        h = surface(self.coordinates(called), len(self.names))
        y = np.log(h) if self.values == "log" else h
        if self.target == "variance":
            return y.var(axis=0)
        if self.target == "exceedance":
            return (y > self.limit).mean(axis=0)
        if self.target == "quantile":
            return np.quantile(y, SHARE, axis=0)
        return np.log(h.mean(axis=0)) if self.values == "log" else h.mean(axis=0)


def mixed(x: Any) -> Any:
    """Return the coordinates of transformed inputs."""
    return np.array([x[0], 0.5 * (x[0] + x[1])])


def surface(z: Any, M: int) -> Any:
    """Return h_m at coordinates (n, 2), shape (n, M)."""
    m = np.arange(M)
    z0, z1 = z[:, [0]], z[:, [1]]
    return 2 + np.sin(2 * z0 + 0.3 * m) + 0.5 * z1**2 + 0.1 * m * z0 * z1


def slopes(z: Any, M: int) -> Any:
    """Return the derivatives of h_m with respect to both coordinates, shape (n, M, 2)."""
    m = np.arange(M)
    z0, z1 = z[:, [0]], z[:, [1]]
    return np.stack([2 * np.cos(2 * z0 + 0.3 * m) + 0.1 * m * z1, z1 + 0.1 * m * z0], axis=-1)


@dataclass(frozen=True)
class Simulator:
    """The function of a source that costs something."""

    setup: Setup
    number: int

    @property
    def __name__(self) -> str:
        return ("fine", "coarse")[self.number]

    def source_definition(self) -> dict[str, Any]:
        """Return what the function is, for journals."""
        return {"setup": self.setup.name, "number": self.number}

    def __call__(self, x: Any, h: float | None = None) -> Any:  # the number stands for h, too
        setup, z = self.setup, self.setup.coordinates(np.asarray(x, dtype=float)[None])
        M = len(setup.names)
        h, dh = surface(z, M)[0], slopes(z, M)[0]
        if self.number:
            h, dh = 0.9 * h + 0.2 * z[0, 0] + 0.1, 0.9 * dh + [0.2, 0.0]
        y, dy = (np.log(h), dh / h[:, None]) if setup.values == "log" else (h, dh)
        if setup.noise != "none":
            digest = sha256(np.asarray(x, dtype="<f8").tobytes() + bytes([self.number])).digest()
            y = y + NOISE * np.random.default_rng(list(digest[:8])).normal(size=M)
        if setup.inputs == "discrete":
            dy = dy / [1, 3]
        if setup.outputs == "missing" and not self.number:
            y = np.where((np.arange(M) == 1) & (z[0, 0] > 0.8), np.nan, y)
        own = slice(0, 2) if setup.outputs == "missing" and self.number else slice(None)
        one = setup.outputs == "one"
        extra: dict[str, Any] = {"variance": NOISE**2} if setup.noise == "reported" else {}
        if setup.gradients == "gradients":
            extra["gradient"] = dy[0] if one else dy[own]
        if setup.cost == "measured":
            extra["cost"] = float((1.0, 0.2)[self.number] * (0.9 + 0.2 * z[0, 0]))
        value = float(y[0]) if one else y[own]
        return amsbq.Observation(value, **extra) if extra else value


@dataclass(frozen=True)
class Formula:
    """The function of the source that costs nothing, for many locations."""

    setup: Setup

    def source_definition(self) -> dict[str, Any]:
        """Return what the function is, for journals."""
        return {"formula": self.setup.name}

    def __call__(self, X: Any) -> Any:
        z = self.setup.coordinates(np.asarray(X, dtype=float))
        h = 0.8 * surface(z, len(self.setup.names)) + 0.3 * z[:, [1]]
        y = np.log(h) if self.setup.values == "log" else h
        return y[:, 0] if self.setup.outputs == "one" else y


FEATURES: list[Feature] = [(factor, level) for factor, levels in LEVELS.items() for level in levels[1:]]


def setup_of(*features: Feature) -> Setup:
    """Return the setup that has these features, and is plain otherwise."""
    return replace(Setup(), **dict(features))


def pairs() -> list[tuple[Feature, Feature]]:
    """Return all pairs of features of different factors."""
    return [(a, b) for a, b in combinations(FEATURES, 2) if a[0] != b[0]]


def triples(n: int) -> list[tuple[Feature, ...]]:
    """Return n triples of features of different factors, drawn at random."""
    every = [t for t in combinations(FEATURES, 3) if len({factor for factor, _ in t}) == 3]
    drawn = np.random.default_rng(SEED).permutation(len(every))[:n]
    return [every[i] for i in drawn]


def covering(refused: Sequence[frozenset[Feature]]) -> list[Setup]:
    """Return setups that together have every pair of levels, except those that are refused.

    Greedy: each is the best of a few that are built level by level, around a pair that no other has yet.
    """
    rng, left = np.random.default_rng(SEED), set(_all_pairs()) - set(refused)
    found = []
    while left:
        first = min(left, key=lambda pair: sorted(pair))
        tried = [_grown(first, left, refused, rng) for _ in range(20)]
        best = max(tried, key=lambda levels: len(left & set(_pairs_of(levels))))
        left -= set(_pairs_of(best))
        found.append(setup_of(*best))
    return found


def _all_pairs() -> Iterator[frozenset[Feature]]:
    for (f, levels), (g, others) in combinations(LEVELS.items(), 2):
        yield from (frozenset([(f, a), (g, b)]) for a in levels for b in others)


def _pairs_of(levels: Sequence[Feature]) -> list[frozenset[Feature]]:
    return [frozenset(pair) for pair in combinations(levels, 2)]


def _grown(
    first: frozenset[Feature], left: set[frozenset[Feature]], refused: Sequence[frozenset[Feature]], rng: Any
) -> list[Feature]:
    """Return a level of each factor, with two of them given: each of those that cover most, in a random order."""
    levels, never = list(first), set(refused)
    for factor in rng.permutation([f for f in LEVELS if f not in dict(first)]):
        allowed = [
            (str(factor), level)
            for level in LEVELS[str(factor)]
            if not any(frozenset([(str(factor), level), other]) in never for other in levels)
        ]
        gains = [sum(frozenset([option, other]) in left for other in levels) for option in allowed]
        best = [option for option, gain in zip(allowed, gains, strict=True) if gain == max(gains)]
        levels.append(best[rng.integers(len(best))])
    return levels
