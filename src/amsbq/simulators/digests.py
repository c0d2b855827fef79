"""Digests of the files of a simulator, by which a journal detects that one of them has changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

#: maximum size in bytes of a file that is read for its digest; larger ones, such as meshes, are identified by their
#: size
LARGEST = 2**26


def digests(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return digests by path of these files in a folder, and of all files in the named subfolders.

    Missing files are left out.
    """
    return {
        str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path): _digest(path)
        for name in dict.fromkeys(names)
        for path in _files(folder / name)
    }


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif path.is_dir():
        yield from (file for file in sorted(path.rglob("*")) if file.is_file())


def _digest(path: Path) -> str:
    size = path.stat().st_size
    if size > LARGEST:
        return f"{size} bytes"
    return f"sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}, {size} bytes"
