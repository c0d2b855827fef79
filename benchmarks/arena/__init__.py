"""The arena: this library and its peers on many families of problems with known integrals.

    python -m benchmarks.arena                  # the default methods on every problem, four seeds: below an hour
    python -m benchmarks.arena --quick          # two minutes
    python -m benchmarks.arena --report         # write docs/arena.md and its figures from the stored results
    python -m benchmarks.arena --truths         # compute all true integrals again

`problem` says what a problem is, `families` has them, `split` divides them into development and validation,
`quadrature` and `truths` compute their integrals. `methods` lists the competitors and `designs` the fixed designs,
`runs` and `store` make results and keep them, `scores` judges them, and `tables`, `figures` and `report` show them.
"""
