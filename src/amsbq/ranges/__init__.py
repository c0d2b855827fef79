"""Outputs of known range: non-negative, bounded, or logarithms of a non-negative function.

Sources are modelled as f = T(g): `transforms` has the functions T, and Gaussian processes model g. What is asked of f
is then an average over g: its `moments`, at points of the measure that `nodes` puts where f varies.
"""
