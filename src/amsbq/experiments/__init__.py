"""The paper's experiments, reproduced.

In come the names of experiments, a number of seeds and a folder.
Out come tables (CSV), figures (PNG and PDF), and for each claim of the paper what was found and whether it holds.
Each experiment has a room (`intuition`, `cube`, `forrester`, `wiggly`, `epidemic`, `gaussians`); `study` and `drawing`
hold what they share, and `reproduce` runs them.
"""
