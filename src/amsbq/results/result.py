"""`Result`: the integral, and how it was found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from .. import markup
from ..design.accounting import StopReason
from ..design.bulk import Bulk
from ..design.costs import of_budget
from ..design.integrator import Integrator
from ..inference.estimate import Estimate
from ..measures.adapters import NamedMeasureLike, measure_of_inputs
from ..outputs.estimates import AnyEstimate, Estimates, unknown_estimate
from ..outputs.evaluations import Evaluation
from ..outputs.goals import Goals
from ..outputs.names import output_number
from ..quantities.distribution import OutputDistribution
from ..quantities.sensitivity import Sensitivity
from ..validation import Array, Values
from .diagnostics import diagnose
from .findings import Finding, Findings
from .quantities import given, output_distribution, sensitivity, under

if TYPE_CHECKING:
    import pandas


#: columns of a table of evaluations, beside the inputs
COLUMNS = ("evaluation", "id", "source", "value", "variance", "cost", "status", "reason", "mean", "std")


#: why a result may have no integrator
NO_MODEL = "the result is of a method without one, or its journal does not hold enough to rebuild it"
#: why runs stop, in words
REASONS = {
    "budget": "the budget pays for nothing more of use",
    "tolerance": "the tolerance is reached",
    "rate": "evaluations tell too little for their cost",
    "evaluations": "as many evaluations were made as were allowed",
    "exhausted": "nothing is left that is worth evaluating",
    "failures": "the primary source failed again and again",
    "interrupted": "it was interrupted",
}


def unknown_because(names: Sequence[str]) -> str:
    """Return why an integral is unknown, for sources of these names.

    >>> unknown_because(["fine", "coarse"])
    'unknown, because fine has no value'
    """
    return f"unknown, because {names[0]} has no value"


def input_names(dim: int) -> list[str]:
    """Return names for inputs that have none: x0, x1, ..."""
    return [f"x{d}" for d in range(dim)]


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
        "budget", "tolerance", "rate", "evaluations", "exhausted", "failures", "interrupted", or what a stop rule of the
        user returned; empty while a run goes on.
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
        Number of queries that were asked and not answered.
    bulk : list of Bulk
        What was evaluated in bulk: for each such source the number of evaluations, its integral and the cost.
    header : dict or None
        The header of the journal that the result was read from.
    output : str
        The name of the output, if it is that of one of several.
    """

    estimate: AnyEstimate
    evaluations: list[Evaluation]
    spent: float
    stopped: StopReason
    names: list[str]
    budget: float = math.inf
    inputs: Sequence[str] = ()
    integrator: Integrator | None = None
    pending: int = 0
    header: dict[str, Any] | None = None
    bulk: Sequence[Bulk] = ()
    output: str = ""

    @classmethod
    def of(cls, it: Integrator, stopped: StopReason, inputs: Sequence[str] | None = None) -> Result:
        """Return the result of an integrator, for a reason to stop and with names of the inputs.

        Without a value of the primary source the integral is unknown, whatever the others say.
        """
        estimate = it.estimate() if it.learner.has_primary else unknown_estimate(it.outputs)
        named = inputs or it.inputs or input_names(it.measure.dim)
        return cls(
            estimate,
            list(it.evaluations),
            it.spent,
            stopped,
            it.names,
            it.budget,
            named,
            it,
            len(it.pending),
            bulk=tuple(it.bulk),
        )

    @property
    def mean(self) -> Values:
        """Mean of the integral: a float, or with several outputs an array (M,)."""
        return self.estimate.mean

    @property
    def std(self) -> Values:
        """Standard deviation of the integral: a float, or with several outputs an array (M,)."""
        return self.estimate.std

    def interval(self, level: float = 0.95) -> tuple[Values, Values]:
        """Return (low, high), the central interval that holds the integral with probability ``level``.

        With several outputs both are arrays (M,).
        """
        found: tuple[Values, Values] = self.estimate.interval(level)
        return found

    def quantile(self, p: float) -> Values:
        """Return the number below which the integral is with probability p; with several outputs an array (M,)."""
        return self.estimate.quantile(p)

    @property
    def outputs(self) -> tuple[str, ...] | None:
        """Names of the outputs, if there are several."""
        return self.estimate.names if isinstance(self.estimate, Estimates) else None

    @property
    def known(self) -> bool:
        """Whether the integral is known, of one output at least."""
        return not bool(np.isnan(self.mean).all())

    def __getitem__(self, output: str | int) -> Result:
        """Return the result of one of several outputs alone, by its name or number.

        It has all that a result of one output has: numbers, evaluations, figures, diagnoses.
        """
        if self.outputs is None:
            raise KeyError(f"there is one output, and no {output!r}: name several, as in outputs=['peak', 'time']")
        m = output_number(self.outputs, output)
        it = None if self.integrator is None else self.integrator.of_output(m)
        evaluations = self._evaluations_of(m) if it is None else it.evaluations
        return replace(self, estimate=self.estimate[m], evaluations=evaluations, integrator=it, output=self.outputs[m])

    def _evaluations_of(self, output: int) -> list[Evaluation]:
        """Return the evaluations of one output alone, by the journal: of the sources that have it."""
        assert self.outputs is not None
        described = [] if self.header is None else self.header["problem"]["sources"]
        lacking = {s for s, source in enumerate(described) if self.outputs[output] not in source["outputs"]}
        return [e.of_output(output) for e in self.evaluations if e.source not in lacking]

    def primary_values(self) -> Array:
        """Return the values of the primary source, shape (n,), or (n, M) with NaN for outputs that are missing."""
        values = [e.value for e in self.evaluations if e.source == 0 and e.status == "ok"]
        return np.reshape(values, (-1,) if self.outputs is None else (-1, len(self.outputs)))

    def distances(self) -> Array:
        """Return how far each output is from its goal, shape (M,), as the ratio of its standard deviation to its goal.

        The goal is the tolerance, if the run has any; else a share of the mean, the same for all outputs.
        """
        if self.outputs is None:
            raise ValueError("there is one output: its error bar is std")
        if self.integrator is not None and self.integrator.learner.belief is not None:
            return self.integrator.distances()
        return Goals().distances(self.estimate, self.primary_values())

    def furthest(self) -> Result:
        """Return the result of the output that is furthest from its goal; the result itself if there is one output."""
        return self if self.outputs is None else self[int(np.argmax(self.distances()))]

    def predict(self, source: int | str, X: ArrayLike) -> tuple[Array, Array]:
        """Return mean and variance (n,) of a source without its noise at each X_i, averaged over hyperparameters.

        Parameters
        ----------
        source : int or str
            Number or name of the source.
        X : (n, D) array
            Locations.
        """
        return self._model("to predict with").predict(source, X)

    def distribution(self, output: str | int | None = None) -> OutputDistribution:
        """Return the distribution of the primary source's output under the distribution of the inputs.

        Its ``variance()``, ``std()``, ``probability(above=...)``, ``quantile(p)``, ``cdf(grid)`` and ``density(grid)``
        are estimates from the same evaluations as the integral. The first of them takes a second or two. With several
        outputs, ``output`` is the name or number of one.
        """
        return output_distribution(self._model("to ask for a distribution", output))

    def sensitivity(
        self, output: str | int | None = None, *, groups: Mapping[str, Sequence[str]] | None = None
    ) -> Sensitivity:
        """Return which inputs matter: the shares of the variance of the output that they explain, Sobol' indices.

        Parameters
        ----------
        output : str or int, optional
            With several outputs, the name or number of one.
        groups : dictionary of lists of names of inputs, optional
            Groups of inputs, by name, whose indices are wanted instead of those of their members.

        Returns
        -------
        Sensitivity
            Its ``first`` are the shares that inputs explain by themselves, ``total`` those with all interactions;
            ``print`` shows a table and what to make of it. Inputs that depend on each other have none: `ValueError`.
        """
        return sensitivity(self._model("to ask for sensitivities", output), self.inputs, groups)

    def under(self, other: NamedMeasureLike) -> AnyEstimate:
        """Return the integral, or those of all outputs, under another distribution of the inputs.

        It is an `Estimate`, or `Estimates`, from the same evaluations.

        Parameters
        ----------
        other : measure, or anything that `as_measure` takes
            Of the same inputs: shifted, narrower, wider, correlated, or samples. A dictionary has them by name, in any
            order. Where evaluations do not reach, the error bar grows; if they do not reach a tenth of the other
            distribution or more, there is a warning.
        """
        if self.outputs is None:
            return under(self._model("to integrate"), measure_of_inputs(other, self.inputs))
        return Estimates([self[output].under(other) for output in self.outputs], self.outputs)

    def given(self, /, **values: ArrayLike) -> Estimate | Estimates:
        """Return the average output for a given value of one input, as in ``given(x0=0.3)``, over all other inputs.

        For a list of values it is a curve: `Estimates` with arrays ``mean`` and ``std`` and the band ``interval()``.
        If inputs depend on each other, the others keep the distribution that they have without that value.
        """
        return given(self._model("to ask for conditional expectations"), self.inputs, values)

    def _model(self, purpose: str, output: str | int | None = None) -> Integrator:
        if self.integrator is None:
            raise ValueError(f"there is no model {purpose}: {NO_MODEL}")
        return self.integrator if output is None else self.integrator.of_output(output)

    def to_pandas(self) -> pandas.DataFrame:
        """Return the evaluations as a table, one row for each, with a column for each input."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install 'amsbq[pandas]'") from None
        return pandas.DataFrame(self.rows())

    def diagnose(self) -> Findings:
        """Return findings on what the error bar rests on, the fit, the worth of each source and the outlook.

        A list of `Finding`, warnings first; ``print`` shows one on each line. It takes a second or two, once. With
        several outputs it is about the one that is furthest from its goal.
        """
        it = self._model("to diagnose")
        if self.outputs is None:
            return diagnose(it, self.estimate, self.inputs)
        of_one = self.furthest()
        said = Finding(
            "note",
            "outputs",
            f"of {len(self.outputs)} outputs, {of_one.output} is furthest from its goal: {of_one.estimate.summary()}.",
            f"All findings are about {of_one.output}; result['name'].diagnose() is about another one.",
        )
        assert of_one.integrator is not None
        return Findings([said, *diagnose(of_one.integrator, of_one.estimate, self.inputs)])

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each evaluation; inputs that are named like another column get the prefix ``x.``."""
        inputs = [f"x.{name}" if name in COLUMNS else name for name in self.inputs]
        return [
            {
                "id": e.id,
                "source": self.names[e.source],
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

    def _columns(self, name: str, value: Values) -> dict[str, float]:
        """Return a number by its name, or with several outputs one for each, as in ``value.peak``."""
        if self.outputs is None:
            return {name: value}
        each = np.broadcast_to(value, len(self.outputs)).tolist()
        return {f"{name}.{output}": number for output, number in zip(self.outputs, each, strict=True)}

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(row[0]) for row in rows)
        table = [f"  {name:{width}}  {made:>6}  {failed:>6}  {cost:>10}" for name, made, failed, cost in rows]
        return "\n".join([self._headline(), f"stopped: {self._why()}", "", *table])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return the answer, the estimate against cost, what is spent, and the sources, for notebooks."""
        head, *rows = self._rows()
        headline = self._headline() if self.outputs is None else f"{len(self.outputs)} outputs"
        parts = [f"<p><strong>{escape(headline)}</strong><br>stopped: {escape(self._why())}</p>"]
        if math.isfinite(self.budget):
            parts.append(markup.share(self.spent / self.budget, f"spent {of_budget(self.spent, self.budget)}"))
        if self.outputs is not None:
            return "<br>".join([*parts, f"{self.estimate._repr_html_()}{markup.table(head, rows)}"])
        told = np.array([(e.cost, e.mean, e.std) for e in self.evaluations]).reshape(-1, 3)
        known = np.isfinite(told[:, 1:]).all(axis=1)
        if known.sum() > 1:
            cost, (mean, std) = np.cumsum(told[:, 0])[known], told[known, 1:].T
            parts.append(markup.curve(cost, mean, (mean - 2 * std, mean + 2 * std), "estimate against cost"))
        return "<br>".join(parts) + markup.table(head, rows)

    def _headline(self) -> str:
        known = None if self.integrator is None else self.integrator.range
        wanted = self.output or ("log of the integral" if known is not None and known.log else "integral")
        if not self.known and self.evaluations:
            failed = [e.reason for e in self.evaluations if e.source == 0 and e.status == "failed"]
            last = f"; the last evaluation of it: {failed[-1]}" if failed else ""
            return f"{wanted}: {unknown_because(self.names)}{last}"
        name = "" if self.outputs is not None else f"{wanted}: "
        return f"{name}{self.estimate.summary()}"

    def _why(self) -> str:
        decisions = math.fsum(e.decision for e in self.evaluations)
        deciding = f", {decisions:.3g} of it on decisions" if decisions else ""
        reason = REASONS.get(self.stopped, self.stopped) or "not yet"
        return f"{reason}; spent {of_budget(self.spent, self.budget)}{deciding}"

    def _rows(self) -> list[tuple[str, str, str, str]]:
        rows = [("source", "made", "failed", "cost")]
        for source, name in enumerate(self.names):
            made, failed, cost = self.totals(source)
            rows.append((name, str(made), str(failed), f"{cost:.6g}"))
        return rows

    def totals(self, source: int) -> tuple[int, int, float]:
        """Return how many evaluations of a source were made and have failed, those in bulk included, and their cost."""
        of = [e for e in self.evaluations if e.source == source]
        failed, cost = sum(e.status == "failed" for e in of), math.fsum(e.cost for e in of)
        made = len(of) - failed
        for bulk in (bulk for bulk in self.bulk if bulk.source == source):
            more, their_cost = bulk.with_those_beside(self.evaluations)
            made, cost = made + more, cost + their_cost
        return made, failed, cost
