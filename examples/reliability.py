"""How probable is it that a roof beam sags too much? A finite-element analysis and the formula of handbooks.

    python examples/reliability.py

Snow lies on a timber beam that is also compressed along its axis, and whose stiffness differs from beam to beam. The
analysis has 64 elements and accounts for the compression, which makes the beam sag more; the handbook's formula ignores
it. Evaluations are chosen to learn the probability that the beam sags by more than 45 mm. The truth comes from the
exact solution for four million random beams.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import amsbq

SPAN, WEIGHT, LIMIT = 6.0, 1.2, 45.0  # m, kN/m, mm
INPUTS = {
    "snow": stats.gumbel_r(1.4, 0.25),  # the largest of a year, kN/m
    "stiffness": stats.lognorm(0.1, scale=2.0),  # of the beam in bending, MN m²
    "force": stats.lognorm(0.3, scale=120.0),  # of compression, kN
}


def analysis(snow, stiffness, force, elements=64):
    """Return how far the middle of the beam sags, in mm, by finite elements."""
    h, bending = SPAN / elements, stiffness * 1e3  # kN m²
    matrix, load = np.zeros((2 * elements + 2,) * 2), np.zeros(2 * elements + 2)
    elastic = np.array([[12, 6 * h, -12, 6 * h], [6 * h, 4 * h**2, -6 * h, 2 * h**2]])
    elastic = bending / h**3 * np.vstack([elastic, -elastic[0], [6 * h, 2 * h**2, -6 * h, 4 * h**2]])
    turned = np.array([[36, 3 * h, -36, 3 * h], [3 * h, 4 * h**2, -3 * h, -(h**2)]])
    turned = force / (30 * h) * np.vstack([turned, -turned[0], [3 * h, -(h**2), -3 * h, 4 * h**2]])
    for first in range(0, 2 * elements, 2):  # each node has a deflection and a slope
        part = slice(first, first + 4)
        matrix[part, part] += elastic - turned
        load[part] += (snow + WEIGHT) * h * np.array([1 / 2, h / 12, 1 / 2, -h / 12])
    free = np.setdiff1d(np.arange(2 * elements + 2), [0, 2 * elements])  # the ends rest on walls
    return 1e3 * np.linalg.solve(matrix[np.ix_(free, free)], load[free])[elements - 1]


def handbook(snow, stiffness):
    """Return how far a beam on hinges sags that is not compressed, in mm."""
    return 1e3 * 5 / 384 * (snow + WEIGHT) * SPAN**4 / (stiffness * 1e3)


def exact(snow, stiffness, force):
    """Return the solution of the beam's differential equation, in mm; works on arrays."""
    half, q = SPAN / 2, snow + WEIGHT
    phase = half * np.sqrt(force / (stiffness * 1e3))
    return 1e3 * q / force * ((1 / np.cos(phase) - 1) * (half / phase) ** 2 - half**2 / 2)


def truth(n=4_000_000):
    """Return the probability of failure, by random beams."""
    rng = np.random.default_rng(0)
    return float(np.mean(exact(*(inputs.rvs(n, random_state=rng) for inputs in INPUTS.values())) > LIMIT))


def run(budget=12.0, seed=0):
    """Return the result of a run; 1 is the cost of an analysis."""
    return amsbq.integrate(
        [amsbq.Source(analysis), amsbq.Source(handbook, cost=0.01)],
        INPUTS,
        budget=budget,
        seed=seed,
        target=amsbq.Exceedance(LIMIT),
        title="A roof beam under snow",
        units={"output": "mm", "cost": "analyses", "snow": "kN/m", "stiffness": "MN m²", "force": "kN"},
        labels={"output": "deflection"},
    )


def answers(result):
    """Return what is known and the truth, by name."""
    return {"probability of failure": (result.target, truth())}


def draw(result):
    """Draw the distribution of the deflection, and which beams were analysed."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    amsbq.plots.distribution(result, ax=left)
    left.axvline(LIMIT, color="tab:red")
    rng = np.random.default_rng(1)
    x = [inputs.rvs(4000, random_state=rng) for inputs in INPUTS.values()]
    fails = exact(*x) > LIMIT
    right.scatter(x[0][~fails], x[1][~fails], s=2, color="0.8", label="random beams")
    right.scatter(x[0][fails], x[1][fails], s=6, color="tab:red", label="of these, those that fail")
    analysed = np.array([e.x for e in result.evaluations if e.source == 0])
    right.plot(analysed[:, 0], analysed[:, 1], "o", color="tab:blue", markeredgecolor="w", label="analysed")
    right.set(xlabel="snow in kN/m", ylabel="stiffness in MN m²")
    right.legend(frameon=False)
    return figure


if __name__ == "__main__":
    result = run()
    print(result)
    for name, (known, truth) in answers(result).items():
        print(f"{name}: {known.mean:.4g} ± {known.std:.2g}; the truth is {truth:.4g}")
    draw(result).savefig("reliability.png", dpi=120)
