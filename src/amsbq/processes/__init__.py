"""Processes and signals: pools that survive crashes, and nothing that outlives the process which has started it.

In come functions to call, and the numbers of processes that were started.
Out come their results; and when this process ends, however that is, everything that it has started ends with it.
"""
