"""Problem files: a run described in TOML.

Takes the path of a file, which has the budget, the distribution of the inputs and the sources. Returns a `ProblemFile`
that can make an integrator, or raises one error that lists all mistakes: nothing is evaluated before all are fixed.
"""
