"""`Plan`: everything on which a certificate depends except the values; recorded before anything is evaluated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..common.validation import Array, brief, number, numbers, positive_number
from ..design.description import Problem
from ..design.ledger import Ledger
from ..measures.base import Measure
from ..measures.empirical import Empirical
from ..posterior.posterior import Posterior
from ..posterior.targets import Exceedance, Target, checked_targets, targets_from_json, targets_to_json
from .allocation import Combination, allocation, expected_errors, primary_alone
from .control import SETTINGS as CONTROL
from .control import Average, ControlVariate, Residuals, in_units

#: distinguishes the random generator of certificates from all others with the same seed
STREAM = 0xCE27


@dataclass(frozen=True)
class ModelAnswer:
    """The model's estimates of the same quantities: mean and standard deviation, shape (M,) each, NaN if unknown."""

    mean: Array
    std: Array


@dataclass(frozen=True)
class Plan:
    """The draws of a certificate, and the values of the control variate there.

    Attributes
    ----------
    terms : tuple of Combination
        Combinations of residuals, each averaged over its own draws.
    X : tuple of (n_k, D) arrays
        The draws of each term.
    counts : tuple of (n_k,) arrays
        The weight of each draw: 1, unless values are logarithms.
    predicted : tuple of (n_k, k, M) arrays
        The control variate of each source of the term at the draws.
    targets : list of Target
        The certified quantity of each output.
    known, error : (M,) array
        The value of the target for the control variate, and its standard error.
    model : ModelAnswer
        The model's estimate of the target.
    expected : (M,) array
        The standard error of the certificate predicted by the model; zero for targets other than means.
    units : (M,) array
        The logarithms of the units in which exponentials are averaged; NaN for outputs whose values are not logarithms.
    bounds : (M, 2) array
        Known bounds of the values of each output, ±inf if there are none.
    names : list of str
        Names of the sources.
    outputs : tuple of str or None
        Names of the outputs, if there are several.
    budget : float
        The expected cost of the evaluations is at most this.
    seed : int
    observations : int
        The number of observations behind the control variate.
    digest : str
        The first digits of a SHA-256 of the control variate.
    under : str
        The distribution of the inputs, if it differs from that of the run.
    primary_only : bool
        Whether only the primary source is evaluated.
    limit : bool
        Whether the run estimates the limit, and the certificate the finest source.
    """

    terms: tuple[Combination, ...]
    X: tuple[Array, ...]
    counts: tuple[Array, ...]
    predicted: tuple[Array, ...]
    targets: list[Target]
    known: Array
    error: Array
    model: ModelAnswer
    expected: Array
    units: Array
    bounds: Array
    names: list[str]
    outputs: tuple[str, ...] | None
    budget: float
    seed: int
    observations: int
    digest: str
    under: str = ""
    primary_only: bool = False
    limit: bool = False

    @classmethod
    def of(
        cls,
        problem: Problem,
        ledger: Ledger,
        posterior: Posterior,
        observed: Array,
        model: ModelAnswer,
        *,
        budget: float,
        seed: int,
        targets: Sequence[Target],
        measure: Measure,
        primary_only: bool,
    ) -> Self:
        """Freeze the control variate, allocate the budget, and then draw.

        Parameters
        ----------
        problem, ledger : Problem, Ledger
            The problem and the costs of the run.
        posterior : Posterior
            The posterior of the run.
        observed : (N, D) array
            The locations of its evaluations.
        model : ModelAnswer
            The model's estimates of the targets.
        budget, seed, targets, measure, primary_only
            The request, as in `amsbq.certify`.
        """
        check_budget(problem, budget, targets)
        control = ControlVariate.of(problem, posterior, measure, targets)
        known = _known(control, targets)
        digest = control.digest
        costs = _average_costs(problem, ledger, measure)
        residuals = _expected_residuals(control, problem)
        terms = _terms(control, residuals, problem, costs, budget, targets, primary_only)
        rng = np.random.default_rng([seed, STREAM, len(observed)])
        even = not primary_only and all(target == "mean" for target in targets)
        X, counts = zip(*(control.draws(term.n, rng, even) for term in terms), strict=True)
        if _repeats(measure, np.concatenate(X), observed):
            raise ValueError(
                f"seed={seed} draws inputs that the run has already used, such as those of an earlier certificate: "
                "choose another seed"
            )
        predicted = tuple(
            np.stack([control.values(source, x) for source in term.sources], axis=1)
            for term, x in zip(terms, X, strict=True)
        )
        bounds = np.array([(-np.inf, np.inf) if each is None else (each.low, each.high) for each in problem.ranges])
        return cls(
            terms=tuple(terms),
            X=X,
            counts=counts,
            predicted=predicted,
            targets=list(targets),
            known=known.value,
            error=known.error,
            model=model,
            expected=expected_errors(terms, residuals) * [target == "mean" for target in targets],
            units=control.units,
            bounds=bounds,
            names=list(problem.names),
            outputs=problem.outputs,
            budget=budget,
            seed=seed,
            observations=len(observed),
            digest=digest,
            under="" if measure is problem.measure else repr(measure),
            primary_only=primary_only,
            limit=problem.limit,
        )

    @property
    def n_outputs(self) -> int:
        """M."""
        return len(self.targets)

    @property
    def evaluated(self) -> list[tuple[int, Array]]:
        """The source and the location of each evaluation, by its number: draw by draw, term by term."""
        pairs = zip(self.terms, self.X, strict=True)
        return [(source, x) for term, X in pairs for x in X for source in term.sources]

    def residuals(self, values: Array) -> list[Array]:
        """Return the combined residuals (n_k, M) of each term, from values (evaluations, M) ordered as in `evaluated`.

        Where a value is NaN, because the evaluation failed, the control variate takes its place.
        """
        found, start, values = [], 0, in_units(values, self.units)
        for term, counts, predicted in zip(self.terms, self.counts, self.predicted, strict=True):
            end = start + predicted.shape[0] * predicted.shape[1]
            differences = np.nan_to_num(values[start:end].reshape(predicted.shape) - predicted)
            found.append(np.einsum("n,km,nkm->nm", counts, term.weights, differences))
            start = end
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the plan in JSON-serialisable form."""
        return {
            "terms": [{"sources": term.sources, "weights": term.weights.tolist()} for term in self.terms],
            "X": [X.tolist() for X in self.X],
            "counts": [counts.tolist() for counts in self.counts],
            "predicted": [predicted.tolist() for predicted in self.predicted],
            "target": targets_to_json(self.targets, self.outputs),
            "known": self.known.tolist(),
            "error": self.error.tolist(),
            "mean": self.model.mean.tolist(),
            "std": self.model.std.tolist(),
            "expected": self.expected.tolist(),
            "units": self.units.tolist(),
            "bounds": self.bounds.tolist(),
            "budget": self.budget,
            "seed": self.seed,
            "observations": self.observations,
            "digest": self.digest,
            "under": self.under,
            "primary_only": self.primary_only,
            "limit": self.limit,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], names: Sequence[str], outputs: Sequence[str] | None) -> Self:
        """Return the plan from the output of `to_dict`; raise ValueError, KeyError or TypeError if it is invalid."""
        M = 1 if outputs is None else len(outputs)
        terms, X, predicted = [], [], []
        for each, rows, values in zip(content["terms"], content["X"], content["predicted"], strict=True):
            sources = tuple(each["sources"])
            if not sources or not all(type(s) is int and 0 <= s < len(names) for s in sources):
                raise ValueError(f"a term of the sources {each['sources']}")
            x, weights = np.array(rows, dtype=float), np.array(each["weights"], dtype=float)
            found = np.array(values, dtype=float)
            if x.ndim != 2 or weights.shape != (len(sources), M) or found.shape != (len(x), len(sources), M):
                raise ValueError("a certificate whose draws do not fit together")
            terms.append(Combination(sources, weights, len(x)))
            X.append(x)
            predicted.append(found)
        counts = [numbers_or_nan(each, len(x)) for each, x in zip(content["counts"], X, strict=True)]
        keys = ("known", "error", "mean", "std", "expected", "units")
        vectors = {key: numbers_or_nan(content[key], M) for key in keys}
        return cls(
            terms=tuple(terms),
            X=tuple(X),
            counts=tuple(counts),
            predicted=tuple(predicted),
            targets=checked_targets(targets_from_json(content["target"], outputs), outputs),
            known=vectors["known"],
            error=vectors["error"],
            model=ModelAnswer(vectors["mean"], vectors["std"]),
            expected=vectors["expected"],
            units=vectors["units"],
            bounds=np.array(content["bounds"], dtype=float).reshape(M, 2),
            names=list(names),
            outputs=None if outputs is None else tuple(outputs),
            budget=float(content["budget"]),
            seed=int(content["seed"]),
            observations=int(content["observations"]),
            digest=str(content["digest"]),
            under=str(content["under"]),
            primary_only=bool(content["primary_only"]),
            limit=bool(content["limit"]),
        )


def kept_budget(share: float, budget: float | None) -> float:
    """Return the part of a budget that is reserved for a certificate."""
    if not 0 <= number(share, "certify") < 1:
        raise ValueError(f"certify must be a share of the budget, such as 0.2, got {brief(share)}")
    if share and budget is None:
        raise ValueError("certify reserves a share of the budget: pass a budget")
    return share * positive_number(budget, "budget") if share and budget is not None else 0.0


def check_budget(problem: Problem, budget: float, targets: Sequence[Target] | None = None) -> None:
    """Raise ValueError if a budget does not cover a certificate of the target of a run, as far as costs are known."""
    cost, wanted = problem.sources[0].cost, problem.targets if targets is None else targets
    if isinstance(cost, float):
        _check_pays(problem, budget, wanted, cost)


def check_shares(problem: Problem, kept: float) -> None:
    """Raise ValueError if a budget does not cover both a run and the certificate for which part of it is reserved."""
    cost = problem.sources[0].cost
    if not isinstance(cost, float):
        return
    if problem.budget < cost:
        raise ValueError(
            f"certify leaves only {problem.budget:.6g} of the budget of {problem.budget + kept:.6g} for the run, but "
            f"one evaluation of {problem.names[0]} costs {cost:.3g}: use a smaller share or a larger budget"
        )
    _check_pays(problem, kept, problem.targets, cost, problem.budget + kept)


def _check_pays(
    problem: Problem, budget: float, targets: Sequence[Target], cost: float, whole: float | None = None
) -> None:
    """Raise ValueError if a budget, perhaps a share of a ``whole`` one, does not cover a certificate."""
    needed = 3 if "variance" in targets else 2
    if budget * (1 + 1e-12) < needed * cost:
        made, share = int(budget / cost * (1 + 1e-12)), math.ceil(1000 * needed * cost / (whole or math.inf)) / 1000
        how = "" if whole is None else f", with a larger budget{f' or certify = {share:g}' if share < 1 else ''}"
        raise ValueError(
            f"a certificate budget of {budget:.6g} covers {made or 'no'} evaluation{'s' * (made != 1)} of "
            f"{problem.names[0]}, which cost {cost:.3g} each, but an interval needs {needed}: allow at least "
            f"{needed * cost:.6g}{how}"
        )


def numbers_or_nan(values: Any, length: int) -> Array:
    """Return an array of ``length`` numbers, some of which may be NaN, or raise ValueError."""
    found = np.array(values, dtype=float)
    if found.shape != (length,):
        raise ValueError(f"{length} numbers are required, got {values}")
    return found


def _known(control: ControlVariate, targets: Sequence[Target]) -> Average:
    """Return each target for the control variate, with its standard error; zero for quantiles, which use none."""
    value, error = np.zeros(len(targets)), np.zeros(len(targets))
    for m, target in enumerate(targets):
        if target == "mean":
            found = control.mean
        elif target == "variance":
            found = control.average(_variances)
        elif isinstance(target, Exceedance):
            limit = target.limit
            found = control.average(lambda values, weights, limit=limit: weights @ (values > limit))  # type: ignore[misc]
        else:
            continue
        value[m], error[m] = found.value[m], found.error[m]
    return Average(value, error)


def _variances(values: Array, weights: Array) -> Array:
    return np.asarray(weights @ (values - weights @ values) ** 2)


def _average_costs(problem: Problem, ledger: Ledger, measure: Measure) -> Array:
    """Return the average cost of an evaluation of each source under a measure, infinite where unknown."""
    X = measure.sobol(CONTROL.predicted, 1)
    costs = [
        math.inf if ledger.costs.unknown(s) else float(np.mean(ledger.costs.costs[s].expected(X)))
        for s in range(len(problem.sources))
    ]
    if math.isinf(costs[0]):
        raise ValueError(f"the cost of {problem.names[0]} is not known yet: evaluate it once before a certificate")
    return np.array(costs)


def _expected_residuals(control: ControlVariate, problem: Problem) -> list[Residuals]:
    """Return the residuals of each output predicted by the model, and which sources lack the output."""
    sources = list(enumerate(problem.sources))
    lacking = [
        tuple(s for s, source in sources if source.outputs is not None and name not in source.outputs)
        for name in problem.outputs or ("",)
    ]
    return [each._replace(lacking=of) for each, of in zip(control.expected_residuals, lacking, strict=True)]


def _terms(
    control: ControlVariate,
    residuals: Sequence[Residuals],
    problem: Problem,
    costs: Array,
    budget: float,
    targets: Sequence[Target],
    primary_only: bool,
) -> list[Combination]:
    """Return the terms to draw for a budget, or raise an error if it does not cover an interval."""
    _check_pays(problem, budget, targets, float(costs[0]))
    for source in (s for s in range(len(costs)) if not control.includes(s)):
        costs[source] = math.inf
    if primary_only or any(target != "mean" for target in targets) or np.isinf(costs[1:]).all():
        return [primary_alone(budget, float(costs[0]), len(targets))]
    return allocation(residuals, costs, budget)


def _repeats(measure: Measure, X: Array, observed: Array) -> bool:
    """Return whether draws of a measure without atoms coincide with locations of earlier evaluations."""
    if measure.discrete or measure.categorical or isinstance(measure, Empirical) or not len(observed):
        return False
    return bool((X[:, None] == numbers(observed, "observed")[None]).all(axis=2).any())
