"""Functions whose variance, probabilities, quantiles and Sobol' indices are known, and results that have seen them."""

import numpy as np

import amsbq


def seen(function, measure, n, lengthscales, names=None, variance=100.0, kernel=amsbq.RBF, where=None):
    """The result of a model with given hyperparameters, after n observations that cover the measure, or another one."""
    measure = amsbq.as_measure(measure)
    terms = [amsbq.Term(variance, kernel(lengthscales)), amsbq.Term(1e4, amsbq.Constant())]
    model = amsbq.MultiSourceGP(terms, measure)
    it = amsbq.Integrator(amsbq.Source(name="f"), measure, model=model, names=names)
    for x in (where or measure).sobol(n, 5):
        it.observe(0, x, float(function(x)))
    return it.result()


def ishigami(x):
    return np.sin(x[0]) + 7 * np.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * np.sin(x[0])


BOX = amsbq.Uniform([-np.pi] * 3, [np.pi] * 3)


def four_branches(x):
    """Negative where one of four parts of a system fails."""
    a, b = x
    curved, straight = 3 + 0.1 * (a - b) ** 2, 7 / np.sqrt(2)
    sums, differences = (a + b) / np.sqrt(2), a - b
    return min(curved - sums, curved + sums, differences + straight, straight - differences)
