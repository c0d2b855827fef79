"""How far does a ball fly on average, if its speed and angle are uncertain? A picture of what a few flights tell.

    python examples/ball.py [--budget 6] [picture.png]

Left: every flight that was computed, through the air by the simulator, and without air by a formula that is nearly
free. Right: what is known of the average, against what was paid. Needs matplotlib: pip install 'amsbq[plot]'.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import amsbq

INPUTS = {"speed": stats.norm(40, 3), "angle": stats.uniform(0.5, 0.5)}
SIMULATOR, FORMULA = "#0072B2", "#D55E00"


def path(speed, angle):
    """Return the points of a flight through the air, (n, 2), in metres."""
    r, v = np.zeros(2), speed * np.array([np.cos(angle), np.sin(angle)])
    points = [r]
    while r[1] >= 0:
        r, v = r + 2e-3 * v, v - 2e-3 * (0.004 * np.hypot(*v) * v + [0, 9.81])
        points.append(r)
    return np.array(points)


def simulator(speed, angle):
    """Return how far the ball flies through the air, in metres."""
    return path(speed, angle)[-1, 0]


def formula(speed, angle):
    """Return how far it would fly without air: nearly free, and too far by half."""
    return speed**2 * np.sin(2 * angle) / 9.81


def moments(nodes=8):
    """Return the mean and the standard deviation of the flight by Gauss rules, with nodes² runs of the simulator."""
    z, wz = np.polynomial.hermite_e.hermegauss(nodes)
    u, wu = np.polynomial.legendre.leggauss(nodes)
    values = np.array([[simulator(40 + 3 * zi, 0.75 + 0.25 * ui) for ui in u] for zi in z])
    weights = np.outer(wz, wu) / (wz.sum() * wu.sum())
    mean = np.sum(weights * values)
    return mean, np.sqrt(np.sum(weights * (values - mean) ** 2))


def draw_flights(ax, result):
    """Draw every flight that the run has computed; return how many there are of each source."""
    counts = [0, 0]
    for e in result.evaluations:
        speed, angle = e.x
        counts[e.source] += 1
        if e.source == 0:
            x, y = path(speed, angle).T
            ax.plot(x, y, color=SIMULATOR, linewidth=2, zorder=3)
        else:
            t = np.linspace(0, 2 * speed * np.sin(angle) / 9.81, 100)
            x, y = speed * np.cos(angle) * t, speed * np.sin(angle) * t - 9.81 / 2 * t**2
            ax.plot(x, y, color=FORMULA, linewidth=0.8, alpha=0.6)
        ax.plot(x[-1], 0, "o" if e.source == 0 else "s", color=(SIMULATOR, FORMULA)[e.source], clip_on=False, zorder=4)
    ax.set(xlim=(0, None), ylim=(0, 95), xlabel="distance in m", ylabel="height in m")
    beside = {"transform": ax.transAxes, "fontsize": "medium", "fontweight": "bold"}
    ax.text(0.03, 0.93, f"{counts[0]} runs of an expensive simulator", color=SIMULATOR, **beside)
    ax.text(0.03, 0.86, f"{counts[1]} of a cheap formula, which is wrong", color=FORMULA, **beside)
    ax.set_title("How far does the ball fly on average?", loc="left", fontweight="bold")


def draw_knowledge(ax, result, budget):
    """Draw the 95 % interval of the average against cost, and that of an average of random runs."""
    truth, spread = moments()
    n = np.linspace(2, budget, 200)
    half = 1.96 * spread / np.sqrt(n)
    ax.fill_between(n, truth - half, truth + half, color="0.87", linewidth=0)
    cost = np.append(np.cumsum([e.cost for e in result.evaluations]), budget)
    mean, std = (np.array([getattr(e, name) for e in result.evaluations]) for name in ("mean", "std"))
    low, high = ((end - result.mean) / result.std for end in result.interval(0.95))
    ends = [np.append(values, values[-1]) for values in (mean + low * std, mean + high * std, mean)]
    ax.fill_between(cost, *ends[:2], step="post", color=SIMULATOR, alpha=0.3, linewidth=0)
    ax.step(cost, ends[2], where="post", color=SIMULATOR, linewidth=2)
    ax.axhline(truth, color="black", linewidth=1, linestyle=":")
    ax.text(2.6, truth - 0.3, "truth", va="top")
    ax.text(3.2, truth + 10.5, "random runs alone", color="0.35")
    right = {"color": SIMULATOR, "ha": "right", "va": "top"}
    latest = result.estimate.summary("m").partition(" (std)")[0]
    ax.text(budget - 0.05, truth - 3.2, f"amsbq: {latest}", fontsize="x-large", fontweight="bold", **right)
    as_many = (spread / result.std) ** 2
    ax.text(budget - 0.05, truth - 6.0, f"as good as {round(as_many, -1):.0f} random runs", **right)
    ax.set(xlim=(2, budget), ylim=(truth - 17, truth + 17), xlabel="cost, in runs of the simulator")
    ax.xaxis.set_major_locator(plt.MaxNLocator(integer=True))
    ax.set_ylabel("average distance in m, 95 % intervals")
    ax.set_title("What is known, for what was paid", loc="left", fontweight="bold")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("picture", nargs="?", default="ball.png")
    parser.add_argument("--budget", type=float, default=6.0)
    options = parser.parse_args()

    sources = [simulator, amsbq.Source(formula, cost=0.01)]
    result = amsbq.integrate(sources, INPUTS, budget=options.budget, progress=False)
    print(result)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    draw_flights(left, result)
    draw_knowledge(right, result, options.budget)
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(options.picture, dpi=150)


if __name__ == "__main__":
    main()
