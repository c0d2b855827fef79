"""Helpers that every other package uses.

- Checks of arguments, and the array types of the package: ``validation``, ``definitions``.
- What users see: ``messages``, ``markup``.
- JSON, threads of linear algebra, and an optimizer for many starts: ``serialisation``, ``threads``, ``optimizer``.
"""
