"""`Certificate`: an estimate from fresh random evaluations that is unbiased however poor the model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..common.validation import Array, Values, as_known, plus_minus
from ..design.evaluations import Evaluation, Query
from ..design.labels import OUTPUT, Labels
from ..posterior.outputs import output_number
from ..posterior.targets import target_name
from .answers import UNKNOWN, Answer, answer, logarithm_of
from .intervals import betting_interval, checked_level, largest_share, share_interval
from .plan import ModelAnswer, Plan
from .run import CertificateRun


@dataclass(frozen=True)
class Comparison:
    """Comparison of a certificate with the model, in one sentence, and advice if they disagree."""

    agrees: bool
    distance: float  # in standard deviations of the difference
    text: str
    advice: str = ""


class Certificate:
    """An estimate from fresh random evaluations, with the posterior mean as a control variate; made by `certify`.

    Parameters
    ----------
    plan : Plan
        Draws and control variate, fixed before anything was evaluated.
    evaluations : list of Evaluation
        The evaluations made so far.
    run : CertificateRun, optional
        Asks for missing evaluations that are made elsewhere.
    labels : Labels, optional
        The units and display names with which it is printed.

    Attributes
    ----------
    mean : float, or with several outputs an array (M,)
        The estimate: unbiased, however poor the model. NaN until all evaluations are made.
    std : float, or (M,)
        Its standard error.
    evaluations : list of Evaluation
        The fresh evaluations. They were not used to train the model: afterwards they may be added to a run.
    spent : float
        Their cost.
    """

    def __init__(
        self,
        plan: Plan,
        evaluations: Sequence[Evaluation] = (),
        run: CertificateRun | None = None,
        labels: Labels | None = None,
    ) -> None:
        self.plan, self.run, self.labels = plan, run, labels or Labels()
        self._evaluations = evaluations
        self._latest: tuple[int, list[Answer]] | None = None  # number of evaluations, and the answers from them

    @property
    def evaluations(self) -> list[Evaluation]:
        """The fresh evaluations, in the order in which they were reported."""
        return list(self._evaluations if self.run is None else self.run.evaluations)

    @property
    def outputs(self) -> tuple[str, ...] | None:
        """Names of the outputs, if there are several."""
        return self.plan.outputs

    @property
    def complete(self) -> bool:
        """Whether all evaluations are made."""
        return len(self.evaluations) == len(self.plan.evaluated)

    @property
    def spent(self) -> float:
        """The cost of the fresh evaluations."""
        return math.fsum(e.cost for e in self.evaluations)

    @property
    def digest(self) -> str:
        """The first digits of the SHA-256 of the control variate, which was frozen before anything was drawn."""
        return self.plan.digest

    @property
    def mean(self) -> Values:
        """The estimate: a float, or with several outputs an array (M,)."""
        return self._each([each.mean for each in self._answers])

    @property
    def std(self) -> Values:
        """The standard error of the estimate: a float, or with several outputs an array (M,)."""
        return self._each([each.std for each in self._answers])

    def interval(self, level: float = 0.95, *, joint: bool = False, anytime: bool = False) -> tuple[Values, Values]:
        """Return (low, high), an interval that contains the true value with probability ``level``.

        Parameters
        ----------
        level : float
        joint : bool
            With several outputs: whether all of their intervals hold jointly with that probability.
        anytime : bool
            Whether to return a betting interval, for means of outputs between two known bounds: it assumes
            nothing about the residuals, and stays valid however often one looks and continues. It is wide: with ten
            evaluations wider than the range.
        """
        level = checked_level(level)
        one = 1 - (1 - level) / self.plan.n_outputs if joint else level
        if anytime:
            ends = [self._by_betting(m, one) for m in range(self.plan.n_outputs)]
        else:
            ends = [each.interval(one) for each in self._answers]
        low, high = zip(*ends, strict=True)
        return self._each(low), self._each(high)

    def __getitem__(self, output: str | int) -> Certificate:
        """Return the certificate of one of several outputs, by its name or number."""
        if self.outputs is None:
            raise KeyError(f"there is no output {output!r}: there is only a single one")
        m, plan = output_number(self.outputs, output), self.plan
        terms = tuple(replace(term, weights=term.weights[:, [m]]) for term in plan.terms)
        one = replace(
            plan,
            terms=terms,
            predicted=tuple(predicted[:, :, [m]] for predicted in plan.predicted),
            targets=[plan.targets[m]],
            known=plan.known[[m]],
            error=plan.error[[m]],
            expected=plan.expected[[m]],
            model=ModelAnswer(plan.model.mean[[m]], plan.model.std[[m]]),
            units=plan.units[[m]],
            bounds=plan.bounds[[m]],
            outputs=None,
        )
        name = self.outputs[m]
        return Certificate(one, [e.of_output(m) for e in self.evaluations], labels=self.labels.of_output(name))

    @property
    def pending(self) -> list[Query]:
        """The queries that have no answer yet."""
        return [] if self.run is None else self.run.pending

    def ask(self) -> Query | None:
        """Return the next query, to be evaluated elsewhere; None if there is none."""
        return None if self.run is None else self.run.ask()

    def tell(
        self,
        query: Query,
        value: ArrayLike | Mapping[str, ArrayLike],
        variance: ArrayLike | Mapping[str, ArrayLike] = 0.0,
        cost: float | None = None,
    ) -> None:
        """Answer a query with a value, like `Integrator.tell`."""
        self._asking().tell(query, value, variance, cost)

    def fail(self, query: Query, reason: str, cost: float | None = None) -> None:
        """Answer a query with a failure, like `Integrator.fail`."""
        self._asking().fail(query, reason, cost)

    def comparison(self, output: int = 0) -> Comparison | None:
        """Return the comparison of the certificate with the model; None if one of them is unknown."""
        found, plan = self._answers[output], self.plan
        mean, std = float(plan.model.mean[output]), float(plan.model.std[output])
        if not np.isfinite([found.mean, found.std, mean, std]).all():
            return None
        difference, spread = found.mean - mean, math.hypot(found.std, std)
        low, high = found.interval(0.95)
        reach = math.hypot(found.mean - low if difference > 0 else high - found.mean, 1.96 * std)
        agrees = abs(difference) <= reach
        distance = abs(difference) / spread if spread > 0 else (math.inf if difference else 0.0)
        of, unit = "" if self.outputs is None else f" of {self.labels.label(self.outputs[output])}", self._unit(output)
        verb = "agrees" if agrees else "does not agree"
        text = (
            f"the certificate{of} {plus_minus(found.mean, found.std, unit)} {verb} with the model's "
            f"{plus_minus(mean, std, unit)}: {distance:.1f} standard deviations."
        )
        advice = (
            "" if agrees else "Trust the certificate, and add its evaluations to the run: the model was overconfident."
        )
        return Comparison(agrees, distance, text, advice)

    @property
    def cautions(self) -> list[str]:
        """Limitations of the interval: on failures, heavy-tailed residuals, and residuals that are all equal."""
        if not self.complete:
            return []
        finest = f"it is about {self.plan.names[0]}, the finest source: the limit cannot be evaluated"
        return [*([finest] if self.plan.limit else []), *self._failed(), *self._heavy(), *self._equal()]

    def summary(self, output: int = 0) -> str:
        """Return the estimate of an output with its standard error and 95 % interval as text, in its unit."""
        found, unit = self._answers[output], self._unit(output)
        if math.isnan(found.mean):
            return "nothing is known yet"
        low, high = (_end(end, found.std) for end in found.interval(0.95))
        error = "" if math.isnan(found.std) else " (std)"
        return f"{plus_minus(found.mean, found.std, unit)}{error}, 95 % between {low} and {high}"

    def _unit(self, output: int) -> str:
        name = "" if self.outputs is None else self.outputs[output]
        return self.labels.target_unit(self.plan.targets[output], name)

    def __str__(self) -> str:
        plan = self.plan
        names = plan.outputs or (OUTPUT,)
        under = f" under {plan.under}" if plan.under else ""
        lines = []
        for m, (name, target) in enumerate(zip(names, plan.targets, strict=True)):
            label = (
                target_name(target, self.labels.label(name), self.labels.unit(name))
                if target != "mean" or plan.outputs
                else "certificate"
            )
            lines.append(f"{label}{under}: {self.summary(m)}")
        compared = (self.comparison(m) for m in range(plan.n_outputs))
        lines += [f"{each.text} {each.advice}".strip() for each in compared if each is not None]
        lines += [f"caution: {each}" for each in self.cautions]
        lines += dict.fromkeys(each.assumes for each in self._answers if not math.isnan(each.mean))
        made, wanted = len(self.evaluations), len(plan.evaluated)
        if made < wanted:
            lines.append(f"{made} of {wanted} evaluations are made; the certificate needs all of them")
        draws = "; ".join(f"{term.n} of {' with '.join(plan.names[s] for s in term.sources)}" for term in plan.terms)
        lines.append(f"draws: {draws}; spent {self.labels.of_budget(self.spent, plan.budget)}")
        lines.append(f"control variate {plan.digest}, frozen after {plan.observations} observations; seed {plan.seed}")
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate in JSON-serialisable form."""
        compared = [self.comparison(m) for m in range(self.plan.n_outputs)]
        return {
            "mean": self.mean,
            "std": self.std,
            "interval": self.interval(0.95),
            "complete": self.complete,
            "spent": self.spent,
            "budget": self.plan.budget,
            "seed": self.plan.seed,
            "digest": self.plan.digest,
            "observations": self.plan.observations,
            "model": {"mean": self._each(self.plan.model.mean), "std": self._each(self.plan.model.std)},
            "comparison": [None if each is None else vars(each) for each in compared],
            "cautions": self.cautions,
            "evaluations": [
                {
                    "id": e.id,
                    "source": self.plan.names[e.source],
                    "x": e.x,
                    **{key: getattr(e, key) for key in ("value", "variance", "cost", "status", "reason")},
                }
                for e in self.evaluations
            ],
        }

    def _each(self, found: Sequence[float] | Array) -> Values:
        return np.array(found, dtype=float) if self.outputs is not None else float(found[0])

    def _asking(self) -> CertificateRun:
        if self.run is None:
            raise ValueError("this certificate was read from a journal, so it cannot ask for evaluations")
        return self.run

    def _values(self) -> Array:
        """Return all values in the order of the plan, shape (evaluations, M), NaN where missing."""
        found = np.full((len(self.plan.evaluated), self.plan.n_outputs), np.nan)
        for e in self.evaluations:
            if e.status == "ok" and e.id is not None:
                found[e.id] = e.value
        return found

    def _primary(self) -> Array:
        """Return the values of the primary source at the draws of the first term, shape (n, M)."""
        term = self.plan.terms[0]
        return self._values()[: term.n * len(term.sources) : len(term.sources)]

    @property
    def _answers(self) -> list[Answer]:
        """The current answer for each output."""
        n = len(self.evaluations)
        if self._latest is None or self._latest[0] != n:
            self._latest = n, self._found()
        return self._latest[1]

    def _found(self) -> list[Answer]:
        plan = self.plan
        usable = [bool(np.isfinite(column).any()) for column in self._primary().T]
        residuals = plan.residuals(self._values())
        found: list[Answer] = []
        for m, target in enumerate(plan.targets):
            if not (self.complete and usable[m]):
                found.append(UNKNOWN)
                continue
            known, error, expected = (float(each[m]) for each in (plan.known, plan.error, plan.expected))
            drawn, predicted = [each[:, m] for each in residuals], plan.predicted[0][:, 0, m]
            made = answer(target, drawn, predicted, known, error, expected)
            found.append(made if math.isnan(plan.units[m]) else logarithm_of(made, plan.units[m]))
        return found

    def _by_betting(self, m: int, level: float) -> tuple[float, float]:
        plan, (low, high) = self.plan, self.plan.bounds[m]
        if not np.isfinite([low, high]).all() or plan.targets[m] != "mean" or not plan.primary_only:
            raise ValueError(
                "an interval that is valid at any time requires means of outputs between two known bounds, and "
                "independent draws of the primary source alone: pass integrate(..., output_range=(low, high)) and "
                "certify(..., primary_only=True)"
            )
        residuals, width = plan.residuals(self._values())[0][:, m], high - low
        ends = betting_interval(residuals, -width, width, level)
        slack = 3 * plan.error[m]
        return max(low, plan.known[m] + ends[0] - slack), min(high, plan.known[m] + ends[1] + slack)

    def _failed(self) -> list[str]:
        values, sentences = self._primary(), []
        n = len(values)
        for m, k in enumerate(np.isnan(values).sum(axis=0).tolist()):
            if not k:
                continue
            low, high = share_interval(k, n, 0.95)
            width = float(np.diff(self.plan.bounds[m])[0])
            most = f", which can move the mean by {high * width:.2g} at most" if math.isfinite(width) else ""
            of = "" if self.outputs is None else f" ({self.outputs[m]})"
            sentences.append(
                f"{k} of {n} fresh evaluations of {self.plan.names[0]}{of} failed: between {100 * low:.2g} and "
                f"{100 * high:.2g} % of the distribution fails{most}. There, the model is used instead, and nothing is "
                "certified."
            )
        return sentences

    def _heavy(self) -> list[str]:
        names, sentences = self.outputs or ("",), []
        heavy = [(name, each) for name, each in zip(names, self._answers, strict=True) if each.heavy]
        endless = [name for name, each in heavy if math.isinf(each.interval(0.95)[1])]
        for some, consequence in (
            ([name for name, _ in heavy if name not in endless], "and the interval may be too short."),
            (endless, "and most of the integral may be where nothing was drawn: the interval has no upper end."),
        ):
            if some:
                of = f" of {', '.join(some)}" if any(some) else ""
                reason = f"the residuals{of} look heavy-tailed: the largest may not be among them"
                sentences.append(f"{reason}, {consequence}")
        return sentences

    def _equal(self) -> list[str]:
        found = []
        for m, (each, target) in enumerate(zip(self._answers, self.plan.targets, strict=True)):
            if target == "mean" and each.std == 0:
                of, n = "" if self.outputs is None else f" of {self.outputs[m]}", self.plan.terms[0].n
                share = largest_share(0, n, 0.05)
                found.append(
                    f"all {n} residuals{of} are the same. Others may be found in up to {100 * share:.0f} % of the "
                    "distribution."
                )
        return found


def _end(end: float, std: float) -> str:
    return as_known(end, std) if math.isfinite(end) else f"{end:g}"
