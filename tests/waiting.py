"""Waiting for other processes, in tests."""

import time
from pathlib import Path

PATIENCE = 60  # seconds for what takes less than one, on a machine that is busy


def eventually(condition, seconds=PATIENCE):
    """Return whether a condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def is_running(pid):
    """Return whether there is a process of that number which has not ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
