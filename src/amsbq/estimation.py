"""`estimate`: the integral from existing values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike

from .common.messages import renamed
from .common.threads import threads_for
from .common.validation import Array, RNGLike, brief, non_negative, seed_number, source_number, vector
from .design.description import RangeLike
from .design.fidelities import fidelities_of_data, with_limit
from .design.sources import Source
from .gp.data import Data, checked_gradients
from .gp.posterior import MultiSourceGP
from .inference.particles import Integrals
from .inference.structures import ModelName, Noise, as_model, checked_order
from .measures.adapters import NamedMeasureLike, in_order_of, named_measure
from .posterior.estimate import Estimate
from .posterior.estimates import Estimates, unknown_estimate
from .posterior.learner import Learner
from .posterior.outputs import OutputsLike, noise_levels, output_names
from .posterior.transforms import checked_ranges

#: the noise of all sources, or a list with one entry for each
NoiseLike: TypeAlias = Noise | Sequence[Noise]


@overload
def estimate(
    sources: ArrayLike,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    inputs: NamedMeasureLike | None = None,
    *,
    model: ModelName | MultiSourceGP = ...,
    noise: NoiseLike = ...,
    noise_var: ArrayLike | None = None,
    gradients: ArrayLike | None = None,
    order: Sequence[int] | None = None,
    seed: RNGLike = None,
    rng: RNGLike = None,
    outputs: None = None,
    output_range: tuple[float, float] | None = None,
    log: bool = False,
    integrals: Mapping[int, tuple[float, float]] | None = None,
    fidelity: Sequence[Mapping[str, float] | None] | None = None,
    limit: bool = False,
) -> Estimate: ...


@overload
def estimate(
    sources: ArrayLike,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    inputs: NamedMeasureLike | None = None,
    *,
    model: ModelName | MultiSourceGP = ...,
    noise: NoiseLike | Mapping[str, NoiseLike] = ...,
    noise_var: ArrayLike | None = None,
    gradients: ArrayLike | None = None,
    order: Sequence[int] | None = None,
    seed: RNGLike = None,
    rng: RNGLike = None,
    outputs: OutputsLike,
    output_range: RangeLike | None = None,
    log: bool | Mapping[str, bool] = False,
    integrals: Mapping[int, tuple[ArrayLike, ArrayLike]] | None = None,
    fidelity: Sequence[Mapping[str, float] | None] | None = None,
    limit: bool = False,
) -> Estimates: ...


@renamed(measure="inputs")
def estimate(
    sources: ArrayLike,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    inputs: NamedMeasureLike | None = None,
    *,
    model: ModelName | MultiSourceGP = "auto",
    noise: NoiseLike | Mapping[str, NoiseLike] = 0.0,
    noise_var: ArrayLike | None = None,
    gradients: ArrayLike | None = None,
    order: Sequence[int] | None = None,
    seed: RNGLike = None,
    rng: RNGLike = None,
    outputs: OutputsLike | None = None,
    output_range: RangeLike | None = None,
    log: bool | Mapping[str, bool] = False,
    integrals: Mapping[int, tuple[ArrayLike, ArrayLike]] | None = None,
    fidelity: Sequence[Mapping[str, float] | None] | None = None,
    limit: bool = False,
) -> Estimate | Estimates:
    """Estimate the integral of source 0, its expected output, from existing values.

    Parameters
    ----------
    sources : (N,) ints, or one for all
        The source of each observation; 0 is the primary one.
    X : (N, D) array
        Locations.
    y : (N,) array, or (N, M) for M outputs
        The values at X; with several outputs, NaN where an output is missing.
    inputs : measure, or anything that `as_measure` accepts
        The distribution of the inputs.
    model : str or MultiSourceGP
        "auto", the default, an average over several structures; "icm", the paper's, with hyperparameters at their
        mode; "lmc", a linear model of coregionalisation; "ar", autoregressive, for sources in order of fidelity;
        "vbq", which uses only source 0; or a `MultiSourceGP` with your own hyperparameters.
    noise : float, "learn", or a list with one of these for each source; or a dictionary of these by output
        Variance of the noise on observations of each source.
    noise_var : (N,) array, or (N, M) for M outputs, optional
        Known noise variance of each observation, in addition.
    gradients : (N, D) array, or (N, M, D) for M outputs, optional
        The gradients of the sources at X, in units of the output per unit of each input; NaN where unknown. If a value
        has noise of variance v, its derivative with respect to an input of width w_d has noise of variance v / w_d².
        For sources that return logarithms, pass the gradients of the logarithms.
    order : list of int, optional
        The indices of all sources from the most to the least accurate one, the primary one first. By default they are
        sorted by their number of observations, the source with the most observations last.
    seed : int, optional
        Seed of the hyperparameter draws; 0 by default.
    rng : int or numpy.random.Generator, optional
        Alternative to ``seed``: an integer is used as the seed, a generator draws one.
    outputs : list of str, or int, optional
        Names of the M outputs, or their number: y then has shape (N, M).
    output_range : (low, high), or a dictionary of them by output, optional
        The range of the values of all sources, one end of which may be infinite, as in ``(0, np.inf)``: the estimate
        and its intervals never leave it.
    log : bool, or a dictionary by output
        Whether values are logarithms of a non-negative function; the estimate is the logarithm of its integral.
    integrals : dictionary of (value, variance) by source, optional
        Known integrals of sources, by the index of the source, with the variance of their error; with several outputs,
        M numbers each.
    fidelity : list of dictionaries, optional
        The fidelity of each source, None if it has none: see `Source`.
    limit : bool
        Whether to estimate the integral of the limit of the sources as their fidelities tend to zero.

    Returns
    -------
    Estimate, or Estimates with outputs
        The posterior distribution of the integral, or of the integrals of all outputs.

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
            "estimate takes existing values: the numbers of their sources, their locations X, the values y, "
            "and the distribution of the inputs. To evaluate functions, call integrate(sources, inputs, budget=...)"
        )
    if X is None or y is None or inputs is None:
        raise TypeError("estimate needs sources, X, y and inputs, as in estimate([0, 0, 1], X, y, inputs)")
    (measure, names), drawn_by = named_measure(inputs), seed_number(seed, rng)
    chosen = as_model(model)
    if np.asarray(sources).dtype.kind in "USO":
        raise TypeError(f"sources must be numbers, 0 for the primary source, got {brief(sources)}")
    n_sources = max(
        1 + int(np.max(sources, initial=0)), *(1 + source for source in integrals or {}), len(fidelity or ())
    )
    if chosen.process is not None:
        n_sources = chosen.process.n_sources
    chosen.check_for(n_sources, measure)
    named = None if outputs is None else output_names(outputs)
    levels = noise_levels(noise, n_sources, named)
    by_fidelity = None if order is None else checked_order(order, n_sources)
    if fidelity is not None or limit:
        refinements = fidelities_of_data(fidelity or [], n_sources, names)
        refinements = with_limit(refinements, model) if limit else refinements
        if refinements is not None:
            chosen = replace(chosen, fidelities=refinements)
            by_fidelity = by_fidelity or refinements.order
    if limit:
        levels = [[*each, 0.0] for each in levels]
        by_fidelity = None if by_fidelity is None else [*by_fidelity, n_sources]
    ranges = checked_ranges(output_range, log, named)
    learner = Learner(chosen, measure, levels, drawn_by, order=by_fidelity, outputs=named, ranges=ranges)
    for row in _rows(learner, n_sources, sources, in_order_of(names, X), y, noise_var, gradients):
        learner.add(*row)
    learner.integrals = _known_integrals(integrals or {}, n_sources, len(levels))
    with threads_for(len(learner)):
        posterior = learner.learned()
    found: Estimate | Estimates = unknown_estimate(named) if posterior is None else posterior.estimate
    return found


