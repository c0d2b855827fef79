"""Figures of a run, and the HTML page that shows it.

The input is a result, an integrator, or the path of a journal.
The output is matplotlib axes, or one HTML file with Plotly figures; both draw the same numbers (`curves`).
"""
