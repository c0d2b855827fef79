"""Results of runs: the result, its summary in text and JSON, and its diagnosis in words.

In comes an integrator with its evaluations.
Out come numbers, tables and findings for people and for other programs.
"""
