"""The command line ``amsbq``.

The input is a list of arguments, problem files in TOML, and journals.
The output is text or JSON on standard output, messages on standard error, and an exit code.
"""

from .main import main

__all__ = ["main"]
