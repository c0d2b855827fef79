"""Peaks of logarithms: log f_l(x) = q_l(x) + g_l(x), where q is a quadratic function of the inputs and g is small.

Likelihoods of many data are close to Gaussian densities (Acerbi 2018 gives the process a mean of that form): a
quadratic fitted to the logarithms shows how narrow they are, and where their mass is, even if none of it was seen.

Notation: z (n, D) are the coordinates of the inputs in units of their spread, h(z) (n, P) the fitted functions: 1, z_d
and -z_d z_e/2. Weights decrease for values far below the largest one of their source: there, the shape of a likelihood
does not matter, and is rarely that of its peak.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import scipy

from ..common.validation import Array, IntArray
from ..gp.data import Data
from ..measures.base import Measure, inside_cube


@dataclass(frozen=True)
class PeakSettings:
    """How quadratics are fitted, and how points are placed around their peaks."""

    spare: int = 2  #: minimum number of values beyond the number of coefficients for a fit
    #: distance below the largest value, in units of the number of inputs plus 2, beyond which values are fitted
    #: loosely: with errors that grow by `slope` per unit (Acerbi 2020 has 10 and 0.05 for logarithms with noise)
    near: float = 5.0
    slope: float = 0.05
    flat: float = 1e-9  #: curvatures below this share of the largest one count as zero; singular values too
    steps: int = 60  #: maximum number of steps of Newton's method towards the peak
    widened: float = 1.3  #: standard deviations of points around the peak, relative to those of the quadratic
    share: float = 0.75  #: share of the points that are around the peak
    furthest: float = 8.0  #: largest normal scores of points
    #: minimum standard deviation of the logarithm of an integral: the rounding of sums over points, where the quadratic
    #: is exact
    rounding: float = 1e-6


SETTINGS = PeakSettings()
#: a_l, b_l and C_l
Coefficients: TypeAlias = tuple[float, Array, Array]
Form: TypeAlias = tuple[Array, Callable[[Array], Coefficients]]


@dataclass(frozen=True)
class Quadratic:
    """A quadratic function of the inputs for each source, q_l(x) = a_l + b_l·z + z·C_l z / 2.

    Attributes
    ----------
    centre, rates : (D,) array
        Those of the coordinates z = (to_latent(x) - centre) · rates; inputs without an order have a rate of zero.
    constants : (L,) array
    slopes : (L, D) array
    curvatures : (L, D, D) array
        Not positive in any direction for the primary source.
    """

    centre: Array
    rates: Array
    constants: Array
    slopes: Array
    curvatures: Array

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes in JSON-serialisable form."""
        return {name: getattr(self, name).tolist() for name in self.__dataclass_fields__}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the quadratic from the content that `to_dict` returned."""
        return cls(**{name: np.array(values) for name, values in content.items()})

    def coordinates(self, measure: Measure, X: Array) -> Array:
        """Return the coordinates z (n, D) of locations X (n, D)."""
        return np.asarray((measure.to_latent(X) - self.centre) * self.rates)

    def values(self, measure: Measure, s: IntArray, X: Array) -> Array:
        """Return q of sources s (n,) at X (n, D), shape (n,)."""
        z = self.coordinates(measure, X)
        s = np.minimum(s, len(self.constants) - 1)
        q = self.constants[s]
        for source in np.unique(s):
            of = s == source
            q[of] += z[of] @ self.slopes[source] + 0.5 * np.einsum("nd,nd->n", z[of] @ self.curvatures[source], z[of])
        return q

    def gradients(self, measure: Measure, s: IntArray, X: Array) -> Array:
        """Return the gradients of q of sources s (n,) at X (n, D), shape (n, D)."""
        s = np.minimum(s, len(self.constants) - 1)
        z, by_z = self.coordinates(measure, X), self.slopes[s]
        for source in np.unique(s):
            of = s == source
            by_z[of] += z[of] @ self.curvatures[source]
        slopes = measure.latent_slopes(X)
        return np.asarray(by_z * self.rates * (1.0 if slopes is None else slopes))

    @classmethod
    def fitted(cls, measure: Measure, data: Data, n_sources: int) -> Fit | None:
        """Return the quadratic fitted to values of the sources; None if there are too few, or if it has no maximum.

        It has as many coefficients as the values of a source determine: of all products of inputs, of squares, or of
        the sum of squares. A source with fewer values has the coefficients of another one, except the constant.
        """
        values, D = data.values, measure.dim
        centre, rates = _coordinates(measure)
        used = rates > 0
        z = ((measure.to_latent(values.X) - centre) * rates)[:, used]
        rows = [np.flatnonzero(values.s == source) for source in range(n_sources)]
        different = [len(np.unique(values.X[of], axis=0)) for of in rows]
        if different[0] < 2 or not used.any():
            return None
        for form in FORMS:
            H, back = form(z)
            own = [source for source, n in enumerate(different) if n >= H.shape[1] + SETTINGS.spare]
            if own:
                break
        else:
            return None
        a, b, C = (np.zeros((n_sources, *shape)) for shape in ((), (D,), (D, D)))
        leverages, reference = np.zeros(len(values.y)), np.zeros(H.shape[1])
        for source in [*own, *(source for source in range(n_sources) if source not in own and len(rows[source]))]:
            of = rows[source]
            weights = _weights(values.y[of], D)
            if source in own:
                coefficients, leverages[of] = _regression(H[of], values.y[of], weights)
            else:
                coefficients = reference.copy()
                coefficients[0] += weights**2 @ (values.y[of] - H[of] @ reference) / (weights @ weights)
            if source == own[0]:
                reference = coefficients
            a[source], b[source, used], C[source][np.ix_(used, used)] = back(coefficients)
        if not np.linalg.eigvalsh(C[0]).max() <= SETTINGS.flat * np.abs(C[0]).max() or not C[0].any():
            return None
        found = cls(centre, rates, a, b, C)
        top = _from_scores(measure, found.peak(measure, 0)[0][None])
        height = float(found.values(measure, np.zeros(1, dtype=np.intp), top)[0])
        return Fit(replace(found, constants=a - height), height, np.minimum(leverages, 1 - SETTINGS.flat))

    def peak(self, measure: Measure, source: int, under: Measure | None = None) -> tuple[Array, Array]:
        """Return where exp(q) times the density of the inputs is largest: normal scores (D,), and their precision.

        Inputs with normal scores t are the quantiles Φ(t) of the measure, or of another measure ``under`` of the same
        inputs.
        """
        D, over = measure.dim, under or measure

        def z(t: Array) -> Array:
            return self.coordinates(measure, _from_scores(over, t))

        b, C = self.slopes[source], self.curvatures[source]
        t, h = np.zeros(D), 1e-4
        precision = np.eye(D)

        def objective(t: Array) -> float:
            at = z(t[None])[0]
            return float(b @ at + 0.5 * at @ C @ at - 0.5 * t @ t)

        value = objective(t)
        for _ in range(SETTINGS.steps):
            ends = z(np.concatenate([t + h * np.eye(D), t - h * np.eye(D), t[None]]))
            J = (ends[:D] - ends[D:-1]).T / (2 * h)  # dz_i/dt_j
            precision = np.eye(D) - J.T @ C @ J
            step = np.linalg.solve(precision, J.T @ (b + C @ ends[-1]) - t)
            step *= min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-300))
            shrink = 1.0
            while shrink > 1e-4:
                new = np.clip(t + shrink * step, -SETTINGS.furthest, SETTINGS.furthest)
                if (better := objective(new)) > value:
                    break
                shrink /= 2
            else:
                break
            t, gained, value = new, better - value, better
            if gained < 1e-10 * max(abs(value), 1.0):
                break
        return t, precision


class Fit(NamedTuple):
    """A quadratic that is zero at the primary source's peak, its fitted height there, and the leverages of values."""

    trend: Quadratic
    height: float
    leverages: Array


