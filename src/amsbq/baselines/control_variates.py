"""Monte Carlo with the secondary sources as control variates: regression on sources that are cheap to average.

Notation: at n random locations all sources are evaluated, y (n,) are the values of the primary one and Y (n, M) those
of the M secondary ones, which are also evaluated at further locations, N in total. A bar is an average, over the n or
the N locations. β (M,) are the slopes of the linear regression of y on Y, with residual variance s², and

    μ̂ = ȳ_n + βᵀ d,    d = Ȳ_N - Ȳ_n,    Var μ̂ ≈ s² (1/n + dᵀ (Y_cᵀ Y_c)⁻¹ d) + βᵀ Cov(Y) β / N,

where Y_c is Y minus its averages. The first term is the variance of the regression's prediction at the averages Ȳ_N,
the second one is due to their error. In survey statistics this is double sampling with regression (Cochran, Sampling
Techniques, 1977, Chapter 12); for simulations see Lavenberg and Welch (1981) and, with the allocation of the budget,
Peherstorfer, Willcox and Gunzburger (2016).

R² is the share of the primary source's variance that the regression explains. With costs c_0 of the primary source and
c of all secondary ones together, σ² ((1 - R²) / n + R² / N) is smallest for n c_0 + N c if
N / n = √(R² / (1 - R²) · c_0 / c).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from ..common.validation import Array, RNGLike
from ..design.sources import SourcesLike
from ..execution.executors import ExecutorLike
from ..measures.adapters import MeasureLike
from ..posterior.estimate import Estimate
from ..results.result import Result
from .averages import average
from .pilot import SETTINGS as PILOTS
from .pilot import fewest_values
from .sampling_run import Draw, SamplingRun, independent_draws


@dataclass(frozen=True)
class ControlVariateSettings:
    """Constants of the method."""

    pilot: int = 6  # locations of all sources, beyond one for each source, before R² is estimated for the first time
    confidence: float = 0.95  # confidence that R² is at least the value used: chance agreement must not be rewarded


SETTINGS = ControlVariateSettings()


def control_variate(
    sources: SourcesLike,
    measure: MeasureLike,
    *,
    budget: float,
    seed: RNGLike = None,
    rng: RNGLike = None,
    executor: ExecutorLike | None = None,
    workers: int = 1,
) -> Result:
    """Estimate the integral by Monte Carlo, with the secondary sources as control variates.

    All sources are evaluated at independent draws of the inputs, and the secondary ones at further draws. The number
    of these is chosen from the values so far, to minimise the variance for the cost. The primary source is regressed on
    the secondary ones. The error bar combines the errors of the regression and of the secondary sources' averages.

    Parameters
    ----------
    sources, measure, budget, seed, rng, executor, workers
        As in `monte_carlo`, with at least one secondary source.

    References
    ----------
    Lavenberg, S. S. and Welch, P. D. (1981). A perspective on the use of control variables to increase the efficiency
    of Monte Carlo simulations. Management Science 27(3).

    Peherstorfer, B., Willcox, K. and Gunzburger, M. (2016). Optimal model management for multifidelity Monte Carlo
    estimation. SIAM Journal on Scientific Computing 38(5).

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import amsbq
    >>> coarse = amsbq.Source(lambda x: 1 + x[0] + x[0] ** 2 / 2, cost=0.01)
    >>> result = control_variate([lambda x: np.exp(x[0]), coarse], stats.norm(0, 0.5), budget=50)
    >>> low, high = result.interval(0.95)
    >>> bool(low < np.exp(0.125) < high)
    True
    """
    run = SamplingRun(sources, measure, budget, seed, rng, executor, workers)
    run.require_secondary("a control variate")
    run.evaluate(_draws(run), adaptive=True)
    return run.progressive_result(_regression_estimate)


def _draws(run: SamplingRun) -> Iterator[Draw]:
    """Yield draws of the secondary sources, and of the primary one too whenever N / n is at least the best ratio."""
    L = len(run.sources)
    shared, ratio, next_review = 0, 1.0, L + SETTINGS.pilot
    for total, x in enumerate(independent_draws(run.measure, run.seed)):
        with_primary = total >= shared * ratio
        yield tuple(range(0 if with_primary else 1, L)), x
        shared += with_primary
        if shared >= next_review:
            ratio, next_review = _best_ratio(run), 1 + int(PILOTS.growth * shared)


def _best_ratio(run: SamplingRun) -> float:
    """Return N / n ≥ 1 with the smallest variance for the cost, at an upper confidence limit of 1 - R²."""
    table = run.table()
    shared = table[np.isfinite(table).all(axis=1)]
    n, L = shared.shape
    if n < fewest_values(L):
        return 1.0
    _, residuals = _regression(shared[:, 0], shared[:, 1:])
    largest_variance = residuals @ residuals / chdtri(n - L, SETTINGS.confidence)
    share = largest_variance / max(np.var(shared[:, 0], ddof=1), np.finfo(float).tiny)
    unexplained = float(np.clip(share, np.finfo(float).eps, 1.0))  # anything less is rounding error
    costs = run.average_costs()
    return max(math.sqrt((1 / unexplained - 1) * costs[0] / costs[1:].sum()), 1.0)


def _regression(y: Array, Y: Array) -> tuple[Array, Array]:
    """Return the slopes β (M,) of the linear regression of y (n,) on Y (n, M), and the residuals (n,)."""
    centred = Y - Y.mean(axis=0)
    slopes = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    return slopes, y - y.mean() - centred @ slopes


def _regression_estimate(table: Array) -> Estimate | None:
    """Return μ̂ with Student's t distribution from the values by draw, (N, 1 + M); None without primary values.

    With too few values for a regression, the estimate is the average of the primary ones.
    """
    everywhere = table[np.isfinite(table[:, 1:]).all(axis=1)]
    shared = everywhere[np.isfinite(everywhere[:, 0])]
    y, Y, all_Y = shared[:, 0], shared[:, 1:], everywhere[:, 1:]
    n, L = shared.shape
    if n < fewest_values(L):
        return average(y)
    slopes, residuals = _regression(y, Y)
    d = all_Y.mean(axis=0) - Y.mean(axis=0)
    leverage = np.linalg.lstsq((Y - Y.mean(axis=0)).T, d, rcond=None)[0]  # its square is dᵀ (Y_cᵀ Y_c)⁻¹ d
    of_regression = residuals @ residuals / (n - L) * (1 / n + leverage @ leverage)
    of_averages = np.var(all_Y @ slopes, ddof=1) / len(all_Y)
    return Estimate([y.mean() + d @ slopes], [math.sqrt(of_regression + of_averages)], dof=n - L)
