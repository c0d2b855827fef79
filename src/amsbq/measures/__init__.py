"""Probability measures: the distributions of the inputs.

Users give box bounds, means and covariances, scipy.stats distributions or samples.
Others get draws, quantiles, bounds, scales and one-dimensional marginals, against which kernels are integrated.
"""