def nodes_around(measure: Measure, peak: tuple[Array, Array], U: Array) -> tuple[Array, Array]:
    """Return locations (n, D), most of them around a peak, and their weights (n,), from points U (n, D + 1).

    Weights are the density of the inputs relative to that of the points.
    """
    middle, precision = peak
    D = len(middle)
    root = np.linalg.cholesky(precision)  # precision = R Rᵀ
    scores = np.clip(scipy.special.ndtri(U[:, :D]), -SETTINGS.furthest, SETTINGS.furthest)
    around = U[:, D] < SETTINGS.share
    there = middle + SETTINGS.widened * scipy.linalg.solve_triangular(root.T, scores.T, lower=False).T
    t = np.where(around[:, None], np.clip(there, -SETTINGS.furthest, SETTINGS.furthest), scores)
    distance = (t - middle) @ root / SETTINGS.widened
    logs = -0.5 * (distance**2).sum(axis=1) + np.log(np.diag(root)).sum() - D * math.log(SETTINGS.widened)
    prior = -0.5 * (t**2).sum(axis=1)
    mixture = np.logaddexp(math.log(SETTINGS.share) + logs, math.log1p(-SETTINGS.share) + prior)
    return _from_scores(measure, t), np.exp(prior - mixture)


def _from_scores(measure: Measure, t: Array) -> Array:
    return measure.from_cube(inside_cube(scipy.special.ndtr(t)))


