"""More than the mean: the distribution of the output, sensitivities, and answers for other distributions of the inputs.

In comes a belief, the learned posterior of the sources.
Out come estimates of other quantities of the primary source, with the same averages over hyperparameters and model
structures as the integral, and the same calibration of their error bars.
"""
