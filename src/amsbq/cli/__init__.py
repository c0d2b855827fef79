"""The command line, and the problem files that it runs.

In come arguments, a problem file in TOML, and journals.
Out come text or JSON on standard output, one clear line for each error on standard error, and an exit code.
"""

from .main import main

__all__ = ["main"]
