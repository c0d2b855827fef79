"""Decisions on what to evaluate next: sources, costs, budgets, acquisition rates and the search for the best one.

Takes sources, a measure, a budget and the values observed so far. Returns queries, each of them a source and a
location, and the reason to stop; nothing is evaluated here.
"""
