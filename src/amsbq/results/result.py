"""`Result`: the integral, and how it was found."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..certificates.certificate import Certificate
from ..common import markup
from ..common.messages import suggestion, warn
from ..common.threads import threads_for
from ..common.validation import Array, Values, brief, numbers
from ..design.bulk import Bulk
from ..design.decisions import Decisions, of_output
from ..design.description import input_names
from ..design.evaluations import Evaluation, StopReason
from ..design.goals import Goals
from ..design.labels import COST, OUTPUT, Labels
from ..measures.adapters import NamedMeasureLike, in_order_of, measure_of_inputs
from ..measures.base import Measure
from ..posterior.distribution import OutputDistribution
from ..posterior.estimate import Estimate
from ..posterior.estimates import AnyEstimate, Estimates, unknown_estimate
from ..posterior.outputs import output_number
from ..posterior.sensitivity import Sensitivity, grouped
from ..posterior.targets import Target, checked_targets, target_name, targets_from_json
from .analysis import SETTINGS, indices, known_target, output_distribution, posterior_of
from .findings import Finding, Findings, certificate_findings, diagnose

if TYPE_CHECKING:
    import pandas


#: columns of a table of evaluations, besides the inputs
COLUMNS = ("evaluation", "id", "source", "value", "variance", "cost", "status", "reason", "mean", "std")


#: why a result has no integrator
NO_MODEL = "the result comes from a method without one, or its journal does not hold enough to rebuild it"
#: why runs stop, in words
REASONS = {
    "budget": "the remaining budget does not cover another useful evaluation",
    "tolerance": "the tolerance is reached",
    "error cost": "further evaluations cost more than the smaller error bar is worth",
    "rate": "further evaluations are worth too little for their cost",
    "evaluations": "the largest allowed number of evaluations is reached",
    "exhausted": "nothing is left that is worth evaluating",
    "failures": "the primary source failed repeatedly",
    "interrupted": "it was interrupted",
}


def unknown_because(names: Sequence[str]) -> str:
    """Return a clause that says why an integral is unknown, for sources with the given names.

    >>> unknown_because(["fine", "coarse"])
    'unknown, because fine has no value'
    """
    return f"unknown, because {names[0]} has no value"


@dataclass(frozen=True)
class Result:
    """The integral, and how it was found.

    Attributes
    ----------
    estimate : Estimate
        The distribution of the integral; ``mean``, ``std``, ``interval(level)`` and ``quantile(p)`` are those of the
        estimate.
    evaluations : list of Evaluation
        Each with source, x, value, variance, cost, status, reason, and mean and std of the integral after it.
    spent : float
        The cost of all evaluations.
    stopped : str
        "budget", "tolerance", "rate", "evaluations", "exhausted", "failures", "interrupted", or what the user's stop
        rule returned; empty while a run continues.
    names : list of str
        Names of the sources.
    budget : float
        In units of cost; infinite if there is no limit.
    inputs : list of str
        Names of the inputs.
    integrator : Integrator or None
        The integrator that chose the evaluations, with the model of the sources. None for results of methods without
        one, and for journals that do not hold enough to rebuild it.
    pending : int
        Number of queries without an answer.
    bulk : list of Bulk
        Evaluations in bulk: for each such source their number, its integral and the cost.
    header : dict or None
        The header of the journal from which the result was read. It describes the problem even without an integrator.
    output : str
        The name of the output, for the result of one of several outputs; otherwise empty.
    stored_target : Estimate, Estimates or None
        The estimate of ``target`` that the journal has stored, if the target is not the mean; with it, reading needs
        no refit.
    certificate : Certificate or None
        The most recent certificate, from fresh evaluations.
    """

    estimate: AnyEstimate
    evaluations: list[Evaluation]
    spent: float
    stopped: StopReason
    names: list[str]
    budget: float = math.inf
    inputs: Sequence[str] = ()
    integrator: Decisions | None = None
    pending: int = 0
    header: dict[str, Any] | None = None
    bulk: Sequence[Bulk] = ()
    output: str = ""
    stored_target: AnyEstimate | None = None
    certificate: Certificate | None = None

    @property
    def mean(self) -> Values:
        """Mean of the integral: a float, or with several outputs an array (M,)."""
        return self.estimate.mean

    @property
    def std(self) -> Values:
        """Standard deviation of the integral: a float, or with several outputs an array (M,)."""
        return self.estimate.std

    @property
    def target(self) -> AnyEstimate:
        """Estimate of the target of the run: mean, variance, probability or quantile, for each output.

        Any target other than the mean takes a second or two the first time.
        """
        if all(target == "mean" for target in targets(self)):
            return self.estimate
        found = self.stored_target or known_target(self._model("to ask for the target"))
        if self.outputs is None:
            return found.in_unit(target_unit(self, self.output))
        units, labels = zip(*((target_unit(self, name), self.labels.label(name)) for name in self.outputs), strict=True)
        return found.in_units(units, labels)

    def interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """Return (low, high), the central interval that contains the integral with probability ``level``.

        With several outputs both are arrays (M,).
        """
        found: tuple[Values, Values] = self.estimate.interval(level)
        return found

    def quantile(self, p: float) -> Values:
        """Return the quantile p of the integral's distribution; with several outputs an array (M,)."""
        return self.estimate.quantile(p)

    @property
    def outputs(self) -> tuple[str, ...] | None:
        """Names of the outputs, if there are several."""
        return self.estimate.names if isinstance(self.estimate, Estimates) else None

    @property
    def labels(self) -> Labels:
        """Title of the run, and names and units of its inputs, outputs and costs."""
        if self.integrator is not None:
            return self.integrator.problem.labels
        return Labels.from_dict({} if self.header is None else self.header.get("labels", {}))

    def __getitem__(self, output: str | int) -> Result:
        """Return the result of one of several outputs, by its name or number.

        It has everything that the result of a run with one output has: numbers, evaluations, figures, diagnoses.
        """
        if self.outputs is None:
            raise KeyError(
                f"there is no output {output!r}: there is only a single one. To integrate several, name them, as in "
                "outputs=['peak', 'time']"
            )
        m = output_number(self.outputs, output)
        it = None if self.integrator is None else of_output(self.integrator, m)
        described = self.header["problem"]["sources"] if it is None and self.header is not None else []
        lacking = {s for s, source in enumerate(described) if self.outputs[m] not in source["outputs"]}
        by_journal = (e.of_output(m) for e in self.evaluations if e.source not in lacking)
        evaluations = list(by_journal) if it is None else it.evaluations
        target = None if self.stored_target is None else self.stored_target[m]
        found = replace(self, estimate=self.estimate[m], evaluations=evaluations, integrator=it, stored_target=target)
        certificate = None if self.certificate is None else self.certificate[m]
        return replace(found, output=self.outputs[m], certificate=certificate)

    def predict(self, source: int | str, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and variance (n,) of a source without its noise at each X_i, averaged over hyperparameters.

        Parameters
        ----------
        source : int or str
            Number or name of the source; "limit" is what sources tend to as they are refined, in runs with
            ``limit=True``.
        X : (n, D) array or data frame
            Locations.
        """
        return self._model("to predict with").predict(source, in_order_of(self.inputs, X))

    def distribution(self, output: str | int | None = None) -> OutputDistribution:
        """Return the distribution of the primary source's output under the distribution of the inputs.

        Its ``variance()``, ``std()``, ``probability(above=...)``, ``quantile(p)``, ``cdf(grid)`` and ``density(grid)``
        are estimates from the same evaluations as the integral. The first call to any of them takes a second or two.
        With several outputs, ``output`` selects one by name or number.
        """
        return output_distribution(self._model("to ask for a distribution", output))

    def sensitivity(
        self, output: str | int | None = None, *, groups: Mapping[str, Sequence[str]] | None = None
    ) -> Sensitivity:
        """Return Sobol' indices: the shares of the variance of the output that inputs explain.

        Parameters
        ----------
        output : str or int, optional
            With several outputs, the name or number of one.
        groups : dictionary of lists of names of inputs, optional
            Groups of inputs, by name: an index for each group instead of one for each input.

        Returns
        -------
        Sensitivity
            Its ``first`` contains the shares that inputs explain by themselves, its ``total`` those including all
            interactions; ``print`` shows them in a table that explains how to read them.

        Raises
        ------
        ValueError
            If the inputs are dependent.
        """
        it = self._model("to ask for sensitivities", output)
        if it.measure.marginals is None:
            raise ValueError(
                f"Sobol' indices are defined for independent inputs, but these are dependent: {it.measure!r}. Instead, "
                f"result.given({self.inputs[0]}=...) shows the output against one input"
            )
        if groups is None:
            return Sensitivity(self.inputs, indices(it).first, indices(it).total)
        with threads_for(len(it.learner)):
            return Sensitivity.of(posterior_of(it, primary=True), grouped(self.inputs, groups))

    def under(self, other: NamedMeasureLike) -> AnyEstimate:
        """Return the integral, or those of all outputs, under another distribution of the inputs.

        It is an `Estimate`, or `Estimates`, from the same evaluations.

        Parameters
        ----------
        other : measure, or anything that `as_measure` accepts
            Another distribution of the same inputs: shifted, narrower, wider, correlated, or samples. A dictionary
            replaces the distributions of the inputs that it names; the others stay as they are. The error bar grows if
            the other distribution extends beyond the evaluations. A warning is issued if the share of it far from all
            evaluations is larger by a tenth than that of the distribution of the run.
        """
        if self.outputs is not None:
            found = [self[output].under(other) for output in self.outputs]
            return Estimates(found, self.outputs, [self.labels.label(output) for output in self.outputs])
        it = self._model("to integrate")
        measure = of_same_inputs(it.measure, measure_of_inputs(other, self.inputs, it.measure))
        posterior = posterior_of(it, primary=True)
        spread = np.std(it.learner.data.values.of_source(0).y)
        with threads_for(len(it.learner)):
            estimate = posterior.under(measure)
            stds = (posterior.predict(0, each.sobol(SETTINGS.points, 1))[1] for each in (measure, it.measure))
            unknown, before = (float(np.mean(SETTINGS.min_informative * std > spread)) for std in stds)
        if unknown - before >= SETTINGS.material:
            warn(
                f"the evaluations do not reach {100 * unknown:.0f} % of the other distribution, and {100 * before:.0f} "
                "% of that of the run: there, the answer rests on prior assumptions about such functions",
            )
        return estimate.in_unit(self.labels.unit(self.output))

    def given(self, /, **values: ArrayLike) -> Estimate | Estimates:
        """Return the output for fixed values of some inputs, averaged over all other inputs, as in ``given(x0=0.3)``.

        A category is given by its name, as in ``given(speed=40, mode="max")``, or by its number.
        For a list of values, or lists of the same length, the result is a curve: `Estimates` with arrays ``mean`` and
        ``std`` and the band ``interval()``. Dependent inputs are averaged over their marginal distribution, not over
        the distribution conditional on these values.
        """
        it = self._model("to ask for conditional expectations")
        if not values:
            raise ValueError(f"give values of one input or of several, as in given({self.inputs[0]}=[...])")
        order, columns = list(self.inputs), {}
        for name, at in values.items():
            if name not in order:
                hint = suggestion(name, order)
                raise ValueError(f"there is no input {name!r}{hint}; valid names: {', '.join(order)}")
            d = order.index(name)
            t = numbers(_category_numbers(at, it.measure.categories.get(d, ()), name), name)
            columns[d] = (
                it.measure.over([d]).check_points(np.atleast_1d(t)[:, None], name, [name])[:, 0].reshape(t.shape)
            )
        try:
            rows = np.broadcast_arrays(*(columns[d] for d in sorted(columns)))
        except ValueError:
            raise ValueError(
                f"lists of values of several inputs must have equal lengths, got {brief(values)}"
            ) from None
        with threads_for(len(it.learner)):
            points = np.column_stack([np.atleast_1d(row) for row in rows])
            found = posterior_of(it, primary=True).given(sorted(columns), points)
        known: Estimates = found.in_units([self.labels.unit(self.output)] * len(found))
        return known[0] if rows[0].ndim == 0 else known

    def _model(self, purpose: str, output: str | int | None = None) -> Decisions:
        if self.integrator is None:
            raise ValueError(f"there is no model {purpose}: {NO_MODEL}")
        return self.integrator if output is None else of_output(self.integrator, output)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the evaluations as a table, one row for each, with a column for each input."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install 'amsbq[pandas]'") from None
        return pandas.DataFrame(self.rows())

    def diagnose(self) -> Findings:
        """Return findings on what the error bar rests on, the fit, the worth of each source, and the outlook.

        They are a list of `Finding`, warnings first; ``print`` shows one on each line. The first call takes a second or
        two. With several outputs the findings are about the one that is farthest from its goal.
        """
        if self.outputs is None:
            found = diagnose(self._model("to diagnose"), self.estimate, self.inputs)
            return Findings([*found, *certificate_findings(self.certificate)])
        of_one = furthest(self)
        known = of_one.estimate.summary(self.labels.unit(of_one.output))
        said = Finding(
            "note",
            "outputs",
            f"of {len(self.outputs)} outputs, {of_one.output} is farthest from its goal: {known}.",
            f"All findings are about {of_one.output}; for another one, use result['name'].diagnose().",
        )
        return Findings([said, *of_one.diagnose()])

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each evaluation; inputs named like another column get the prefix ``x.``.

        If sources have fidelities there is a column for each knob, ``fidelity.h``, with NaN for sources without.
        """
        inputs = [f"x.{name}" if name in COLUMNS else name for name in self.inputs]
        fidelities = self._fidelities()
        return [
            {
                "id": e.id,
                "source": self.names[e.source],
                **fidelities[e.source],
                **dict(zip(inputs, e.x.tolist(), strict=True)),
                **self._columns("value", e.value),
                **self._columns("variance", e.variance),
                "cost": e.cost,
                "status": e.status,
                "reason": e.reason or e.note,
                **self._columns("mean", e.mean),
                **self._columns("std", e.std),
            }
            for e in self.evaluations
        ]

    def _fidelities(self) -> list[dict[str, float]]:
        """Return the fidelity of each source, by column name; empty dictionaries if no source has one."""
        if self.integrator is not None:
            known = [source.fidelity for source in self.integrator.sources]
        else:
            described = [] if self.header is None else self.header.get("problem", {}).get("sources", [])
            known = [source.get("fidelity") for source in described] or [None] * len(self.names)
        knobs = next((list(fidelity) for fidelity in known if fidelity), [])
        return [{f"fidelity.{knob}": (fidelity or {}).get(knob, math.nan) for knob in knobs} for fidelity in known]

    def _columns(self, name: str, value: Values) -> dict[str, float]:
        """Return a number by column name, or with several outputs one for each, as in ``value.peak``."""
        names = [name] if self.outputs is None else [f"{name}.{output}" for output in self.outputs]
        return dict(zip(names, np.broadcast_to(value, len(names)).tolist(), strict=True))

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(row[0]) for row in rows)
        table = [f"  {name:{width}}  {made:>6}  {failed:>6}  {cost:>10}" for name, made, failed, cost in rows]
        titled = [self.labels.title] if self.labels.title else []
        wanted = [*titled, *map(str, known_targets(self))]
        return "\n".join([*wanted, self._headline(), *self._certified(), f"stopped: {self._why()}", "", *table])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the answer, the estimate against cost, the spent budget, and the sources."""
        head, *rows = self._rows()
        headline = self._headline() if self.outputs is None else f"{len(self.outputs)} outputs"
        first, *others = [*map(str, known_targets(self)), headline]
        shown = "<br>".join([f"<strong>{escape(first)}</strong>", *map(escape, [*others, f"stopped: {self._why()}"])])
        titled = f"{escape(self.labels.title)}<br>" if self.labels.title else ""
        parts = [f"<p>{titled}{shown}</p>"]
        if math.isfinite(self.budget):
            spent = self.labels.of_budget(self.spent, self.budget)
            parts.append(markup.share(self.spent / self.budget, f"spent {spent}"))
        if self.outputs is not None:
            return "<br>".join([*parts, f"{self.estimate._repr_html_()}{markup.table(head, rows)}"])
        told = np.array([(e.cost, e.mean, e.std) for e in self.evaluations]).reshape(-1, 3)
        known = np.isfinite(told[:, 1:]).all(axis=1)
        if known.sum() > 1:
            cost, (mean, std) = np.cumsum(told[:, 0])[known], told[known, 1:].T
            parts.append(markup.curve(cost, mean, (mean - 2 * std, mean + 2 * std), "estimate against cost"))
        return "<br>".join(parts) + markup.table(head, rows)

    def _certified(self) -> list[str]:
        certificate = self.certificate
        if certificate is None or not certificate.complete:
            return []
        several = certificate.outputs
        of = [""] if several is None else [f" of {self.labels.label(name)}" for name in several]
        return [f"certificate{each}: {certificate.summary(m)}" for m, each in enumerate(of)]

    def _headline(self) -> str:
        known = None if self.integrator is None else self.integrator.problem.ranges[0]
        log = known is not None and known.log and self.outputs is None
        wanted = self.labels.expected(self.output, log, is_of_limit(self))
        if not is_known(self) and self.evaluations:
            failed = [e.reason for e in self.evaluations if e.source == 0 and e.status == "failed"]
            last = f"; the last evaluation of it: {failed[-1]}" if failed else ""
            return f"{wanted}: {unknown_because(self.names)}{last}"
        if self.outputs is None:
            return f"{wanted}: {self.estimate.summary(self.labels.unit(self.output))}"
        names, units = zip(*((self.labels.label(name), self.labels.unit(name)) for name in self.outputs), strict=True)
        said: str = self.estimate.summary(names, units)
        return said

    def _why(self) -> str:
        decisions = math.fsum(e.decision for e in self.evaluations)
        deciding = f", {decisions:.3g} of it on decisions" if decisions else ""
        reason = REASONS.get(self.stopped, self.stopped) or "not yet"
        return f"{reason}; spent {self.labels.of_budget(self.spent, self.budget)}{deciding}"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        rows = [(name, *totals(self, source)) for source, name in enumerate(self.names)]
        excluded = Counter(self.names[e.source] for e in self.evaluations if e.excluded)
        notes = {name: f" ({n} excluded)" for name, n in excluded.items()}
        texts = [
            (name + notes.get(name, ""), str(made), str(failed), f"{cost:.6g}") for name, made, failed, cost in rows
        ]
        return [("source", "made", "failed", self.labels.axis(COST)), *texts]


def result_of(it: Decisions, stopped: StopReason, inputs: Sequence[str] | None = None) -> Result:
    """Return the result of an integrator that stopped for this reason, with the names of the inputs.

    Without a value of the primary source the integral is unknown, even if other sources have values.
    """
    return Result(
        it.estimate() if it.learner.has_primary else unknown_estimate(it.outputs),
        list(it.evaluations),
        it.spent,
        stopped,
        it.names,
        it.budget,
        inputs or it.inputs or input_names(it.measure.dim),
        it,
        len(it.pending),
        bulk=tuple(it.in_bulk.made),
    )


def is_of_limit(result: Result) -> bool:
    """Return whether the answer is the limit that the sources tend to as they are refined."""
    if result.integrator is not None:
        return bool(result.integrator.problem.limit)
    return result.header is not None and bool(result.header["problem"].get("limit"))


def is_known(result: Result) -> bool:
    """Return whether the integral of at least one output is known."""
    return not bool(np.isnan(result.mean).all())


def targets(result: Result) -> list[Target]:
    """Return the target of the run for each output."""
    if result.integrator is not None:
        return result.integrator.problem.targets
    content = "mean" if result.header is None else result.header["problem"].get("target", "mean")
    return checked_targets(targets_from_json(content, result.outputs), result.outputs)


class KnownTarget(NamedTuple):
    """The target of an output, if it is not its mean: name, estimate and unit."""

    name: str
    estimate: Estimate
    unit: str

    def __str__(self) -> str:
        return f"{self.name}: {self.estimate.summary(self.unit)}"


def known_targets(result: Result) -> list[KnownTarget]:
    """Return each target but the mean, with its estimate; an empty list if there is no model."""
    if not is_known(result) or (result.stored_target is None and result.integrator is None):
        return []
    outputs, labels = result.outputs or [result.output], result.labels
    wanted = [(m, *each) for m, each in enumerate(zip(outputs, targets(result), strict=True)) if each[1] != "mean"]
    found: Any = result.target if wanted else None
    return [
        KnownTarget(
            target_name(target, labels.label(output or OUTPUT), labels.unit(output)),
            found if result.outputs is None else found[m],
            target_unit(result, output),
        )
        for m, output, target in wanted
    ]


def target_unit(result: Result, output: str = "") -> str:
    """Return the unit of the target of an output; ``output`` names it if there are several."""
    m = 0 if result.outputs is None else list(result.outputs).index(output)
    return result.labels.target_unit(targets(result)[m], output)


def primary_values(result: Result) -> Array:
    """Return the values of the primary source, shape (n,), or (n, M) with NaN for missing outputs."""
    values = [e.value for e in result.evaluations if e.source == 0 and e.status == "ok"]
    return np.reshape(values, (-1,) if result.outputs is None else (-1, len(result.outputs)))


def distances(result: Result) -> Array:
    """Return how far each of several outputs is from its goal: its standard deviation divided by the goal, shape (M,).

    The goal is the tolerance, if the run has one, and otherwise the same fraction of the mean for all outputs.
    """
    it = result.integrator
    if it is not None and it.learner.posterior is not None:
        return it.problem.goals.distances(it.learner.posterior.estimate, it.learner.data.of_source(0).y)
    return Goals().distances(result.estimate, primary_values(result))


def furthest(result: Result) -> Result:
    """Return the result of the output that is farthest from its goal; the result itself if there is one output."""
    return result if result.outputs is None else result[int(np.argmax(distances(result)))]


def totals(result: Result, source: int) -> tuple[int, int, float]:
    """Return the numbers of successful and failed evaluations of a source, including those in bulk, and their cost."""
    of = [e for e in result.evaluations if e.source == source]
    failed, cost = sum(e.status == "failed" and not e.excluded for e in of), math.fsum(e.cost for e in of)
    made = sum(e.status == "ok" for e in of)
    bulk = [each for each in result.bulk if each.source == source]
    more, lost = [each.with_those_beside(result.evaluations) for each in bulk], sum(each.failed for each in bulk)
    return made + sum(n for n, _ in more) - lost, failed + lost, cost + math.fsum(each for _, each in more)


def _category_numbers(given: ArrayLike, labels: Sequence[str], name: str) -> ArrayLike:
    """Return category names as category numbers; numbers are returned unchanged."""
    values = np.asarray(given)
    if values.dtype.kind != "U":
        return given
    unknown = [value for value in values.ravel().tolist() if value not in labels]
    if unknown:
        known = f"one of {', '.join(labels)}" if labels else "numbers"
        raise ValueError(f"{name} must be {known}, got {unknown[0]!r}{suggestion(unknown[0], labels)}")
    return np.array([list(labels).index(value) for value in values.ravel()], dtype=float).reshape(values.shape)


def of_same_inputs(measure: Measure, other: Measure) -> Measure:
    """Return the other measure with its categories in the order of this one; raise ValueError if its inputs differ."""
    if other.dim != measure.dim:
        raise ValueError(f"the other distribution has {other.dim} inputs, but there are {measure.dim}")
    if other.function is not None and other.function is not measure.function:
        raise ValueError(
            "the other distribution has its own function: give a distribution of the locations at which sources were "
            "evaluated"
        )
    before, now = ({d: set(labels) for d, labels in each.categories.items()} for each in (measure, other))
    if before != now or (before and (measure.marginals is None) != (other.marginals is None)):
        raise ValueError(
            "categorical inputs must have the same categories in the other distribution, and be independent of all "
            f"other inputs: give a Product, got {other!r}"
        )
    return other.with_categories(measure.categories)
