"""Learning the hyperparameters: the most probable θ.

Notation: θ (P,) as in `hyper`; the density is p(θ | y) ∝ p(y | θ) p(θ).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize

from .checks import Array
from .hyper import Parametrisation


def maximise(parametrisation: Parametrisation, starts: Sequence[Array] = ()) -> tuple[Array, float]:
    """The θ of highest posterior density found from the centre of the prior and other starts, and its log density.

    By L-BFGS-B with exact gradients. Where a θ cannot be evaluated, for example because its covariance overflows, the
    density is taken to be zero.
    """
    bounds = parametrisation.bounds()
    low, high = np.transpose(bounds)

    def objective(theta: Array) -> tuple[float, Array]:
        try:
            value, gradient = parametrisation.log_posterior_and_grad(theta)
        except ValueError:
            return np.inf, np.zeros_like(theta)
        return -value, -gradient

    best = parametrisation.start()
    best_value, _ = parametrisation.log_posterior_and_grad(best)  # what is wrong even here is an error
    for start in (best, *starts):
        found = minimize(objective, np.clip(start, low, high), jac=True, method="L-BFGS-B", bounds=bounds)
        if -found.fun > best_value:
            best, best_value = found.x, float(-found.fun)
    return best, best_value
