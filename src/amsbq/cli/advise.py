"""``amsbq advise``: which method for a problem, and why."""

from __future__ import annotations

import argparse
import math

from ..problems.advice import Facts, advice
from ..problems.problem_file import load_problem
from .exits import ExitCode


def advise_command(options: argparse.Namespace) -> int:
    """Print which methods suit the problem in a file, with its inputs, costs and budget; nothing is evaluated."""
    problem = load_problem(options.problem).described
    facts = Facts.of(problem)
    counts = (f"{n:.3g} of {name}" for name, n in zip(problem.names, facts.affordable, strict=True) if n < math.inf)
    known = ", or ".join(counts)
    bought = f"the budget covers {known}" if known else "how many evaluations the budget covers is not known"
    print(f"{facts.inputs} input{'s' * (facts.inputs > 1)}; {bought}\n")
    first, *others = advice(facts)
    print(f"begin with  {first}")
    for each in others:
        print(f"or          {each}")
    print("\nhow accurate they are: the arena, in the documentation; to compare on your problem: amsbq.baselines")
    return ExitCode.DONE
