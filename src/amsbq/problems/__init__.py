"""Problem files: a run described in TOML.

The input is the path of a file: budget, distribution of the inputs, and sources.
The output is a `Problem` with an integrator, or one error with all mistakes: nothing is evaluated before all are fixed.
"""
