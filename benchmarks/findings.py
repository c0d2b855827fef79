"""Measure how often findings of noise and of wrong values are right, on functions for which that is known.

    python -m benchmarks.findings [NUMBER OF PROBLEMS]

Functions of 1 to 6 inputs, smooth, with kinks and with steps, have no noise: all findings there are false. Noise of 3
to 30 % of the spread is added to smooth ones. It counts as visible if it is at least twice the leave-one-out error
without noise, and if there are ten evaluations for each input. Wrong values are off by ten times the spread of all
others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import amsbq
from amsbq.common.messages import collected_warnings
from amsbq.inference.noise import undeclared_noise
from amsbq.results.outliers import outlier

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
KINDS = ("smooth", "kinks", "steps", "noise", "wrong value")


def smooth(rng: np.random.Generator, dim: int) -> Function:
    """Return an analytic function of the unit cube: (n, D) to (n,)."""
    a, b, c, phase = _direction(rng, dim), _direction(rng, dim), rng.uniform(size=dim), rng.uniform(0, 6)
    fast, steep, width = rng.uniform(2, 7), rng.uniform(1, 3), rng.uniform(0.4, 0.8) * dim**0.5
    Q, w = rng.normal(size=(dim, dim)), rng.uniform(0.5, 2, size=dim) / dim**0.5
    functions: list[Function] = [
        lambda X: np.sin(fast * X @ a + phase) + X @ b,
        lambda X: np.exp(steep * X @ a),
        lambda X: np.exp(-np.sum((X - c) ** 2, axis=1) / width**2) + 0.5 * X @ b,
        lambda X: np.einsum("ni,ij,nj->n", X - c, Q, X - c) + X @ b,
        lambda X: np.prod(np.cos(w * X + 0.1 * phase), axis=1),
        lambda X: (1 + X @ w) ** -2.0,
    ]
    return functions[rng.integers(len(functions))]


def kinks(rng: np.random.Generator, dim: int) -> Function:
    """Return a continuous function of the unit cube with kinks: (n, D) to (n,)."""
    a, b, c, w = _direction(rng, dim), _direction(rng, dim), *rng.uniform(0.15, 0.85, size=(2, dim))
    f, g = _standard(rng, dim), _standard(rng, dim)
    functions: list[Function] = [
        lambda X: 3 * np.abs((X - c) @ a) + X @ b,
        lambda X: np.abs(X - c) @ w,
        lambda X: np.exp(-2 * np.abs(X - c) @ w / dim**0.5),
        lambda X: np.maximum(f(X), g(X)),
        lambda X: 2 * np.maximum(0, (X - c) @ a) + 0.2 * np.sin(3 * X @ b),
        lambda X: np.maximum(f(X), -0.3),
    ]
    return functions[rng.integers(len(functions))]


def steps(rng: np.random.Generator, dim: int) -> Function:
    """Return a function of the unit cube with steps: (n, D) to (n,)."""
    a, (c, w), height = _direction(rng, dim), rng.uniform(0.15, 0.85, size=(2, dim)), rng.uniform(0.5, 3)
    f, g, number = _standard(rng, dim), _standard(rng, dim), rng.integers(2, 5)
    functions: list[Function] = [
        lambda X: f(X) + height * ((X - c) @ a > 0),
        lambda X: f(X) + height * (X[:, 0] > c[0]),
        lambda X: np.where((X[:, :2] < 0.3 + 0.6 * c[:2]).all(axis=1), np.exp(X @ w), 0.0),
        lambda X: np.floor(number * (X @ np.abs(a))) + 0.3 * f(X),
        lambda X: np.where((X - c) @ a > 0, f(X), g(X)),
    ]
    return functions[rng.integers(len(functions))]


def _direction(rng: np.random.Generator, dim: int) -> Array:
    """Return random weights of the inputs, some of which matter less."""
    a = rng.normal(size=dim) * rng.choice([0.2, 1.0, 1.0], size=dim)
    return np.asarray(a / np.abs(a).sum())


def _standard(rng: np.random.Generator, dim: int) -> Function:
    """Return a smooth function with mean zero and spread one."""
    f, X = smooth(rng, dim), rng.uniform(size=(200, dim))
    level, spread = f(X).mean(), f(X).std()
    return lambda X: np.asarray((f(X) - level) / spread)


@dataclass(frozen=True)
class Case:
    """Values of a function, with their defects."""

    kind: str
    X: Array
    y: Array
    clean: Array  #: values without noise
    noise: float = 0.0  #: standard deviation
    wrong: int | None = None  #: the number of the wrong value

    def integrator(self, y: Array | None = None) -> amsbq.Integrator:
        """Return an integrator that has observed the values."""
        it = amsbq.Integrator([amsbq.Source()], amsbq.Uniform(np.zeros(self.X.shape[1]), 1.0), initial=[])
        for x, value in zip(self.X, self.y if y is None else y, strict=True):
            it.observe(0, x, float(value))
        return it

    def visible(self) -> bool:
        """Return whether the noise is visible: twice the error of the model's predictions without noise."""
        it = self.integrator(self.clean)
        return len(self.X) >= 10 * self.X.shape[1] and self.noise >= 2 * _error(it)


