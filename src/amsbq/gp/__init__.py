"""Exact Gaussian-process algebra for given hyperparameters.

Takes kernels, covariances between sources, a measure and observations. Returns posterior means and variances of
sources and of their integrals, log evidences, and correlations with future observations, for one model or for many at a
time.
"""
