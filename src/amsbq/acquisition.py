"""Acquisition functions: the utility of new observations from their squared correlation with the integral."""

from .design.acquisition import utility

__all__ = ["utility"]