def _rows(
    learner: Learner, n_sources: int, sources: ArrayLike, X: ArrayLike, y: ArrayLike, noise_var: Any, gradients: Any
) -> Iterator[tuple[int, Array, Array, Array, Array | None]]:
    """Yield the user's observations one by one, as (source, x (D,), values (M,), variances (M,), gradients (M, D))."""
    measure, outputs = learner.measure, learner.outputs
    points, values = measure.check_points(X), np.asarray(y)
    if outputs is None:
        checked = Data.checked(measure, n_sources, sources, points, y, noise_var)
        s, Y, variances = checked.s, checked.y[:, None], checked.noise_var[:, None]
        slopes = None if gradients is None else checked_gradients(measure, points, gradients)[:, None]
    else:
        if values.dtype.kind not in "fiu":
            raise TypeError(f"y must be real numbers, got dtype {values.dtype}")
        if values.shape != (len(points), len(outputs)):
            raise ValueError(
                f"y must have shape ({len(points)}, {len(outputs)}), one row for each of X and one column for each "
                f"output, got shape {values.shape}"
            )
        if np.isinf(values).any():
            raise ValueError("y must be finite, or NaN where an output is missing; got inf")
        given = np.asarray(0.0 if noise_var is None else noise_var, dtype=float)
        known = np.broadcast_to(given[:, None] if given.ndim == 1 else given, values.shape)
        s = Data.checked(measure, n_sources, sources, points, np.zeros(len(points))).s
        Y, variances, slopes = values.astype(float), non_negative(known, "noise_var"), None
        if gradients is not None:
            slopes = np.asarray(gradients, dtype=float)
            if slopes.shape != (len(points), len(outputs), measure.dim):
                raise ValueError(
                    f"gradients must have shape {(len(points), len(outputs), measure.dim)}, got shape {slopes.shape}"
                )
            each = (checked_gradients(measure, points, column) for column in slopes.swapaxes(0, 1))
            slopes = np.stack(list(each), axis=1)
    for column, limits in zip(Y.T, learner.ranges, strict=True):
        if limits is not None:
            limits.check(column[np.isfinite(column)])
    for i in range(len(points)):
        if np.isfinite(Y[i]).any():
            yield int(s[i]), points[i], Y[i], variances[i], None if slopes is None else slopes[i]


def _known_integrals(integrals: Mapping[Any, Any], n_sources: int, n_outputs: int) -> list[Integrals]:
    """Return the known integrals of each output as (source, value, variance), or raise an error if they are invalid."""
    found: list[Integrals] = [() for _ in range(n_outputs)]
    for source, pair in integrals.items():
        number = source_number(source, n_sources, "a source of integrals")
        try:
            value, variance = pair
        except (TypeError, ValueError):
            raise TypeError(f"integrals must have pairs (value, variance), got {brief(pair)}") from None
        values = vector(value, "the value of an integral", n_outputs)
        variances = non_negative(vector(variance, "the variance of an integral", n_outputs), "variances of integrals")
        found = [
            (*known, (number, *each)) for known, *each in zip(found, values.tolist(), variances.tolist(), strict=True)
        ]
    return found


def _is_source(obj: object) -> bool:
    return callable(obj) or isinstance(obj, Source)
