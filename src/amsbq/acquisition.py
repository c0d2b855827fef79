"""Acquisition functions: the utility of observations whose squared correlation with the integral is known."""

from .design.acquisition import utility

__all__ = ["utility"]
