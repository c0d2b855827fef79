"""Several outputs of one simulation: their names, their integrals, and a model of each over the same locations.

Each evaluation returns M numbers, some of which may be missing: NaN stands for those. Every output has hyperparameters
and an estimate of its own: what is known of one does not depend on the units, or on the values, of another.
"""
