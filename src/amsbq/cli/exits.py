"""Exit codes of commands, and errors that the user sees as one line."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    FAILED = 1  #: the run failed
    WRONG_INPUT = 2  #: as in argparse for wrong arguments
    INTERRUPTED = 130  #: as in shells for Ctrl-C
    PIPE_CLOSED = 141  #: as in shells for SIGPIPE
    TERMINATED = 143  #: as in shells for SIGTERM


class UserError(Exception):
    """A request that cannot be fulfilled; the message says why and what to do."""
