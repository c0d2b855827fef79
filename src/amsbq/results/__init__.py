"""Results of runs: the result, its summary in text and JSON, and its diagnosis in words.

The input is an integrator with its evaluations.
The output is numbers, tables and findings for people and for other programs.
"""
