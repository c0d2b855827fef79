"""Yardsticks that nobody here wrote: problems of other people's papers and packages, run by the arena's code.

    python -m benchmarks.yardsticks             # the methods on every problem, five seeds; it can be interrupted
    python -m benchmarks.yardsticks --quick     # two problems of each source, one seed: below five minutes
    python -m benchmarks.yardsticks --theirs    # the methods of the outside packages, where these are installed
    python -m benchmarks.yardsticks --report    # write docs/yardsticks.md from stored results
    python -m benchmarks.yardsticks --truths    # compute the true integrals that are missing

`functions`, `ensembles`, `options`, `evidence` and `multi_index` have the problems of one source each, with formulas of
their own, and `registry` lists them. `theirs` runs outside packages, which are installed by the extra `yardsticks`, and
`published` has figures that others printed. `report` makes the tables. The rules are on the page docs/yardsticks.md.
"""
