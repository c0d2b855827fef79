"""The multi-source Gaussian process and its posterior, for one set of hyperparameters: the public face of this package.

`gp_to_dict` and `gp_from_dict` convert a process to JSON and back. Everything is the case K = 1 of
`posterior_batch`, which has the notation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, count, non_negative, source_number, source_numbers, vector
from ..measures.adapters import MeasureLike, as_measure, measure_from_dict
from ..measures.base import Measure
from .coregionalisation import ModelBatch, Term, check_terms
from .data import Data, Sites
from .kernels import RBF, Kernel, Matern
from .posterior_batch import PosteriorBatch
from .trends import Constant, Linear


class MultiSourceGP:
    """A prior over L correlated sources and their integrals: cov[f_l(x), f_l'(x')] = Σ_q B_q[l, l'] κ_q(x, x').

    Parameters
    ----------
    terms : list of Term
        One term is the paper's intrinsic coregionalisation model, several are a linear model of coregionalisation.
    measure : measure, or anything that `as_measure` accepts
        The distribution of the inputs, against which the sources are integrated.
    noise : float or L floats
        Variance σ_l² of the noise on observations of each source.
    mean : float or L floats
        Constant prior mean of each source.

    Examples
    --------
    An expensive source seen twice, and a cheap one with a correlation of 0.95 to it, seen five times:

    >>> import numpy as np
    >>> from amsbq import RBF, MultiSourceGP, Term, Uniform
    >>> gp = MultiSourceGP([Term([[1, 0.95], [0.95, 1]], RBF(0.3))], Uniform(0, 1))
    >>> X = np.array([0.2, 0.8, 0.0, 0.25, 0.5, 0.75, 1.0])
    >>> sources = [0, 0, 1, 1, 1, 1, 1]
    >>> y = np.where(np.array(sources) == 0, np.sin(3 * X), np.sin(3 * X) + 0.1)
    >>> mean, var = gp.condition(sources, X, y).integral()
    >>> print(f"{mean:.3f} ± {var**0.5:.3f}, and in truth {(1 - np.cos(3)) / 3:.3f}")
    0.664 ± 0.046, and in truth 0.663
    """

    def __init__(
        self, terms: Sequence[Term], measure: MeasureLike, noise: ArrayLike = 0.0, mean: ArrayLike = 0.0
    ) -> None:
        self.measure = as_measure(measure)
        self.terms, self.dim = check_terms(terms, self.measure.dim), self.measure.dim
        self.n_sources = len(self.terms[0].B)
        self.noise = non_negative(vector(noise, "noise", self.n_sources), "noise")
        self.mean = vector(mean, "mean", self.n_sources)
        self.batch = ModelBatch.of_terms(self.terms, self.measure, self.noise, self.mean)
        _ = self.batch.embeddings  # raises now, not later, if a kernel cannot be integrated

    def check_for(self, n_sources: int, measure: Measure) -> None:
        """Raise ValueError unless it is a model of that number of sources and that distribution of the inputs."""
        if self.n_sources != n_sources:
            raise ValueError(f"the model is for {self.n_sources} sources, but there are {n_sources}")
        if not measure.same_as(self.measure):
            raise ValueError(f"the model is for {self.measure!r}, but the measure is {measure!r}")

    def __repr__(self) -> str:
        return (
            f"MultiSourceGP({list(self.terms)}, {self.measure!r}, "
            f"noise={self.noise.tolist()}, mean={self.mean.tolist()})"
        )

    def condition(
        self,
        sources: ArrayLike,
        X: ArrayLike,
        y: ArrayLike,
        noise_var: ArrayLike | None = None,
        gradients: ArrayLike | None = None,
    ) -> Posterior:
        """Return the posterior given N observations (N = 0 is the prior).

        Parameters
        ----------
        sources : (N,) ints, or one for all
            The source of each observation; 0 is the primary one.
        X : (N, D) array
        y : (N,) array
        noise_var : (N,) array, optional
            Known variance of each observation, on top of the noise of its source.
        gradients : (N, D) array, optional
            The gradients of the sources there; NaN where unknown, in part or as a whole. If a value has noise of
            variance v, its derivative with respect to an input of width w_d has noise of variance v / w_d².
        """
        data = Data.checked(self.measure, self.n_sources, sources, X, y, noise_var, gradients)
        return Posterior(self, PosteriorBatch.condition(self.batch, data))


class Posterior:
    """A `MultiSourceGP` conditioned on observations; returned by `MultiSourceGP.condition` and by `extend`.

    Attributes
    ----------
    sources, X, y : (N,), (N, D) and (N,) arrays
        The observations, in which each value is followed by its known derivatives.
    jitter : float
        The share of their variance that was added to observations to keep the Gram matrix positive definite; zero
        unless the observations are (nearly) redundant, such as duplicates without noise.
    """

    def __init__(self, gp: MultiSourceGP, batch: PosteriorBatch) -> None:
        self.gp, self.batch, self.jitter = gp, batch, float(batch.jitter[0])
        self.sources, self.X, self.y = batch.data.s, batch.data.X, batch.data.y

    def __repr__(self) -> str:
        counts = np.bincount(self.batch.data.values.s, minlength=self.gp.n_sources)
        return f"<Posterior on {' + '.join(map(str, counts))} observations of {self.gp.n_sources} sources>"

    def predict(self, source: int, X: ArrayLike) -> tuple[Array, Array]:
        """Return the mean and variance of f_source at each X_i, without observation noise (Eq. 2), shape (n,) each."""
        mean, variance = self.batch.predict(self._source(source), self.gp.measure.check_points(X))
        return mean[0], variance[0]

    def integral(self, source: int = 0) -> tuple[float, float]:
        """Return the mean and variance of the integral of a source (Eq. 3)."""
        mean, variance = self.batch.integral(self._source(source))
        return float(mean[0]), float(variance[0])

    def main_effect(self, source: int, input: int, t: ArrayLike) -> tuple[Array, Array]:
        """Return the mean and variance of ∫ f_source(x) π(dx_others), a function of one input, at its values t_i.

        The other inputs are integrated out by their marginal distribution.
        """
        if not 0 <= (input := count(input, "input")) < self.gp.dim:
            raise ValueError(f"there is no input {input}: there are {self.gp.dim}, numbered 0 to {self.gp.dim - 1}")
        t = self.gp.measure.over([input]).check_points(t, "t")
        mean, variance = self.batch.main_effect(self._source(source), [input], t)
        return mean[0], variance[0]

    def leave_one_out(self) -> tuple[Array, Array]:
        """Return the mean and variance of each observation, including its noise, given all others: (N,) each."""
        mean, variance = self.batch.leave_one_out()
        return mean[0], variance[0]

    def squared_correlation(self, source: int, X: ArrayLike, target: int = 0) -> Array:
        """Return ρ² of the target's integral with one new, noisy observation of a source at each X_i (Eq. 7), (n,)."""
        X = self.gp.measure.check_points(X)
        return np.asarray(self.batch.squared_correlation(self._source(source), X, self._source(target, "target"))[0])

    def squared_correlation_and_grad(self, source: int, X: ArrayLike, target: int = 0) -> tuple[Array, Array]:
        """Return ρ², shape (n,), and its gradient dρ²_i/dX_i, shape (n, D)."""
        X, target = self.gp.measure.check_points(X), self._source(target, "target")
        rho2, gradient = self.batch.squared_correlation_and_grad(self._source(source), X, target)
        return rho2[0], gradient[0]

    def squared_correlation_joint(self, sources: ArrayLike, X: ArrayLike, target: int = 0) -> float:
        """Return the joint ρ² of the target's integral with a set of new, noisy observations (Eq. 6)."""
        X = self.gp.measure.check_points(X)
        new = Sites.values(source_numbers(sources, self.gp.n_sources, len(X)), X)
        return float(self.batch.squared_correlation_joint(new, self._source(target, "target"))[0])

    def squared_correlation_joint_and_grad(
        self, sources: ArrayLike, X: ArrayLike, target: int = 0
    ) -> tuple[float, Array]:
        """Return the joint ρ², and its gradient in all the locations, shape (n, D)."""
        X = self.gp.measure.check_points(X)
        s, target = source_numbers(sources, self.gp.n_sources, len(X)), self._source(target, "target")
        rho2, gradient = self.batch.squared_correlation_joint_and_grad(s, X, target)
        return float(rho2[0]), gradient[0]

    def log_evidence(self) -> float:
        """Return the log probability density of the observations."""
        return float(self.batch.log_evidence()[0])

    def extend(
        self,
        sources: ArrayLike,
        X: ArrayLike,
        y: ArrayLike,
        noise_var: ArrayLike | None = None,
        gradients: ArrayLike | None = None,
    ) -> Posterior:
        """Return the posterior given additional observations, in O(N²) for each; this one is unchanged."""
        new = Data.checked(self.gp.measure, self.gp.n_sources, sources, X, y, noise_var, gradients)
        return Posterior(self.gp, self.batch.extend(new))

    def _source(self, source: int, name: str = "source") -> int:
        return source_number(source, self.gp.n_sources, name)


