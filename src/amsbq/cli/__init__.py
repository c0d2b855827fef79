"""The command line ``amsbq``.

Takes a list of arguments, and reads problem files in TOML, and journals. Writes text or JSON to standard output, and
messages to standard error; returns an exit code.
"""

from .main import main

__all__ = ["main"]
