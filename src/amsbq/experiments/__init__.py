"""The paper's experiments, reproduced.

Takes the names of experiments, a number of seeds and a folder. Writes tables (CSV), figures (PNG and PDF) and, for each
claim of the paper, the finding and whether the claim holds. Each experiment has a module (`intuition`, `cube`,
`forrester`, `wiggly`, `epidemic`, `gaussians`); `study` and `drawing` have the shared parts, and `reproduce` runs them.
"""
