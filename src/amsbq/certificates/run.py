"""`CertificateRun`: ask and tell for the evaluations of a plan, one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace

from ..common.messages import collected_warnings
from ..design.costs import SourceCosts
from ..design.description import Problem
from ..design.evaluations import Choice, Evaluation, Query
from ..design.run import Run, locked
from .plan import Plan


class CertificateRun(Run):
    """The evaluations of a plan.

    Parameters
    ----------
    problem : Problem
        The problem of the run whose result is certified.
    plan : Plan
    costs : SourceCosts
        The costs of evaluations, as learned by the run.
    made : list of Evaluation
        Evaluations made earlier.
    """

    def __init__(
        self, problem: Problem, plan: Plan, costs: SourceCosts | None = None, made: Sequence[Evaluation] = ()
    ) -> None:
        with collected_warnings():  # they were issued when the run began
            super().__init__(replace(problem, budget=math.inf, decision_cost=0.0))
        self.plan = plan
        if costs is not None:
            self.ledger.costs = deepcopy(costs)
        for each in made:
            self.ledger.charge(each.cost)
            self.evaluations.append(each)
        self._answered = {each.id for each in made}
        #: receives each evaluation before it is used, if they are reported one by one
        self.log: Callable[[Evaluation], None] | None = None

    def _foreseen(self) -> bool:
        """Whether the next query does not depend on any answer."""
        return True

    def _use(self, made: Evaluation) -> None:
        """Log an evaluation before it is appended."""
        if self.log is not None:
            self.log(made)
        super()._use(made)

    @locked
    def ask(self) -> Query | None:
        """Return the next evaluation of the plan, or None if all have been requested."""
        evaluated = self.plan.evaluated
        while self.ledger.asked in self._answered:
            self.ledger.asked += 1
        if self.ledger.asked >= len(evaluated):
            self.stopped = None if self.ledger.pending else "evaluations"
            return None
        return self.ledger.issue(Choice(*evaluated[self.ledger.asked]))
