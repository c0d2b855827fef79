"""`amsbq demo`: the paper's two-source example of Section 4.1 in numbers, for a first look."""

from __future__ import annotations

import numpy as np

from . import forrester


def demonstrate() -> int:
    """Print the integral from three observations of the primary source, and what five of the secondary one add.

    Returns
    -------
    int
        The exit code of the command, 0.
    """
    truth = forrester.true_integral()
    both, alone = forrester.starting_posterior(), forrester.starting_posterior(sources=(0,))
    print("∫ f₁ over [0, 1] of the Forrester function f₁(x) = (6x - 2)² sin(12x - 4)")
    print("with the cheap relative f₂(x) = f₁(x)/2 + 10x; hyperparameters fixed by hand.")
    print()
    print(f"{'observations':28} {'estimate':>9}   {'std':>5}   {'error':>6}")
    for name, posterior in (("3 of f₁ (vanilla BQ)", alone), ("3 of f₁ and 5 of f₂", both)):
        mean, variance = posterior.integral()
        print(f"{name:28} {mean:9.3f} ± {variance**0.5:5.3f}   {mean - truth:+6.3f}")
    print(f"{'true value':28} {truth:9.3f}")
    print()
    grid = np.linspace(0, 1, 1001)[:, None]
    print("One more observation would reduce the variance, at best, by this share (ρ²):")
    for source, name in enumerate(("f₁", "f₂")):
        rho2 = both.squared_correlation(source, grid)
        print(f"    of {name} at x = {grid[rho2.argmax(), 0]:.2f}: {rho2.max():.0%}")
    return 0
