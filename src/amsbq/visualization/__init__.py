"""Figures of a run, and the HTML page that shows it.

Takes a result, an integrator, or the path of a journal. Returns matplotlib axes, or one HTML file with Plotly figures;
both draw the same numbers (`curves`).
"""
