"""api."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .design.integrator import Integrator
from .design.stopping import StopRule, evaluations, tolerance
from .execution.runner import run
from .gp.data import Data
from .gp.posterior import MultiSourceGP
from .gp.threads import threads_for
from .inference.belief import learn
from .inference.estimate import Estimate
from .inference.structures import model_named, noise_levels
from .measures.adapters import as_measure
from .results.result import Result
from .validation import count


def integrate(
    sources: Any,
    measure: Any,
    *,
    budget: float,
    model: str | MultiSourceGP = "auto",
    acquisition: str = "mi",
    seed: int = 0,
    initial: Sequence[tuple[int, ArrayLike]] | None = None,
    rel_tol: float | None = None,
    abs_tol: float | None = None,
    executor: Any = None,
    workers: int = 1,
    journal: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
    max_evaluations: int | None = None,
    stop: StopRule | Sequence[StopRule] = (),
) -> Result:
    """The expected output of an expensive source, by evaluating it and its cheaper approximations.

    Parameters
    ----------
    sources : function, `Source`, or list of them
        The primary one, whose integral is wanted, first. They are called with x of shape (D,), and return a number or
        an `Observation`. Plain functions have cost 1; say `Source(function, cost=0.05)` for a cheap one.
    measure : measure, or anything that `as_measure` takes
        The distribution of the inputs: one scipy.stats distribution; or a list that has one, or a (low, high) pair, for
        each input; or a measure.
    budget : float
        In units of cost.
    model, acquisition, seed, initial
        As in `Integrator`.
    rel_tol, abs_tol : float, optional
        Stop when half the width of the 95 % interval is below this share of the mean, or below this number.
    executor : concurrent.futures.Executor or distributed.Client, optional
        Where to evaluate: any executor, or a Dask cluster. By default in this thread, or, if there are several workers
        or a source has a timeout, in threads of their own.
    workers : int
        Evaluations at the same time.
    journal : path, optional
        A file to which everything is written as it happens. If it is there already, the run goes on where that one
        ended, and nothing that was evaluated is evaluated again; a run that had come to its end is only looked at. A
        larger budget makes it go on.
    progress : bool, optional
        Whether to show how the run goes; by default if there is a terminal.
    max_evaluations : int, optional
    stop : function of the `Integrator`, or a list of them, optional
        The run stops when one of them returns a reason (a string) instead of None.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import amsbq
    >>> def fine(x):
    ...     return np.exp(-(x[0] ** 2))
    >>> def coarse(x):
    ...     return 1 / (1 + x[0] ** 2)
    >>> result = amsbq.integrate([fine, amsbq.Source(coarse, cost=0.1)], stats.norm(0, 0.5), budget=4)
    >>> low, high = result.interval(0.95)
    >>> bool(low < np.sqrt(2 / 3) < high)
    True
    """
    it = Integrator(sources, measure, budget=budget, model=model, acquisition=acquisition, seed=seed, initial=initial)
    for name, source in zip(it.names, it.sources, strict=True):
        if source.function is None:
            raise TypeError(f"{name} has no function to call: give it one, or use an Integrator and tell it values")
    rules = [stop] if callable(stop) else list(stop)
    if rel_tol is not None or abs_tol is not None:
        rules.append(tolerance(rel_tol, abs_tol))
    if max_evaluations is not None:
        rules.append(evaluations(max_evaluations))
    return run(it, rules, executor, workers, journal, initial, progress)


def estimate(
    sources: ArrayLike,
    X: ArrayLike,
    y: ArrayLike,
    measure: Any,
    *,
    model: str | MultiSourceGP = "auto",
    noise: Any = 0.0,
    noise_var: ArrayLike | None = None,
    seed: int = 0,
) -> Estimate:
    """The integral of source 0, from observations that are already there.

    Parameters
    ----------
    sources : (N,) ints, or one for all
        Which source each observation is of; 0 is the primary one.
    X : (N, D) array
    y : (N,) array
    measure : measure, or anything that `as_measure` takes
        The distribution of the inputs.
    model : str or MultiSourceGP
        "auto", the default; "icm", the paper's, with the most probable hyperparameters; "lmc", a linear model of
        coregionalisation; "ar", autoregressive, for sources in order of fidelity; "vbq", which uses source 0 only; or
        a `MultiSourceGP` with hyperparameters of your own.
    noise : float, "learn", or a list of one for each source
        Variance of the noise on observations of each source.
    noise_var : (N,) array, optional
        Known variance of each observation, on top of that.
    seed : int
        For the draws of the hyperparameters.

    Examples
    --------
    >>> import numpy as np
    >>> import amsbq
    >>> x = np.array([0.1, 0.5, 0.9])
    >>> x_cheap = np.append(x, np.linspace(0, 1, 12))
    >>> sources = [0] * 3 + [1] * 15
    >>> y = np.concatenate([np.sin(5 * x), 0.8 * np.sin(5 * x_cheap) + x_cheap - 0.3])
    >>> answer = amsbq.estimate(sources, np.append(x, x_cheap), y, amsbq.Uniform(0, 1))
    >>> low, high = answer.interval(0.95)
    >>> bool(low < (1 - np.cos(5)) / 5 < high)
    True
    """
    measure, seed = as_measure(measure), count(seed, "seed")
    chosen = model if isinstance(model, MultiSourceGP) else model_named(model)
    levels = noise_levels(noise, 1 + int(np.max(sources, initial=0)) if np.size(sources) else 1)
    data = Data.checked(measure, np.zeros(len(levels)), sources, X, y, noise_var)
    with threads_for(len(data.y)):
        return learn(chosen, measure, data, levels, seed).estimate
