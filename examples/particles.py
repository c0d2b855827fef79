"""How many particles get through a wall? Averages over few particles and over many, whose noise is learned.

    python examples/particles.py [--budget 4]

Particles enter a wall at its left side. On the way they are scattered, into either direction, or absorbed; the output
is the share of those that leave at the right side. Uniform are the thickness of the wall in free paths, and the share
of collisions that scatter. An average over n particles has noise with a variance like 1/n. Nobody has to say how large
it is: it is learned from all levels together. The expected output is known.
"""

import argparse

import numpy as np
from scipy import stats
from scipy.integrate import dblquad

import amsbq

INPUTS = {"thickness": stats.uniform(0.5, 2.0), "scattered": stats.uniform(0.2, 0.7)}


class Wall:
    """The simulator: another random average at each call."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def __call__(self, thickness, scattered, particles):
        """Return the share of particles that leave at the right side."""
        rng, through = self.rng, 0
        x, direction = np.zeros(particles), np.ones(particles)
        while len(x):
            x = x + direction * rng.exponential(size=len(x))
            through += np.count_nonzero(x > thickness)
            inside = (x > 0) & (x < thickness) & (rng.random(len(x)) < scattered)
            x, direction = x[inside], rng.choice([-1.0, 1.0], np.count_nonzero(inside))
        return through / particles


def exact(thickness, scattered):
    """Return the share for infinitely many particles: fluxes to both sides obey two linear equations."""
    kappa, out = np.sqrt(1 - scattered), 1 - scattered / 2
    return kappa / (kappa * np.cosh(kappa * thickness) + out * np.sinh(kappa * thickness))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=4.0, help="1 is the cost of 10000 particles")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    sources = amsbq.levels(
        Wall(options.seed), particles=[10000, 1000, 100], cost=lambda particles: particles / 10000, noise="learn"
    )
    result = amsbq.integrate(sources, INPUTS, budget=options.budget, seed=options.seed)
    print(result)
    truth = dblquad(lambda scattered, thickness: exact(thickness, scattered) / 1.4, 0.5, 2.5, 0.2, 0.9)[0]
    print(f"the truth is {truth:.6f}")


if __name__ == "__main__":
    main()