def _coordinates(measure: Measure) -> tuple[Array, Array]:
    """Return centre and rates (D,) of the coordinates z."""
    latent = measure.whole.latent
    mean, sd = latent.moments
    known = np.isfinite(mean) & np.isfinite(sd) & (sd > 0)
    known[list(measure.categorical)] = False
    middle = measure.to_latent(measure.median[None])[0]
    return np.where(known, mean, middle), np.where(known, 1 / np.where(known, sd, 1.0), 0.0)


def _products(z: Array) -> Form:
    D = z.shape[1]
    i, j = np.triu_indices(D)

    def back(c: Array) -> Coefficients:
        C = np.zeros((D, D))
        C[i, j] = C[j, i] = -c[1 + D :] * np.where(i == j, 1.0, 0.5)
        return c[0], c[1 : 1 + D], C

    return np.column_stack([np.ones(len(z)), z, -0.5 * z[:, i] * z[:, j]]), back


def _squares(z: Array) -> Form:
    D = z.shape[1]
    return np.column_stack([np.ones(len(z)), z, -0.5 * z**2]), lambda c: (c[0], c[1 : 1 + D], np.diag(-c[1 + D :]))


def _sum_of_squares(z: Array) -> Form:
    D = z.shape[1]
    H = np.column_stack([np.ones(len(z)), z, -0.5 * (z**2).sum(axis=1)])
    return H, lambda c: (c[0], c[1 : 1 + D], -c[-1] * np.eye(D))


#: functions h(z) (n, P), and the map from their coefficients (P,) to a quadratic's
FORMS: tuple[Callable[[Array], Form], ...] = (_products, _squares, _sum_of_squares)


def _weights(y: Array, dim: int) -> Array:
    """Return the factors (n,) on the values of a source in its fit."""
    far = np.maximum(y.max() - y - SETTINGS.near * (dim + 2), 0.0)
    return np.asarray(1 / (1 + SETTINGS.slope * far))


def _regression(H: Array, y: Array, weights: Array) -> tuple[Array, Array]:
    """Return the coefficients (P,) of functions H (n, P) fitted to values y (n,), and the leverages (n,)."""
    unit = np.sqrt(np.mean(H**2, axis=0))
    offset = y.max()
    U, sizes, Vt = np.linalg.svd(H / np.where(unit > 0, unit, 1.0) * weights[:, None], full_matrices=False)
    kept = sizes > SETTINGS.flat * sizes[0]
    found = Vt[kept].T @ ((U[:, kept].T @ (weights * (y - offset))) / sizes[kept])
    found = found / np.where(unit > 0, unit, 1.0)
    found[0] += offset
    return found, (U[:, kept] ** 2).sum(axis=1)


def edges_around(peak: tuple[Array, Array]) -> list[float]:
    """Return ends of panels around a peak of one input, in normal scores."""
    (middle,), ((precision,),) = peak
    steps = np.linspace(-SETTINGS.furthest, SETTINGS.furthest, 33)
    return [float(t) for t in middle + steps / math.sqrt(precision) if abs(t) < SETTINGS.furthest]
