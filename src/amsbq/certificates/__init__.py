"""Certificates: estimates from fresh random evaluations that are unbiased however poor the model.

The input is a posterior, which is frozen as a control variate, and a budget.
The output is locations drawn independently of everything before and, from the values there, an estimate and
its interval; nothing is evaluated here.
"""
