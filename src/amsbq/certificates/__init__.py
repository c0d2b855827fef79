"""Certificates: estimates from fresh random evaluations that are unbiased whatever the model is worth.

In come a posterior, which is frozen as a control variate, and a budget.
Out come locations that are drawn independently of everything before, and from the values there an estimate and its
interval; nothing is evaluated here.
"""
