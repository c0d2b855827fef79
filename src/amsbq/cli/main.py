"""Entry point of the command line: parse the arguments, run the command, turn errors into messages and exit codes."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..execution.journal import JournalError
from .commands import ExitCode, UserError
from .parser import build_parser
from .problem_file import ProblemError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; ``arguments`` are those of the process by default."""
    options = build_parser().parse_args(arguments)
    with warnings_on_stderr():
        try:
            code: int = options.command(options)
        except ProblemError as error:  # every line of it begins with the name of the file
            print(error, file=sys.stderr)
            return ExitCode.WRONG_INPUT
        except (JournalError, UserError) as error:
            print(f"amsbq: {error}", file=sys.stderr)
            return ExitCode.WRONG_INPUT
        except (ImportError, OSError, RuntimeError) as error:
            print(f"amsbq: {error}", file=sys.stderr)
            return ExitCode.FAILED
        except KeyboardInterrupt:
            print("amsbq: interrupted before anything was evaluated", file=sys.stderr)
            return ExitCode.INTERRUPTED
    return code


class StderrHandler(logging.Handler):
    """Log handler that prints to the `sys.stderr` of the moment, which a progress bar redirects while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record as a line."""
        print(self.format(record), file=sys.stderr)


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Print warnings as ``amsbq: message`` on standard error, without file and line; leave no trace afterwards."""
    handler, logger = StderrHandler(), logging.getLogger("py.warnings")
    handler.setFormatter(logging.Formatter("amsbq: %(message)s"))
    shown, formatted = warnings.showwarning, warnings.formatwarning
    logging.captureWarnings(True)
    captured_before = warnings.showwarning is shown  # by the program that has called main()
    warnings.formatwarning = lambda message, *_, **__: str(message)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        warnings.formatwarning = formatted
        if not captured_before:
            logging.captureWarnings(False)
