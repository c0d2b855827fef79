"""Distributions of the inputs: probability measures π on R^D.

Users give box bounds, means and covariances, scipy.stats distributions or samples; `adapters.as_measure` turns these
into measures. Other packages get draws, quantiles, bounds, scales and one-dimensional marginals, against which kernels
are integrated. A measure is serialised by `Measure.to_dict` and rebuilt by `adapters.measure_from_dict`.
"""
