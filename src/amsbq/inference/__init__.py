"""Hyperparameters and model structures: learning them from observations.

The input is observations and the name of a model. The output is particles: weighted draws of the hyperparameters of
each structure, by which decisions are made and integrals are estimated.
"""
