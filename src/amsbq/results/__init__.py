"""Results of runs: the result, its summary in text and JSON, and its diagnosis in words.

Takes an integrator with its evaluations. Returns numbers, tables and findings, for people and for other programs.
"""
