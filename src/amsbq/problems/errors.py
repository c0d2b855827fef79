"""`ProblemError`: the mistakes in a problem file."""

from __future__ import annotations

from pathlib import Path


class ProblemError(Exception):
    """All mistakes in a problem file: one line per mistake, with the file, the key and the remedy."""

    def __init__(self, path: Path, errors: list[str]) -> None:
        super().__init__("\n".join(f"{path}: {error}" for error in errors))
        self.errors = errors
