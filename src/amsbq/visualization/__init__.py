"""Pictures of a run: the numbers of every picture, matplotlib figures, Plotly figures, and the report page.

In comes a result, an integrator or the path of a journal.
Out come axes, figures, or one HTML file.
"""
