"""How long until a gas ignites, and what decides it? Delays over three orders of magnitude.

    python examples/ignition.py

Fuel is burnt at a rate that rises with the temperature, and heats the gas until it ignites. Temperature, activation
energy and pressure are uncertain, and the delay spans three orders of magnitude: all that is declared is that it is
positive. The simulator integrates the equations of temperature and fuel; the formula of Frank-Kamenetskii costs a
fiftieth. Sobol' indices say how much of the variance each input explains. The truth comes from Gauss rules.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp

import amsbq

#: the gas constant in kJ/(mol K), the rise of the temperature by all fuel in K, and the rate at 1 bar, in 1/µs
GAS, RISE, RATE = 8.314e-3, 1600.0, 3e5
INPUTS = {
    "temperature": stats.uniform(950, 250),  # K
    "activation": stats.norm(170, 4),  # kJ/mol
    "pressure": stats.lognorm(0.3, scale=5.0),  # bar
}


def simulator(temperature, activation, pressure):
    """Return when the temperature has risen by half of what is possible, in µs."""

    def change(t, state):
        burnt = pressure**0.8 * RATE * state[1] * np.exp(-activation / (GAS * state[0]))
        return [RISE * burnt, -burnt]

    def half(t, state):
        return state[1] - 0.5

    half.terminal = True
    found = solve_ivp(change, (0, 1e9), [temperature, 1.0], "LSODA", events=half, rtol=1e-8, atol=1e-10)
    return found.t_events[0][0]


def formula(temperature, activation, pressure):
    """Return the delay of a fuel that is not used up."""
    slope = GAS * temperature**2 / activation
    return slope / (RISE * pressure**0.8 * RATE) * np.exp(activation / (GAS * temperature))


def exact(temperature, activation, pressure, nodes=60):
    """Return the delay as an integral over the temperature, which the fuel follows; works on arrays."""
    u, w = np.polynomial.legendre.leggauss(nodes)
    risen = 0.25 * (u + 1)[:, None]  # the share of the rise, from 0 to 1/2
    T = temperature + RISE * risen
    return np.sum(0.25 * w[:, None] / ((1 - risen) * RATE * pressure**0.8) * np.exp(activation / (GAS * T)), axis=0)


def truth(nodes=48):
    """Return the expected delay, and its total Sobol' index by temperature, by Gauss rules for all inputs."""
    t, of_t = np.polynomial.legendre.leggauss(nodes)
    z, of_z = np.polynomial.hermite_e.hermegauss(nodes)
    x = np.meshgrid(950 + 125 * (t + 1), 170 + 4 * z, 5 * np.exp(0.3 * z), indexing="ij")
    values = exact(*map(np.ravel, x)).reshape(x[0].shape)
    of_t, of_z = of_t / of_t.sum(), of_z / of_z.sum()
    mean, square = (np.einsum("ijk,i,j,k", values**power, of_t, of_z, of_z) for power in (1, 2))
    explained = np.einsum("ijk,i->jk", values, of_t)  # by all but the temperature
    return float(mean), float(1 - (of_z @ explained**2 @ of_z - mean**2) / (square - mean**2))


def run(budget=6.0, seed=0):
    """Return the result of a run; 1 is the cost of a simulation."""
    return amsbq.integrate(
        [amsbq.Source(simulator), amsbq.Source(formula, cost=0.02)],
        INPUTS,
        budget=budget,
        seed=seed,
        title="The ignition of a gas",
        output_range=(0.0, np.inf),
        units={"output": "µs", "cost": "simulations", "temperature": "K", "activation": "kJ/mol", "pressure": "bar"},
        labels={"output": "delay", "activation": "activation energy"},
    )


def answers(result):
    """Return what is known and the truth, by name."""
    mean, total = truth()
    return {
        "delay (µs)": (result.estimate, mean),
        "total index of the temperature": (result.sensitivity().total[0], total),
    }


def draw(result):
    """Draw the delays that were simulated, and the Sobol' indices."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    rng = np.random.default_rng(0)
    x = np.array([inputs.rvs(1500, random_state=rng) for inputs in INPUTS.values()])
    left.scatter(x[0], formula(*x), s=3, color="0.75", label="formula")
    of = [e for e in result.evaluations if e.source == 0]
    left.plot([e.x[0] for e in of], [e.value for e in of], "o", color="tab:blue", label="simulated")
    left.axhline(result.mean, color="tab:red", linewidth=1, label="expected")
    left.set(yscale="log", xlabel="temperature in K", ylabel="delay in µs")
    left.legend(frameon=False)
    amsbq.plots.sensitivity(result, ax=right)
    return figure


if __name__ == "__main__":
    result = run()
    print(result)
    for name, (known, truth) in answers(result).items():
        print(f"{name}: {known.mean:.4g} ± {known.std:.2g}; the truth is {truth:.4g}")
    draw(result).savefig("ignition.png", dpi=120)
