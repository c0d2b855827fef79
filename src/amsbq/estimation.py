"""`estimate`: the integral from values that exist already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from .design.sources import Source
from .gp.data import Data
from .gp.posterior import MultiSourceGP
from .inference.belief import learn
from .inference.estimate import Estimate
from .inference.preparation import noise_levels
from .inference.structures import ModelName, Noise, checked_order, model_named
from .measures.adapters import NamedMeasureLike, named_measure
from .outputs.estimates import Estimates
from .outputs.learner import output_data
from .outputs.names import OutputsLike, output_names
from .ranges.learner import learn_ranged
from .ranges.transforms import checked_range
from .ranges.warping import warped
from .threads import threads_for
from .validation import RNGLike, seed_number


@overload
def estimate(
    sources: ArrayLike,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    measure: NamedMeasureLike | None = None,
    *,
    model: ModelName | MultiSourceGP = ...,
    noise: Noise | Sequence[Noise] = ...,
    noise_var: ArrayLike | None = None,
    gradients: ArrayLike | None = None,
    order: Sequence[int] | None = None,
    seed: RNGLike = None,
    rng: RNGLike = None,
    outputs: None = None,
    output_range: tuple[float, float] | None = None,
    log: bool = False,
) -> Estimate: ...


@overload
def estimate(
    sources: ArrayLike,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    measure: NamedMeasureLike | None = None,
    *,
    model: ModelName | MultiSourceGP = ...,
    noise: Noise | Sequence[Noise] = ...,
    noise_var: ArrayLike | None = None,
    order: Sequence[int] | None = None,
    seed: RNGLike = None,
    rng: RNGLike = None,
    outputs: OutputsLike,
) -> Estimates: ...


def estimate(
    sources: ArrayLike,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    measure: NamedMeasureLike | None = None,
    *,
    model: ModelName | MultiSourceGP = "auto",
    noise: Noise | Sequence[Noise] = 0.0,
    noise_var: ArrayLike | None = None,
    gradients: ArrayLike | None = None,
    order: Sequence[int] | None = None,
    seed: RNGLike = None,
    rng: RNGLike = None,
    outputs: OutputsLike | None = None,
    output_range: tuple[float, float] | None = None,
    log: bool = False,
) -> Estimate | Estimates:
    """Return the integral of source 0, from values that exist already.

    Parameters
    ----------
    sources : (N,) ints, or one for all
        Which source each observation is of; 0 is the primary one.
    X : (N, D) array
        Locations.
    y : (N,) array, or (N, M) for M outputs
        The values there; with several outputs NaN where one has no value.
    measure : measure, or anything that `as_measure` takes
        The distribution of the inputs.
    model : str or MultiSourceGP
        "auto", the default, an average over several structures; "icm", the paper's, with hyperparameters at their
        mode; "lmc", a linear model of coregionalisation; "ar", autoregressive, for sources in order of fidelity;
        "vbq", which uses source 0 only; or a `MultiSourceGP` with hyperparameters of your own.
    noise : float, "learn", or a list of one for each source
        Variance of the noise on observations of each source.
    noise_var : (N,) array, or (N, M) for M outputs, optional
        Known variance of each observation, on top of that.
    gradients : (N, D) array, optional
        The gradients of the sources at X, each derivative by an input in its units; NaN where they are not known. If
        there is noise of variance v on a value, there is noise of variance v / w_d² on its derivative by an input of
        width w_d. Those of sources that return logarithms are the gradients of the logarithms.
    order : list of int, optional
        The numbers of all sources from the most to the least faithful one, the primary one first. By default by their
        numbers of observations, the most last.
    seed : int, optional
        Seed of the hyperparameter draws; 0 by default.
    rng : int or numpy.random.Generator, optional
        Instead of ``seed``: an integer is the seed, a generator draws it.
    outputs : list of str, or int, optional
        Names of M outputs, or their number: y then has shape (N, M).
    output_range : (low, high), optional
        The range of the values of all sources, one end of which may be infinite, as in ``(0, np.inf)``: the estimate
        and its intervals never leave it.
    log : bool
        Whether values are logarithms of a non-negative function; the estimate is the logarithm of its integral.

    Returns
    -------
    Estimate, or Estimates with outputs
        The distribution of the integral, or those of all outputs: each is the same as if it were estimated alone.

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
    if _is_source(sources) or (isinstance(sources, list | tuple) and any(_is_source(entry) for entry in sources)):
        raise TypeError(
            "estimate takes values that exist already: the numbers of their sources, their locations X, the values y, "
            "and the measure. To evaluate functions, call integrate(sources, measure, budget=...)"
        )
    if X is None or y is None or measure is None:
        raise TypeError("estimate needs sources, X, y and the measure, as in estimate([0, 0, 1], X, y, measure)")
    (inputs, _), drawn_by = named_measure(measure), seed_number(seed, rng)
    chosen = model if isinstance(model, MultiSourceGP) else model_named(model)
    n_sources = 1 + int(np.max(sources, initial=0)) if np.size(sources) else 1
    if isinstance(chosen, MultiSourceGP):
        n_sources = chosen.n_sources
        chosen.check_for(n_sources, inputs)
    levels = noise_levels(noise, n_sources)
    fidelity = None if order is None else checked_order(order, len(levels))
    known = checked_range(output_range, log)

    def estimated(data: Data) -> Estimate:
        with threads_for(len(data.y)):
            if known is not None:
                known.check(data.values.y)
                return learn_ranged(known, chosen, inputs, data, levels, drawn_by, order=fidelity).estimate
            belief = learn(chosen, inputs, data, levels, drawn_by, order=fidelity)
            return warped(belief, inputs, drawn_by).estimate

    if known is not None and outputs is not None:
        raise ValueError("output_range and log are for sources with one output: leave outputs out")
    if gradients is not None and outputs is not None:
        raise ValueError("gradients are those of a single output: leave outputs out")
    if outputs is None:
        return estimated(Data.checked(inputs, len(levels), sources, X, y, noise_var, gradients))
    named = output_names(outputs)
    columns = output_data(inputs, len(levels), sources, X, y, noise_var, named)
    return Estimates([estimated(data) if len(data.y) else Estimate.unknown() for data in columns], named)


def _is_source(obj: object) -> bool:
    return callable(obj) or isinstance(obj, Source)
