"""The command line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from ..execution.journal import JournalError
from .commands import FAILED, INTERRUPTED, WRONG, UserError
from .parser import _parser
from .problem_file import ProblemError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    warnings.showwarning = lambda message, *rest, **more: print(f"amsbq: {message}", file=sys.stderr)
    try:
        code: int = options.run(options)
    except (ProblemError, JournalError, UserError) as error:
        print(f"amsbq: {error}" if not isinstance(error, ProblemError) else error, file=sys.stderr)
        return WRONG
    except (ImportError, OSError, RuntimeError) as error:
        print(f"amsbq: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("amsbq: interrupted before anything was evaluated", file=sys.stderr)
        return INTERRUPTED
    return code
