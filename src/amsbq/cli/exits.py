"""How commands end: their exit codes, and errors that are told to the user in one line."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of the command line."""

    DONE = 0
    FAILED = 1  #: the run failed
    WRONG_INPUT = 2  #: as argparse has it for wrong arguments
    INTERRUPTED = 130  #: as shells have it for Ctrl-C
    PIPE_CLOSED = 141  #: as shells have it for SIGPIPE
    TERMINATED = 143  #: as shells have it for SIGTERM


class UserError(Exception):
    """A request that cannot be fulfilled; the message says why and what to do."""
