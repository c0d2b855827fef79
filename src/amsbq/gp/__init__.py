"""Exact Gaussian-process algebra for given hyperparameters.

The input is kernels, covariances between sources, a measure and observations.
The output is posterior means and variances of sources and of their integrals, log evidences, and correlations with
future observations, for one model or for many at a time.
"""
