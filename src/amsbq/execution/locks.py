"""Locks of files: one process at a time writes to a journal, even if several hosts share its file system.

The locks are those of the operating system, which end with the process that holds them, however it ends. Linux passes
them on to the servers of NFS, Lustre and most other network file systems. `one_host_only` detects file systems mounted
so that locks hold on one host only.
"""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

#: errors that mean that another process has locked a file; all others mean that it cannot be locked
LOCKED_BY_ANOTHER = (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK)

#: where Linux lists what is mounted, with the options
MOUNTS = Path("/proc/self/mountinfo")

#: types of file systems, and the mount options with which locks are local to a host; None if they always are
LOCAL_LOCKS: dict[str, tuple[str, ...] | None] = {
    "nfs": ("nolock", "local_lock=all", "local_lock=flock"),
    "nfs4": ("nolock", "local_lock=all", "local_lock=flock"),
    "lustre": ("localflock",),
    "cifs": ("nobrl",),
    "smb3": ("nobrl",),
    "fuse.sshfs": None,
}


@dataclass(frozen=True)
class LockSettings:
    """Times in seconds."""

    #: between two attempts to lock a file that another process has locked
    try_again: float = 0.05


SETTINGS = LockSettings()

#: all files that this process has locked
_locked_files: set[IO[bytes]] = set()


def lock(file: IO[bytes], patience: float = 0.0) -> None:
    """Lock a file until it is closed by `close`; raise OSError if that cannot be done within ``patience`` seconds."""
    _locked_files.add(file)
    deadline = time.monotonic() + patience
    while True:
        try:
            return _lock_at_once(file)
        except OSError as error:
            if error.errno not in LOCKED_BY_ANOTHER or time.monotonic() >= deadline:
                raise
        time.sleep(SETTINGS.try_again)


def _lock_at_once(file: IO[bytes]) -> None:
    """Lock a file; raise OSError if that cannot be done, or another process has locked it."""
    try:
        import fcntl
    except ImportError:  # on Windows
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def close(file: IO[bytes]) -> None:
    """Close a file that was locked, which unlocks it."""
    _locked_files.discard(file)
    file.close()


def one_host_only(file: IO[bytes]) -> str:
    """Return the type and the mount option of a file system whose locks hold on one host only; otherwise ""."""
    device = os.fstat(file.fileno()).st_dev
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not on Linux
        return ""
    for mount in mounts:  # id, parent, device, root, where, options, other fields, "-", type, from, options of the type
        before, _, after = mount.partition(" - ")
        number, (kind, *rest) = before.split()[2], after.split()
        if number != f"{os.major(device)}:{os.minor(device)}" or kind not in LOCAL_LOCKS:
            continue
        local, options = LOCAL_LOCKS[kind], f"{before.split()[5]},{rest[-1]}".split(",")
        found = next((option for option in options if local is not None and option in local), "")
        return kind if local is None else f"{kind}, mounted with {found}" if found else ""
    return ""


def _leave_to_parent() -> None:
    """Close all locked files in a forked process, whose copies would keep them locked.

    The lock itself stays with the parent. Programs that are started get no copies in the first place.
    """
    for file in _locked_files:
        file.close()
    _locked_files.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)
