"""How far does a well draw down the groundwater? A program that reads a deck, evaluated by the workers of a cluster.

    python examples/cluster/script.py

The program, well.awk, knows nothing of Python: it reads a deck, and prints a report. For each evaluation, the deck is
written from the template well.deck into a directory of its own, and the drawdown is read from the report. Two workers
of a Dask cluster on this machine run two evaluations at a time; with `dask_jobqueue.SLURMCluster` instead of
`LocalCluster`, they are jobs of SLURM. The truth comes from the formula of Theis.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster
from scipy import stats
from scipy.special import exp1

import amsbq

HERE = Path(__file__).resolve().parent
INPUTS = {
    "transmissivity": stats.lognorm(0.5, scale=300),  # m²/d
    "storage": stats.lognorm(0.7, scale=3e-4),
    "rate": stats.norm(1500, 100),  # that is pumped, m³/d
}


def program(folder, name, cells, steps, cost):
    """Return the program on a grid as a source, with its work directories in a folder."""
    command = amsbq.external.Command(
        ["awk", "-f", str(HERE / "well.awk"), "well.deck"],
        list(INPUTS),
        folder,
        template=str(HERE / "well.deck"),
        output={"regex": r"drawdown (\S+) m"},
        settings={"cells": cells, "steps": steps},
        workdir="{source}-{id}",
    )
    return amsbq.Source(command, cost=cost, name=name)


def theis(transmissivity, storage, rate, distance=50, days=10):
    """Return the drawdown of a well in an infinite aquifer, in m."""
    u = distance**2 * storage / (4 * transmissivity * days)
    return rate / (4 * np.pi * transmissivity) * exp1(u)


def truth(nodes=40):
    """Return the expected drawdown, by Gauss rules; the rate enters by its mean."""
    z, w = np.polynomial.hermite_e.hermegauss(nodes)
    values = theis(300 * np.exp(0.5 * z[:, None]), 3e-4 * np.exp(0.7 * z), 1500)
    return float(w @ values @ w / w.sum() ** 2)


def run(budget=6.0, seed=0):
    """Return the result of a run; 1 is the cost of the fine grid."""
    here = "127.0.0.1:0"  # any free port, for this machine only
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalCluster(2, processes=False, dashboard_address=here, worker_dashboard_address=here) as cluster,
        Client(cluster) as client,
    ):
        return amsbq.integrate(
            [program(folder, "fine", 400, 800, cost=1.0), program(folder, "coarse", 20, 15, cost=0.05)],
            INPUTS,
            budget=budget,
            seed=seed,
            executor=client,
            workers=2,
            title="The drawdown of a well",
            units={"output": "m", "cost": "fine runs", "transmissivity": "m²/d", "rate": "m³/d"},
            labels={"output": "drawdown"},
        )


def answers(result):
    """Return what is known and the truth, by name."""
    return {"drawdown (m)": (result.estimate, truth())}


def draw(result):
    """Draw the water's table around the well in random aquifers, and the drawdown against the transmissivity."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    rng, distance = np.random.default_rng(0), np.geomspace(0.5, 300, 200)
    for x in zip(*(inputs.rvs(60, random_state=rng) for inputs in INPUTS.values()), strict=True):
        for side in (-1, 1):
            left.plot(side * distance, -theis(*x, distance), color="tab:blue", alpha=0.25, linewidth=0.8)
    left.axvline(50, color="tab:red", linewidth=1)
    left.annotate("here", (50, -13), (70, -13), color="tab:red")
    left.set(xlabel="m from the well", ylabel="level of the water in m", ylim=(-16, 0))
    amsbq.plots.sources(result, ax=right, input="transmissivity")
    return figure


if __name__ == "__main__":
    result = run()
    print(result)
    for name, (known, truth) in answers(result).items():
        print(f"{name}: {known.mean:.4g} ± {known.std:.2g}; the truth is {truth:.4g}")
    draw(result).savefig("well.png", dpi=120)
