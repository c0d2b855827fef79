"""Hyperparameters and model structures: learning them from observations.

In come observations and the name of a model structure.
Out comes a belief: posteriors for draws of the hyperparameters, by which decisions are made, and the distribution of
the integral, with a calibrated error bar.
"""
