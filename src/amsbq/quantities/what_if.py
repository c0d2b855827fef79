"""What if: the integral of the same posterior under another distribution of the inputs, or with one input given."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..gp.posterior_batch import PosteriorBatch
from ..inference.averaging import integral_means
from ..inference.belief import Belief
from ..inference.estimate import Estimate
from ..measures.base import Measure
from ..measures.composed import Transformed
from ..measures.empirical import Empirical
from ..measures.marginals import CategoricalMarginal
from ..outputs.estimates import Estimates
from ..ranges.belief import AveragedBelief, RangedBelief
from ..validation import Array
from .ensemble import Ensemble

#: points that stand for a distribution for which kernels have no integrals: their average is right to 1e-3 of a
#: standard deviation of the output, or better
STAND_IN_POINTS = 8192


def integral_under(belief: Belief, measure: Measure, other: Measure) -> Estimate:
    """Return the integral of the primary source under another measure than that of the observations.

    Kernels are integrated against the other measure in closed form where there is one. Otherwise, and if models live in
    coordinates of their own, as those of dependent inputs do, low-discrepancy points stand for it.
    """
    if isinstance(belief, AveragedBelief):
        return belief.average(belief.integral_over(other), integral_under(belief.plain, measure, other))
    if isinstance(belief, RangedBelief):
        return belief.integral_over(other)
    ensemble = Ensemble.of(belief, every=True)
    measure, other, data = _untransformed(measure), _untransformed(other), ensemble.data
    if other.marginals is None and not isinstance(other, Empirical):
        other = Empirical(other.sobol(STAND_IN_POINTS, 0))
    if measure.latent is not measure:
        weights = other.weights if isinstance(other, Empirical) else None
        points = other.samples if isinstance(other, Empirical) else other.sobol(STAND_IN_POINTS, 0)
        scores = measure.to_latent(measure.check_points(points, "the other distribution"))
        data = replace(data.rescaled(data.sites.latent_slopes(measure)), X=measure.to_latent(data.X))
        other = Empirical(scores, weights)
    models = replace(ensemble.models, measure=other.for_learning())
    batch = PosteriorBatch.condition(models, data, ensemble.jitter)
    return ensemble.of_moments(integral_means(batch), np.sqrt(batch.integral()[1]))


def check_other(measure: Measure, other: Measure) -> None:
    """Raise ValueError unless a measure is one of the same inputs as that of the observations."""
    if other.dim != measure.dim:
        raise ValueError(f"the other distribution has {other.dim} inputs, but there are {measure.dim}")
    if other.function is not None and other.function is not measure.function:
        raise ValueError(
            "the other distribution is transformed by a function of its own: give a distribution of the locations at "
            "which sources were evaluated"
        )
    if _categories(measure) != _categories(other):
        raise ValueError(
            "inputs that are categories must have the same categories in the other distribution, independent of all "
            f"others: give a Product, got {other!r}"
        )


def conditional(belief: Belief, input: int, t: Array) -> Estimates:
    """Return the average of the primary source over all other inputs at values t (m,) of one: its main effect."""
    if isinstance(belief, RangedBelief):
        few = Ensemble.of(belief.latent)
        found = [belief.integral(few, belief.given(input, at)) for at in t.tolist()]
        if isinstance(belief, AveragedBelief):
            found = [belief.average(*pair) for pair in zip(found, conditional(belief.plain, input, t), strict=True)]
        return Estimates(found)
    ensemble = Ensemble.of(belief, every=True)
    means, variances = ensemble.posteriors.main_effect(0, input, t[:, None])
    moments = zip(means.T, np.sqrt(variances).T, strict=True)
    return Estimates([ensemble.of_moments(mean, std) for mean, std in moments])


def _untransformed(measure: Measure) -> Measure:
    """Return the distribution of the locations."""
    return measure.base if isinstance(measure, Transformed) else measure


def _categories(measure: Measure) -> dict[int, int]:
    """Return the number of categories of each input that has them."""
    marginals = measure.marginals or ()
    return {d: len(one.masses) for d, one in enumerate(marginals) if isinstance(one, CategoricalMarginal)}
