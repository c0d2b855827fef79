"""Functions of UQTestFuns 0.7 (Wicaksono and Hecht 2023), each with a secondary source by rule.

Formulas and inputs are those of the package's default; `SOURCES` names who published them. Of a group of variants only
the first is here; `docs/yardsticks.md` says by which rule the others are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy import optimize, stats
from scipy.special import ndtr

from benchmarks.arena.arrays import Array
from benchmarks.arena.problem import Function, Moments, Problem, unit_cube
from benchmarks.arena.quadrature import by_panels, by_product, by_sobol, panels

from .secondaries import COST, linearised, shifted

U, N = stats.uniform, stats.norm
Truth: TypeAlias = Callable[[], Moments]

#: who published each function
SOURCES = {
    "Alemazkoor2D": "Alemazkoor and Meidani 2018",
    "Cheng2D": "Cheng and Sandu 2010",
    "ConvexFailDomain": "Borri and Speranzini 1997",
    "CurrinSine": "Currin et al. 1988",
    "DampedCosine": "Santner et al. 2018",
    "DampedOscillator": "Igusa and Der Kiureghian 1985",
    "Dette8D": "Dette and Pepelyshev 2010",
    "Flood": "Iooss and Lemaître 2015",
    "FourBranch": "Katsuki and Frangopol 1994",
    "Franke1": "Franke 1979",
    "Friedman10D": "Friedman 1991",
    "GaytonHat": "Echard et al. 2013",
    "GramacySine": "Gramacy 2007",
    "HigdonSine": "Higdon 2002",
    "HolsclawSine": "Holsclaw et al. 2013",
    "HyperSphere": "Li et al. 2018",
    "LimNonPoly": "Lim et al. 2002",
    "LinkletterSine": "Linkletter et al. 2006",
    "McLainS1": "McLain 1974",
    "Moon3D": "Moon 2010",
    "Oakley1D": "Oakley and O'Hagan 2002",
    "Piston": "Ben-Ari and Steinberg 2007",
    "RSCircularPipeCrack": "Verma et al. 2015",
    "RSQuadratic": "Waarts 2000",
    "RSSpeedReducerShaft": "Du and Sudjianto 2004",
    "RobotArm": "An and Owen 2001",
    "Sulfur": "Charlson et al. 1992",
    "UndampedOscillator": "UQTestFuns 0.7",
    "Webster2D": "Webster et al. 1996",
    "WingWeight": "Forrester et al. 2008",
}


def lognormal(mean: float, std: float) -> Any:
    """Return the distribution of the exponential of a normal variable."""
    return stats.lognorm(std, scale=np.exp(mean))


def triangular(low: float, high: float, mode: float) -> Any:
    """Return a triangular distribution."""
    return stats.triang((mode - low) / (high - low), low, high - low)


class _TruncatedGumbel(stats.rv_continuous):
    """The largest-value Gumbel distribution between two bounds."""

    def _cdf(self, x: Array, low: float, high: float) -> Array:
        below, above = stats.gumbel_r.cdf(low), stats.gumbel_r.cdf(high)
        return (stats.gumbel_r.cdf(x) - below) / (above - below)

    def _pdf(self, x: Array, low: float, high: float) -> Array:
        return stats.gumbel_r.pdf(x) / (stats.gumbel_r.cdf(high) - stats.gumbel_r.cdf(low))

    def _ppf(self, q: Array, low: float, high: float) -> Array:
        below, above = stats.gumbel_r.cdf(low), stats.gumbel_r.cdf(high)
        return stats.gumbel_r.ppf(below + q * (above - below))

    def _get_support(self, low: float, high: float) -> tuple[float, float]:
        return low, high

    def _argcheck(self, low: float, high: float) -> bool:
        return np.all(low < high)


def truncated_gumbel(location: float, scale: float, low: float, high: float) -> Any:
    """Return a Gumbel distribution between two bounds."""
    found = _TruncatedGumbel(name="truncated_gumbel", shapes="low, high")
    return found((low - location) / scale, (high - location) / scale, loc=location, scale=scale)


def alemazkoor(X: Array) -> Array:
    p = X[:, 0] * X[:, 1]
    return sum(p ** (2 * i) for i in range(1, 6))


def cheng(X: Array) -> Array:
    return np.cos(X.sum(axis=1)) * np.exp(X.prod(axis=1))


def convex_failure_domain(X: Array) -> Array:
    x, y = X.T
    return 0.1 * (x - y) ** 2 - (x + y) / np.sqrt(2) + 2.5


def currin_sine(X: Array) -> Array:
    return np.sin(2 * np.pi * (X[:, 0] - 0.1))


def damped_cosine(X: Array) -> Array:
    return np.exp(-1.4 * X[:, 0]) * np.cos(3.5 * np.pi * X[:, 0])


def damped_oscillator(X: Array) -> Array:
    """Return the root mean square displacement of a secondary spring that hangs on a primary one."""
    mp, ms, kp, ks, zp, zs, s0 = X.T
    wp, ws, gamma = np.sqrt(kp / mp), np.sqrt(ks / ms), ms / mp
    wa, za = (wp + ws) / 2, (zp + zs) / 2
    theta = (wp - ws) / wa
    coupling = za * zs / (zp * zs * (4 * za**2 + theta**2) + gamma * za**2)
    return np.sqrt(np.pi * s0 / (4 * zs * ws**3) * coupling * (zp * wp**3 + zs * ws**3) * wp / (4 * za * wa**4))


def dette(X: Array) -> Array:
    x, y, z = X[:, 0], X[:, 1], X[:, 2]
    curved = 4 * (x - 2 + 8 * y - 8 * y**2) + (3 - 4 * y) ** 2 + 16 * np.sqrt(z + 1) * (2 * z - 1) ** 2
    return curved + sum((j + 1) * np.log(1 + X[:, 2:j].sum(axis=1)) for j in range(3, 8))


def flood(X: Array) -> Array:
    """Return by how much a dyke is higher than the river."""
    flow, friction, below, above, dyke, bank, length, width = X.T
    height = (flow / (width * friction * np.sqrt((above - below) / length))) ** 0.6
    return bank + dyke - below - height


FOUR_BRANCH = 6 / np.sqrt(2)  # the offset of two branches


def four_branch(X: Array) -> Array:
    x, y = X.T
    round_ones = 3 + 0.1 * (x - y) ** 2 - np.abs(x + y) / np.sqrt(2)
    return np.minimum(round_ones, FOUR_BRANCH - np.abs(x - y))


def four_branch_moments() -> Moments:
    """Return its moments: with s, d = (x ± y)/√2 it is min(3 + d²/5 - |s|, p - √2 |d|), and s is integrated exactly."""

    def gap(d: Array) -> Array:
        return 3 + 0.2 * d**2 - FOUR_BRANCH + np.sqrt(2) * d

    def value(n: int) -> tuple[float, float]:
        d, w = panels([0, optimize.brentq(gap, 0, 3), 2, 4, 9], n)
        weights, c, low = 2 * N.pdf(d) * w, gap(d), FOUR_BRANCH - np.sqrt(2) * d
        high = 3 + 0.2 * d**2
        tail = 2 * (N.pdf(c) - c * ndtr(-c))  # E (|s| - c)₊ for c > 0
        square = 2 * ((1 + c**2) * ndtr(-c) - c * N.pdf(c))
        half = np.sqrt(2 / np.pi)
        first = np.where(c > 0, low - tail, high - half)
        second = np.where(c > 0, low**2 - 2 * low * tail + square, high**2 - 2 * high * half + 1)
        return float(weights @ first), float(weights @ second)

    (mean, square), (coarse, _) = value(40), value(30)
    std = float(np.sqrt(square - mean**2))
    return Moments(mean, std, abs(mean - coarse) / std)


def franke(X: Array) -> Array:
    x, y = 9 * X.T
    peaks = 0.75 * np.exp(-((x - 2) ** 2 + (y - 2) ** 2) / 4) + 0.75 * np.exp(-((x + 1) ** 2) / 49 - (y + 1) ** 2 / 10)
    return peaks + 0.5 * np.exp(-((x - 7) ** 2 + (y - 3) ** 2) / 4) - 0.2 * np.exp(-((x - 4) ** 2) - (y - 7) ** 2)


def friedman(X: Array) -> Array:
    return 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]


def gayton_hat(X: Array) -> Array:
    return 0.5 * (X[:, 0] - 2) ** 2 - 1.5 * (X[:, 1] - 5) ** 3 - 3


def gramacy_sine(X: Array) -> Array:
    x = X[:, 0]
    return np.where(x <= 9.6, np.sin(0.2 * np.pi * x) + 0.2 * np.cos(0.8 * np.pi * x), 0.1 * x - 1)


def higdon_sine(X: Array) -> Array:
    return np.sin(2 * np.pi * X[:, 0] / 10) + 0.2 * np.sin(2 * np.pi * X[:, 0] / 2.5)


def holsclaw_sine(X: Array) -> Array:
    return X[:, 0] * np.sin(X[:, 0]) / 10


def hyper_sphere(X: Array) -> Array:
    return 1 - X[:, 0] ** 3 - X[:, 1] ** 3


def lim(X: Array) -> Array:
    return ((30 + 5 * X[:, 0] * np.sin(5 * X[:, 0])) * (4 + np.exp(-5 * X[:, 1])) - 100) / 6


def linkletter_sine(X: Array) -> Array:
    return np.sin(X[:, 0]) + np.sin(5 * X[:, 1])


def linkletter_moments() -> Moments:
    """Return the moments of the sum of two independent sines."""
    means = [1 - np.cos(1), (1 - np.cos(5)) / 5]
    squares = [0.5 - np.sin(2) / 4, 0.5 - np.sin(10) / 20]
    variances = [square - mean**2 for square, mean in zip(squares, means, strict=True)]
    return Moments(float(sum(means)), float(np.sqrt(sum(variances))))


def mclain(X: Array) -> Array:
    return np.sqrt(64 - np.sum((X - 5.5) ** 2, axis=1))


def moon(X: Array) -> Array:
    return X[:, 0] + X[:, 1] + 3 * X[:, 0] * X[:, 2]


def oakley(X: Array) -> Array:
    return 5 + X[:, 0] + np.cos(X[:, 0])


def piston(X: Array) -> Array:
    """Return the time of one cycle of a piston."""
    mass, surface, volume, spring, pressure, ambient, filling = X.T
    gas = pressure * volume * ambient / filling
    a = pressure * surface + 19.62 * mass - spring * volume / surface
    v = surface / (2 * spring) * (np.sqrt(a**2 + 4 * spring * gas) - a)
    return 2 * np.pi * np.sqrt(mass / (spring + surface**2 * gas / v**2))


def pipe_crack(X: Array) -> Array:
    radius, thickness, moment = 0.3377, 0.03377, 3.0
    return 4 * thickness * X[:, 0] * radius**2 * (np.cos(X[:, 1] / 2) - 0.5 * np.sin(X[:, 1])) - moment


def quadratic(X: Array) -> Array:
    return X[:, 0] - X[:, 1] ** 2


def shaft(X: Array) -> Array:
    """Return the strength of a shaft minus the stress in it, by its diameter, length, force, torque and strength."""
    diameter, length, force, torque, strength = X.T
    stress = 32 / (np.pi * (diameter / 1000) ** 3) * np.sqrt((force * length / 1000) ** 2 / 16 + torque**2)
    return 1e6 * strength - stress


def robot_arm(X: Array) -> Array:
    angles = np.cumsum(X[:, 4:], axis=1)
    return np.hypot(np.sum(X[:, :4] * np.cos(angles), axis=1), np.sum(X[:, :4] * np.sin(angles), axis=1))


#: logarithms of the factors of the sulfur model: means and standard deviations
SULFUR = (
    (4.2626798770413155, 0.13976194237515863),
    (-0.6931471805599453, 0.4054651081081644),
    (1.7047480922384253, 0.4054651081081644),
    (1.6094379124341003, 0.3364722366212129),
    (-1.2039728043259361, 0.26236426446749106),
    (0.5306282510621704, 0.1823215567939546),
    (-0.5447271754416722, 0.3364722366212129),
    (-0.941608539858445, 0.09531017980432493),
    (-0.3285040669720361, 0.1823215567939546),
)
SULFUR_FACTOR = -0.5 * 1361 * 3e12 / (5.1e14 * 365)  # solar constant, 10¹² g, and the area of the earth times a year


def sulfur(X: Array) -> Array:
    return SULFUR_FACTOR * X.prod(axis=1)


def sulfur_moments() -> Moments:
    """Return the moments of a lognormal variable."""
    means, stds = np.transpose(SULFUR)
    mean = SULFUR_FACTOR * np.exp(means.sum() + 0.5 * np.sum(stds**2))
    return Moments(float(mean), float(abs(mean) * np.sqrt(np.expm1(np.sum(stds**2)))))


def undamped_oscillator(X: Array) -> Array:
    mass, first, second, displacement, force, duration = X.T
    frequency = np.sqrt((first + second) / mass)
    return 3 * displacement - np.abs(2 * force / (mass * frequency**2) * np.sin(frequency * duration / 2))


def webster(X: Array) -> Array:
    return X[:, 0] ** 2 + X[:, 1] ** 3


def wing_weight(X: Array) -> Array:
    area, fuel, aspect, sweep, pressure, taper, thickness, load, gross, paint = X.T
    cosine = np.cos(np.radians(sweep))
    frame = 0.036 * area**0.758 * fuel**0.0035 * (aspect / cosine**2) ** 0.6 * pressure**0.006 * taper**0.04
    return frame * (100 * thickness / cosine) ** -0.3 * (load * gross) ** 0.49 + area * paint


def published() -> dict[str, tuple[Sequence[Any], Function, Truth]]:
    """Return inputs, function and true moments by name, in the order of the alphabet."""
    found: dict[str, tuple[Sequence[Any], Function, Truth]] = {}

    def add(name: str, marginals: Sequence[Any], f: Function, truth: Truth | int | Sequence[int]) -> None:
        found[name] = marginals, f, truth if callable(truth) else by_product(marginals, f, truth)

    wing = [(150, 200), (220, 300), (6, 10), (-10, 10), (16, 45), (0.5, 1), (0.08, 0.18), (2.5, 6), (1700, 2500)]
    cycle = [(30, 60), (0.005, 0.02), (0.002, 0.01), (1000, 5000), (9e4, 1.1e5), (290, 296), (340, 360)]
    masses = [(0.40048994268158034, 0.0997513451195927), (-4.610145351414675, 0.0997513451195927)]
    springs = [(-0.019610356576640665, 0.1980422004353651), (-4.624780542564731, 0.1980422004353651)]
    dampers = [(-3.0699422761131276, 0.38525317015992666), (-4.023594781085251, 0.47238072707743883)]
    oscillator = [lognormal(*p) for p in (*masses, *springs, *dampers, (4.600195020561507, 0.0997513451195927))]
    river = [
        truncated_gumbel(1013, 558, 500, 3000),
        stats.truncnorm(-15 / 8, np.inf, 30, 8),
        triangular(49, 51, 50),
        triangular(54, 56, 55),
        U(7, 2),
        triangular(55, 56, 55.5),
        triangular(4990, 5010, 5000),
        triangular(295, 305, 300),
    ]
    arm = [U(0, 1)] * 4 + [U(0, 2 * np.pi)] * 4
    undamped = [N(1, 0.05), N(1, 0.1), N(0.1, 0.01), N(0.5, 0.05), N(1, 0.2), N(1, 0.2)]
    shafts = [N(39, 0.1), N(400, 0.1), stats.gumbel_r(1342.481377359007, 272.8938804317866), N(250, 35), U(70, 10)]
    pistons = [U(low, high - low) for low, high in cycle]
    wings = [U(low, high - low) for low, high in (*wing, (0.025, 0.08))]
    gramacy = [U(0, 20)]
    add("Alemazkoor2D", [U(-1, 2)] * 2, alemazkoor, 12)
    add("Cheng2D", unit_cube(2), cheng, 24)
    add("ConvexFailDomain", [N(0, 1)] * 2, convex_failure_domain, 6)
    add("CurrinSine", unit_cube(1), currin_sine, 40)
    add("DampedCosine", unit_cube(1), damped_cosine, 40)
    add("DampedOscillator", oscillator, damped_oscillator, by_sobol(oscillator, damped_oscillator))
    add("Dette8D", unit_cube(8), dette, (2, 3, 10, 6, 6, 5, 4, 1))
    add("Flood", river, flood, by_sobol(river, flood))
    add("FourBranch", [N(0, 1)] * 2, four_branch, four_branch_moments)
    add("Franke1", unit_cube(2), franke, 40)
    add("Friedman10D", unit_cube(10), friedman, (20, 20, 3, 2, 2, 1, 1, 1, 1, 1))
    add("GaytonHat", [N(0, 1)] * 2, gayton_hat, 8)
    add("GramacySine", gramacy, gramacy_sine, by_panels(gramacy, gramacy_sine, [[9.6]], 40))
    add("HigdonSine", [U(1, 9)], higdon_sine, 60)
    add("HolsclawSine", [U(0, 10)], holsclaw_sine, 60)
    add("HyperSphere", [N(0.5, 0.2)] * 2, hyper_sphere, 8)
    add("LimNonPoly", unit_cube(2), lim, 24)
    add("LinkletterSine", unit_cube(10), linkletter_sine, linkletter_moments)
    add("McLainS1", [U(1, 9)] * 2, mclain, 40)
    add("Moon3D", unit_cube(3), moon, 4)
    add("Oakley1D", [N(0, 4)], oakley, 200)
    add("Piston", pistons, piston, (6, 10, 8, 10, 4, 3, 3))
    add("RSCircularPipeCrack", [N(301.079, 14.78), N(0.503, 0.049)], pipe_crack, 16)
    add("RSQuadratic", [N(11, 1), N(1.5, 0.5)], quadratic, 6)
    add("RSSpeedReducerShaft", shafts, shaft, (4, 4, 6, 24, 2))
    add("RobotArm", arm, robot_arm, by_sobol(arm, robot_arm))
    add("Sulfur", [lognormal(*p) for p in SULFUR], sulfur, sulfur_moments)
    add("UndampedOscillator", undamped, undamped_oscillator, by_sobol(undamped, undamped_oscillator))
    add("Webster2D", [U(1, 9), N(2, 1)], webster, 8)
    add("WingWeight", wings, wing_weight, (4, 2, 4, 5, 3, 3, 6, 4, 4, 2))
    return found


def functions() -> list[Problem]:
    """Return all of them; those with odd places in the alphabet have shifted inputs, the others are linearised."""
    members = []
    for place, (name, (marginals, f, truth)) in enumerate(published().items()):
        rule = linearised if place % 2 else shifted
        members.append(Problem(f"{name}, {rule.__name__}", marginals, (f, rule(f, marginals)), (1.0, COST), truth))
    return members
