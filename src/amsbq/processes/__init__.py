"""Processes and signals: pools that survive crashes, and children that end with the process that started them.

The pools call functions in other processes and return their results. However this process ends, everything that it has
started ends with it.
"""
