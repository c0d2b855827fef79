"""Hyperparameters and model structures: learning them from observations.

Takes observations and the name of a model. Returns particles, which are weighted draws of the hyperparameters of each
structure, on which decisions and estimates are based.
"""
