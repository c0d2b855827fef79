"""``amsbq status``: the state of a run in a few lines, without importing what figures and pages need."""

from __future__ import annotations

import argparse
import json

from ..execution.reader import read_result
from ..results.summary import state, state_text
from .exits import ExitCode


def status_command(options: argparse.Namespace) -> int:
    """Print the state of a run in a few lines, or as JSON."""
    now = state(read_result(options.journal, model=False))
    print(json.dumps(now) if options.json else state_text(now))
    return ExitCode.DONE
