"""Certificates: estimates from fresh random evaluations that are unbiased however poor the model.

A posterior is frozen as a control variate, and the budget determines how many locations are drawn, independently of
everything before. The values there give an estimate and its interval; nothing is evaluated here.
"""
