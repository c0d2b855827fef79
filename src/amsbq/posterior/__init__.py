"""The one thing that is known: a weighted mixture of conditioned components over an output axis, and its functionals.

A component is a function f = T(g) of a latent process g, the identity if nothing is known of the range of f; g is a
sum of processes with weighted hyperparameters, conditioned on all observations, and one of them unless there are many
outputs. What is asked of f (its integral, its distribution, sensitivities, answers for other inputs) is a function of
that mixture: in closed form where it is linear in g, by sample paths or nodes of the measure otherwise.
"""