def _error(it: amsbq.Integrator) -> float:
    """Return the root mean square of the leave-one-out errors."""
    posterior = it.learner.posterior
    assert posterior is not None
    left = posterior.left_out()
    return float(np.sqrt(np.mean((left.y - left.means.mean(axis=0)) ** 2)) * np.std(it.learner.data.y))


def case(kind: str, seed: int, dims: tuple[int, ...] = (1, 1, 2, 2, 3, 4, 6)) -> Case:
    """Return values of a random function at Sobol points."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    dim, n = int(rng.choice(dims)), int(rng.choice([10, 12, 15, 20, 30, 40]))
    functions = {"smooth": smooth, "kinks": kinks, "steps": steps, "noise": smooth}
    make = functions[kind] if kind in functions else list(functions.values())[rng.integers(3)]
    n = n if kind in ("smooth", "kinks", "steps") else max(n, 15)
    X = amsbq.Uniform(np.zeros(dim), 1.0).sobol(n, rng=seed)
    clean = make(rng, dim)(X)
    if not np.ptp(clean) > 0:
        return case(kind, seed + 10**6, dims)
    spread = float(clean.std())
    if kind == "noise":
        noise = spread * float(rng.choice([0.03, 0.05, 0.1, 0.2, 0.3]))
        return Case(kind, X, clean + noise * rng.normal(size=n), clean, noise)
    if kind == "wrong value":
        wrong = int(rng.integers(n))
        return Case(kind, X, clean + 10 * spread * rng.choice([-1, 1]) * (np.arange(n) == wrong), clean, wrong=wrong)
    return Case(kind, X, clean, clean)


def found_noise(case: Case) -> bool:
    """Return whether noise is found in the values of a case."""
    it = case.integrator()
    with np.errstate(all="ignore"):
        return bool(undeclared_noise(it.measure, it.learner.data, [0.0]))


def found_outlier(case: Case) -> int | None:
    """Return the number of the value that is found to be an outlier, if any."""
    with collected_warnings():
        found = outlier(case.integrator())
    return None if found is None else found.evaluation


def rows(n: int) -> Iterator[str]:
    """Yield a line for each kind of function: how often noise and outliers were found in n problems."""
    for kind in KINDS[:3]:
        cases = [case(kind, seed) for seed in range(n)]
        noise = sum(found_noise(one) for one in cases)
        outliers = sum(found_outlier(one) is not None for one in cases)
        yield f"{kind}: noise in {100 * noise / n:.1f} %, a wrong value in {100 * outliers / n:.1f} % of {n}, all false"
    with collected_warnings():
        visible = [one for seed in range(n) if (one := case("noise", seed)).visible()]
    found = sum(found_noise(one) for one in visible)
    yield f"noise that is visible: found in {100 * found / len(visible):.0f} % of {len(visible)}"
    cases = [case("wrong value", seed) for seed in range(n)]
    right = sum(found_outlier(one) == one.wrong for one in cases)
    yield f"wrong values: named in {100 * right / n:.0f} % of {n}"


if __name__ == "__main__":
    for row in rows(int(sys.argv[1]) if len(sys.argv) > 1 else 200):
        print(row, flush=True)
