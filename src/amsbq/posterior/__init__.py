"""The posterior: a weighted mixture of conditioned components over an output axis, and its functionals.

A component is a function f = T(g) of a latent process g; T is the identity if the range of f is unknown. The process g
is conditioned on all observations, with weighted hyperparameters; many outputs are sums of a few shared processes.
Answers (integrals, distributions, sensitivities, other measures) are functionals of that mixture: in closed form if
they are linear in g, by sample paths or nodes of the measure otherwise.
"""
