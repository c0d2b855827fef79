"""How much energy does a wind farm yield in a year? Turbines in each other's wakes, and dependent inputs.

    python examples/windfarm.py

Nine turbines stand in three rows. The simulator has smooth wakes, which are wider in turbulent air, and averages the
wind over every rotor; the cheap model has wakes with sharp edges, takes the wind at the hubs, and ignores turbulence.
Speed, direction and turbulence are dependent: strong winds come from the west, and are less turbulent. The truth is the
average of the simulator over 32,768 winds.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import amsbq

DIAMETER, RATED, THRUST = 120.0, 4.0, 0.75  # m, MW, coefficient of thrust
GIGAWATT_HOURS = 8.766  # in a year of one megawatt
PLACES = DIAMETER * np.array([(5 * i + 2 * j, 6 * j) for j in range(3) for i in range(3)])
NAMES = ["speed", "direction", "turbulence"]
WIND = amsbq.GaussianCopula(
    [
        stats.weibull_min(2.2, scale=9.5),  # m/s
        stats.norm(250, 25),  # from where it blows, in degrees
        stats.lognorm(0.25, scale=0.1),  # standard deviation over mean
    ],
    [[1.0, 0.3, -0.5], [0.3, 1.0, 0.0], [-0.5, 0.0, 1.0]],
)
ACROSS, ALONG = np.meshgrid(*[(np.arange(8) - 3.5) / 8] * 2)  # points of a rotor, in diameters
ROTOR = np.column_stack([ACROSS.ravel(), ALONG.ravel()])[np.hypot(ACROSS, ALONG).ravel() < 0.5] * DIAMETER


def power(speed):
    """Return the power of a turbine in MW."""
    return RATED / (1 + np.exp((9.0 - speed) / 1.3)) ** 1.5


def distances(direction):
    """Return how far each turbine is behind each other one, and beside it, shapes (9, 9), in m."""
    angle = np.radians(270 - direction)  # to where it blows, from the east
    apart = PLACES[:, None] - PLACES
    return apart @ [np.cos(angle), np.sin(angle)], apart @ [-np.sin(angle), np.cos(angle)]


def simulator(speed, direction, turbulence):
    """Return the energy of a year of this wind, in GWh."""
    behind, beside = distances(direction)
    width = 0.32 * DIAMETER + (0.003 + 0.38 * turbulence) * np.maximum(behind, 0)
    centre = 1 - np.sqrt(np.maximum(1 - THRUST / (8 * (width / DIAMETER) ** 2), 0))
    away = (beside[..., None] + ROTOR[:, 0]) ** 2 + ROTOR[:, 1] ** 2
    deficit = (centre[..., None] * np.exp(-away / (2 * width[..., None] ** 2))).mean(axis=-1) * (behind > 0)
    return GIGAWATT_HOURS * power(speed * (1 - np.sqrt(np.sum(deficit**2, axis=1)))).sum()


def sharp(speed, direction):
    """Return the energy by wakes with sharp edges."""
    behind, beside = distances(direction)
    radius = DIAMETER / 2 + 0.05 * np.maximum(behind, 0)
    deficit = (1 - np.sqrt(1 - THRUST)) * (DIAMETER / 2 / radius) ** 2 * (behind > 0) * (abs(beside) < radius)
    return GIGAWATT_HOURS * power(speed * (1 - np.sqrt(np.sum(deficit**2, axis=1)))).sum()


def truth(n=32_768):
    """Return the expected energy of a year, by Sobol' points."""
    points = WIND.from_cube(stats.qmc.Sobol(3, rng=0).random(n))
    return float(np.mean([simulator(*x) for x in points]))


def run(budget=20.0, seed=0):
    """Return the result of a run; 1 is the cost of a simulation."""
    return amsbq.integrate(
        [amsbq.Source(simulator), amsbq.Source(sharp, cost=0.05)],
        WIND,
        names=NAMES,
        budget=budget,
        seed=seed,
        title="A wind farm of nine turbines",
        units={"output": "GWh", "cost": "simulations", "speed": "m/s", "direction": "°"},
        labels={"output": "yearly energy"},
    )


def answers(result):
    """Return what is known and the truth, by name."""
    return {"yearly energy (GWh)": (result.estimate, truth())}


def draw(result):
    """Draw the farm in a wind from the south-west, and the energy against the speed of the wind."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    angle = np.radians(270 - 240)
    x, y = np.meshgrid(np.linspace(-300, 2100, 300), np.linspace(-400, 1900, 300))
    total = np.zeros_like(x)
    for place in PLACES:
        dx, dy = x - place[0], y - place[1]
        behind, beside = dx * np.cos(angle) + dy * np.sin(angle), dy * np.cos(angle) - dx * np.sin(angle)
        width = DIAMETER * 0.32 + 0.041 * np.maximum(behind, 0)
        centre = 1 - np.sqrt(np.maximum(1 - THRUST / (8 * (width / DIAMETER) ** 2), 0))
        total += (centre * np.exp(-(beside**2) / (2 * width**2)) * (behind > 0)) ** 2
    field = left.pcolormesh(x, y, 10 * (1 - np.sqrt(total)), cmap="Blues_r", rasterized=True)
    figure.colorbar(field, ax=left, label="wind in m/s")
    left.plot(*PLACES.T, "o", color="tab:orange")
    left.set(xlabel="m to the east", ylabel="m to the north", aspect="equal", title="10 m/s from 240°")
    amsbq.plots.sources(result, ax=right, input="speed")
    return figure


if __name__ == "__main__":
    result = run()
    print(result)
    for name, (known, truth) in answers(result).items():
        print(f"{name}: {known.mean:.4g} ± {known.std:.2g}; the truth is {truth:.4g}")
    draw(result).savefig("windfarm.png", dpi=120)
