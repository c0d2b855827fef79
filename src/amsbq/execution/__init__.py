"""Evaluating sources: functions, commands and servers, by threads, processes or clusters, with a journal.

The input is the queries of an integrator.
The output is values, failures and costs, which are on the disk before the integrator uses them.
"""
