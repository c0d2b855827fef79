"""`certify`: an unbiased estimate from fresh random evaluations, however poor the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .certificates.certificate import Certificate
from .certificates.plan import ModelAnswer, Plan
from .common.threads import threads_for
from .common.validation import RNGLike, brief, positive_number, seed_number
from .execution.certify import certificate_of
from .execution.executors import ExecutorLike
from .execution.journal import JournalPath
from .measures.adapters import NamedMeasureLike, measure_of_inputs
from .posterior.posterior import Posterior
from .posterior.targets import Target, checked_targets, target_estimate
from .results.result import Result, of_same_inputs
from .results.result import targets as targets_of_run


def certify(
    result: Result,
    budget: float,
    seed: RNGLike = 0,
    *,
    target: Target | Mapping[str, Target] | None = None,
    under: NamedMeasureLike | None = None,
    primary_only: bool = False,
    executor: ExecutorLike | None = None,
    workers: int = 1,
    journal: JournalPath | None = None,
) -> Certificate:
    """Estimate the expected output from fresh evaluations at random inputs, without relying on the model.

    The posterior mean and its average over the inputs are frozen; only then are inputs drawn, independently of
    everything in the run. The values of the sources there correct the model. The estimate is unbiased, and its interval
    is valid, however poor the model; the better the model, the narrower the interval.

    Parameters
    ----------
    result : Result
        The result of a run, or one read from a journal.
    budget : float
        The cost of the fresh evaluations, in the unit of all costs; at least that of two evaluations of the primary
        source. Secondary sources are evaluated too if the model expects a narrower interval from that.
    seed : int
        Seed of the draws.
    target : "mean", "variance", Exceedance or Quantile; with several outputs also a dictionary; optional
        The quantity to estimate; by default the target of the run.
    under : measure, or anything that `as_measure` accepts, optional
        Another distribution of the inputs, as for `Result.under`.
    primary_only : bool
        Whether to evaluate only the primary source, at independent draws, which anytime-valid intervals require.
        By default the draws for means are a Latin hypercube: each is random, and together they cover the inputs evenly.
    executor, workers
        See `integrate`.
    journal : path, optional
        The journal of the run. The draws are written to it before they are evaluated; the same call continues after an
        interruption without repeating any evaluation.

    Returns
    -------
    Certificate
        An estimate with ``mean``, ``std`` and ``interval(level)``, compared with the model; ``print`` shows all of it.
        For sources without functions, use its methods ``ask``, ``tell`` and ``fail``.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import amsbq
    >>> def simulator(x):
    ...     return np.exp(-(x[0] ** 2))
    >>> result = amsbq.integrate(simulator, stats.norm(0, 0.5), budget=5)
    >>> certificate = amsbq.certify(result, budget=5)
    >>> low, high = certificate.interval(0.95)
    >>> bool(low < np.sqrt(2 / 3) < high)
    True
    """
    if not isinstance(result, Result):
        raise TypeError(f"certify needs the result of integrate, or of read_result, got {brief(result)}")
    it = result.integrator
    if it is None:
        raise ValueError("there is no model to take as a control variate: the result has no integrator")
    if result.output:
        raise ValueError(f"certify the result of all outputs, then use certificate[{result.output!r}]")
    if not isinstance(primary_only, bool):
        raise TypeError(f"primary_only must be True or False, got {brief(primary_only)}")
    price, number = positive_number(budget, "budget"), seed_number(seed, None)
    targets = it.problem.targets if target is None else checked_targets(target, it.outputs)
    measure = it.measure
    if under is not None:
        measure = of_same_inputs(measure, measure_of_inputs(under, result.inputs, measure))
    with threads_for(len(it.learner)):
        posterior = it.learner.posterior
        if posterior is None or not it.learner.has_primary:
            raise ValueError(f"there is nothing to certify yet: {it.names[0]} has no value")
        known = _known(result, posterior, targets, under)
        plan = Plan.of(
            it.problem,
            it.ledger,
            posterior,
            it.learner.data.X,
            _model(known, len(targets)),
            budget=price,
            seed=number,
            targets=targets,
            measure=measure,
            primary_only=primary_only,
        )
    return certificate_of(plan, result, executor=executor, workers=workers, journal=journal)


def _known(result: Result, posterior: Posterior, targets: Sequence[Target], under: NamedMeasureLike | None) -> Any:
    """Return the model's estimates of the targets; None if it has none."""
    if result.integrator is None or result.integrator.problem.limit:
        return None  # the model estimates the limit, the certificate the finest source
    if under is not None:
        return result.under(under) if all(target == "mean" for target in targets) else None
    return result.target if list(targets) == targets_of_run(result) else target_estimate(posterior, targets)


def _model(known: Any, n: int) -> ModelAnswer:
    """Return the model's means and standard deviations as arrays of shape (M,): NaN where there are none."""
    if known is None:
        return ModelAnswer(np.full(n, np.nan), np.full(n, np.nan))
    return ModelAnswer(*(np.atleast_1d(np.asarray(each, dtype=float)) for each in (known.mean, known.std)))
