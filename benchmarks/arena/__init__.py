"""The arena: this library and its peers on many families of problems with known integrals.

    python -m benchmarks.arena --against baseline           # what a change is worth: hours; it can be interrupted
    python -m benchmarks.arena --against baseline --quick   # a first look, below five minutes
    python -m benchmarks.arena                              # the default methods on every problem, five seeds
    python -m benchmarks.arena --report                     # write docs/arena.md and its figures from stored results
    python -m benchmarks.arena --truths                     # compute the true integrals that are missing

`problem` defines problems, `families` has them, `split` divides them into development and validation, `quadrature` and
`truths` compute their integrals. `methods` lists the competitors and `designs` the fixed designs, `runs` and `store`
make results and keep them. `scores` judges single estimates, `resampling` makes intervals of averages over many, and
`results` selects among them. `against` compares two versions; `tables`, `figures` and `report` compare methods.

The baseline is release 0.2.0. Problems that it lacks are run with a worktree of that release, by the current arena:

    git worktree add ../amsbq-0.2.0 $(git log --format=%h --grep "^Release 0.2.0" -1)
    PYTHONPATH=../amsbq-0.2.0/src python -m benchmarks.arena --complete
    python -m benchmarks.arena --freeze                     # what was run becomes part of the baseline
"""
