"""The paper's experiments, reproduced.

In come the names of experiments, seeds and a folder.
Out come tables, figures, and what became of the paper's claims.
"""