def gp_to_dict(gp: MultiSourceGP) -> dict[str, Any]:
    """Return all arguments of a `MultiSourceGP` in JSON-serialisable form."""
    return {
        "class": "MultiSourceGP",
        "terms": [{"B": term.B.tolist(), "kernel": kernel_to_dict(term.kernel)} for term in gp.terms],
        "measure": gp.measure.to_dict(),
        "noise": gp.noise.tolist(),
        "mean": gp.mean.tolist(),
    }


def gp_from_dict(content: dict[str, Any]) -> MultiSourceGP:
    """Rebuild a Gaussian process from the output of `gp_to_dict`; raise ValueError if that is impossible."""
    if content.get("class") != "MultiSourceGP":
        raise ValueError(f"there is no model of class {content.get('class')!r}")
    terms = [Term(term["B"], kernel_from_dict(term["kernel"])) for term in content["terms"]]
    return MultiSourceGP(terms, measure_from_dict(content["measure"]), content["noise"], content["mean"])


def kernel_to_dict(kernel: Kernel) -> dict[str, Any]:
    """Return the class and the arguments of a kernel.

    >>> kernel_to_dict(Matern(2.5, [0.1, 2.0]))
    {'class': 'Matern', 'nu': 2.5, 'lengthscales': [0.1, 2.0]}
    """
    if type(kernel) is RBF:
        return {"class": "RBF", "lengthscales": kernel.lengthscales.tolist()}
    if type(kernel) is Matern:
        return {"class": "Matern", "nu": kernel.nu, "lengthscales": kernel.lengthscales.tolist()}
    if type(kernel) is Linear:
        return {"class": "Linear", "centre": kernel.centre.tolist(), "scales": kernel.scales.tolist()}
    if type(kernel) is Constant:
        return {"class": "Constant"}
    return {"class": type(kernel).__name__, "text": repr(kernel)}  # a user's kernel can be compared, not rebuilt


def kernel_from_dict(content: dict[str, Any]) -> Kernel:
    """Rebuild a kernel from the output of `kernel_to_dict`; raise ValueError if that is impossible.

    >>> kernel_from_dict({"class": "RBF", "lengthscales": 0.3})
    RBF(0.3)
    """
    if content["class"] == "RBF":
        return RBF(content["lengthscales"])
    if content["class"] == "Matern":
        return Matern(content["nu"], content["lengthscales"])
    if content["class"] == "Linear":
        return Linear(content["centre"], content["scales"])
    if content["class"] == "Constant":
        return Constant()
    raise ValueError(f"a kernel of class {content['class']!r} cannot be rebuilt: it is not one of amsbq's own")
