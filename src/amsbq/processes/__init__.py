"""Processes and signals: pools that survive crashes, and children that end with the process that started them.

The input is functions to call, and the numbers of processes that were started.
The output is their results. However this process ends, everything that it has started ends with it.
"""
