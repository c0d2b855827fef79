"""Entry point of the command line: parse the arguments, run the command, turn errors into messages and exit codes."""

from __future__ import annotations

import codecs
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

from ..execution.journal import AnotherRunError, JournalError
from ..problems.errors import ProblemError
from .exits import ExitCode, UserError
from .parser import build_parser

#: substitutes for characters that the encoding of a terminal lacks; others are escaped
SUBSTITUTES = {"±": "+/-", "·": "|", "–": "-", "✓": "yes", "✗": "no", "∫": "integral of", "ρ": "rho"}
SUBSTITUTES |= {"²": "^2", "₁": "1", "₂": "2"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; ``arguments`` are those of the process by default."""
    with ExitStack() as contexts:
        contexts.enter_context(every_character_printable())
        options, unknown = build_parser().parse_known_args(arguments)
        if unknown:
            options.parser.unknown(unknown)
        contexts.enter_context(warnings_on_stderr())
        try:
            code: int = options.command(options)
            sys.stdout.flush()
        except BrokenPipeError:  # such as in ``amsbq report --text | head``
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it when it exits
            return ExitCode.PIPE_CLOSED
        except ProblemError as error:  # every line of it begins with the name of the file
            print(error, file=sys.stderr)
            return ExitCode.WRONG_INPUT
        except AnotherRunError as error:
            print(f"amsbq: {error.in_shell}", file=sys.stderr)
            return ExitCode.WRONG_INPUT
        except (JournalError, UserError) as error:
            print(f"amsbq: {error}", file=sys.stderr)
            return ExitCode.WRONG_INPUT
        except OSError as error:
            said = str(error) if error.filename is None else f"{error.filename}: {error.strerror}"
            print(f"amsbq: {said}", file=sys.stderr)
            return ExitCode.FAILED
        except (ImportError, RuntimeError) as error:
            print(f"amsbq: {error}", file=sys.stderr)
            return ExitCode.FAILED
        except KeyboardInterrupt:
            print("amsbq: interrupted before anything was evaluated", file=sys.stderr)
            return ExitCode.INTERRUPTED
    return code


class StderrHandler(logging.Handler):
    """Log handler that prints to the current `sys.stderr`, which a progress bar redirects while it is shown."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record as a line."""
        print(self.format(record), file=sys.stderr)


@contextmanager
def every_character_printable() -> Iterator[None]:
    """Print substitutes for characters that the encoding of standard output or standard error lacks."""
    codecs.register_error("amsbq", _substituted)
    streams = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, io.TextIOWrapper)]
    before = [stream.errors for stream in streams]
    for stream in streams:
        stream.reconfigure(errors="amsbq")
    try:
        yield
    finally:
        for stream, errors in zip(streams, before, strict=True):
            with suppress(OSError):  # Python reports unwritten output when it exits
                stream.reconfigure(errors=errors)


def _substituted(error: UnicodeError) -> tuple[str, int]:
    """Return a substitute for the first character that cannot be printed, and the position after it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    return SUBSTITUTES.get(character, ascii(character)[1:-1]), error.start + 1


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Print warnings as ``amsbq: message`` on standard error, without file and line; leave no trace afterwards."""
    handler, logger = StderrHandler(), logging.getLogger("py.warnings")
    handler.setFormatter(logging.Formatter("amsbq: %(message)s"))
    shown, formatted = warnings.showwarning, warnings.formatwarning
    logging.captureWarnings(True)
    captured_before = warnings.showwarning is shown  # by the program that called main()
    warnings.formatwarning = lambda message, *_, **__: str(message)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        warnings.formatwarning = formatted
        if not captured_before:
            logging.captureWarnings(False)
