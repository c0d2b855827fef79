"""Evaluating sources: functions, commands and servers, by threads, processes or clusters, with a journal.

Takes the queries of an integrator. Returns values, failures and costs, which are on the disk before the integrator uses
them.
"""
