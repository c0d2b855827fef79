"""Evaluating sources: functions, commands and servers, by threads, processes or clusters, with a journal.

In come the queries of an integrator.
Out come values, failures and costs, which are on the disk before the integrator hears of them.
"""
