"""What is the right to buy an option worth? An option on an American put, whose own price takes a tree.

    python examples/option.py

In half a year we may buy, for 8, a put on a share that may be exercised at any time in the year after. Today's price is
the discounted average of what that right is worth in half a year, over the price of the share and its volatility by
then, which rises when the share falls. An American put has no formula: a tree with 2,000 steps prices it, one with 40
steps nearly does. The truth comes from the fine tree at the nodes of Gauss rules, up to where the right is worthless.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.optimize import brentq

import amsbq

SHARE, STRIKE, RIGHT, RATE, HALF, YEAR = 100.0, 100.0, 8.0, 0.05, 0.5, 1.0
SPREAD, VOLATILITY, WOBBLE, LEVERAGE = 0.25 * HALF**0.5, 0.25, 0.2, -0.6
#: logarithms of the share over its price today, and of the volatility over its median
INPUTS = amsbq.Gaussian(
    [(RATE - 0.25**2 / 2) * HALF, 0.0],
    [[SPREAD**2, LEVERAGE * SPREAD * WOBBLE], [LEVERAGE * SPREAD * WOBBLE, WOBBLE**2]],
)


def american(share, volatility, steps):
    """Return the price of an American put, by a binomial tree."""
    up = np.exp(volatility * np.sqrt(YEAR / steps))
    growth, discount = np.exp(RATE * YEAR / steps), np.exp(-RATE * YEAR / steps)
    p = (growth - 1 / up) / (up - 1 / up)
    prices = share * up ** np.arange(-steps, steps + 1)
    value = np.maximum(STRIKE - prices[::2], 0)
    for left in range(steps - 1, -1, -1):
        now = prices[steps - left : steps + left + 1 : 2]
        value = np.maximum(discount * (p * value[1:] + (1 - p) * value[:-1]), STRIKE - now)
    return value[0]


def right(share, volatility, steps):
    """Return what the right to buy the put is worth in half a year, discounted to today."""
    return np.exp(-RATE * HALF) * max(
        american(SHARE * np.exp(share), VOLATILITY * np.exp(volatility), steps) - RIGHT, 0.0
    )


def fine(share, volatility):
    """Return it by a tree with 2,000 steps."""
    return right(share, volatility, 2000)


def coarse(share, volatility):
    """Return it by a tree with 40 steps."""
    return right(share, volatility, 40)


def truth(nodes=16):
    """Return the expected value: Gauss rules for both inputs, that for the share up to where the value becomes zero."""
    z, wz = np.polynomial.hermite_e.hermegauss(9)
    u, wu = np.polynomial.legendre.leggauss(nodes)
    total = 0.0
    for zi, wi in zip(z, wz / wz.sum(), strict=True):
        share = stats.norm(INPUTS.mean[0] + LEVERAGE * SPREAD * zi, SPREAD * np.sqrt(1 - LEVERAGE**2))
        volatility = VOLATILITY * np.exp(WOBBLE * zi)
        end = brentq(lambda s, v=volatility: american(SHARE * np.exp(s), v, 2000) - RIGHT, -1.0, 1.0, xtol=1e-6)
        low = share.mean() - 6 * share.std()
        s = low + (end - low) * (u + 1) / 2
        values = np.array([american(SHARE * np.exp(si), volatility, 2000) - RIGHT for si in s])
        total += wi * (end - low) / 2 * np.sum(wu * values * share.pdf(s))
    return float(np.exp(-RATE * HALF) * total)


def run(budget=10.0, seed=0):
    """Return the result of a run; 1 is the cost of a fine tree."""
    return amsbq.integrate(
        [amsbq.Source(fine), amsbq.Source(coarse, cost=0.02)],
        INPUTS,
        names=["share", "volatility"],
        budget=budget,
        seed=seed,
        title="The right to buy an American put",
        units={"output": "€", "cost": "fine trees"},
        labels={"output": "price", "share": "log share", "volatility": "log volatility"},
        output_range=(0.0, np.inf),
    )


def answers(result):
    """Return what is known and the truth, by name."""
    return {"price (€)": (result.estimate, truth())}


def draw(result):
    """Draw where the trees were evaluated, over what the right is worth, and the convergence to the price."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    share, volatility = np.meshgrid(np.linspace(60, 150, 60), np.linspace(0.13, 0.45, 40))
    worth = np.vectorize(coarse)(np.log(share / SHARE), np.log(volatility / VOLATILITY))
    left.contour(share, volatility, worth, [0.01], colors="0.4", linewidths=1)
    filled = left.contourf(share, volatility, worth, 12, cmap="Greens")
    figure.colorbar(filled, ax=left, label="worth in half a year, in today's €")
    for source, style in ((1, "s"), (0, "o")):
        x = np.array([e.x for e in result.evaluations if e.source == source])
        x = (SHARE, VOLATILITY) * np.exp(x)
        left.plot(
            *x.T, style, color=("tab:blue", "tab:orange")[source], label=result.names[source], markersize=6 - 2 * source
        )
    left.set(xlabel="price of the share in half a year, €", ylabel="volatility", xlim=(60, 150), ylim=(0.13, 0.45))
    left.legend()
    amsbq.plots.convergence(result, ax=right)
    return figure


if __name__ == "__main__":
    result = run()
    print(result)
    for name, (known, truth) in answers(result).items():
        print(f"{name}: {known.mean:.4g} ± {known.std:.2g}; the truth is {truth:.4g}")
    draw(result).savefig("option.png", dpi=120)
