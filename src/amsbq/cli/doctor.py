"""``amsbq doctor``: what is installed, which extras are missing, and how many threads linear algebra uses."""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from threadpoolctl import threadpool_info

from .. import __version__
from ..common.threads import MANY_OBSERVATIONS
from ..execution.locks import one_host_only
from .exits import ExitCode

#: one requirement in the metadata of a package: name, minimum version, and the extra to which it belongs
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^]]*\])?\s*(?:>=([\d.]+))?[^;]*(?:;.*extra == ['\"](\w+)['\"])?")

#: extras for developers, and the one that contains all others
OTHERS = ("all", "dev", "docs")

#: environment variables that set the number of threads of linear algebra
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def doctor_command(options: argparse.Namespace) -> int:
    """Print what is installed and what is missing; the exit code is 1 if a required package is missing."""
    print(f"amsbq {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    print(f"  {sys.executable}")
    wrong = False
    for extra, needed in _requirements().items():
        print(f"\n{extra or 'needed'}")
        missing = False
        for name, least in needed:
            found, complaint = _installed(name, least)
            missing |= bool(complaint)
            print(f"  {name} {found}{complaint}".rstrip())
        wrong |= missing and not extra
        if missing and extra:
            print(f"  install with: pip install 'amsbq[{extra}]'")
    print("\nlinear algebra")
    for line in _linear_algebra():
        print(f"  {line}")
    print("\njournals in this folder")
    print(f"  {_locks()}")
    return ExitCode.FAILED if wrong else ExitCode.DONE


def _requirements() -> dict[str, list[tuple[str, str]]]:
    """Return names and minimum versions of the packages that each extra needs; those of amsbq itself are under ""."""
    found: dict[str, list[tuple[str, str]]] = {"": []}
    for text in requires("amsbq") or []:
        match = REQUIREMENT.match(text)
        if match is not None and match[1] != "amsbq" and match[3] not in OTHERS:
            found.setdefault(match[3] or "", []).append((match[1], match[2] or ""))
    return found


def _installed(name: str, least: str) -> tuple[str, str]:
    """Return the version of a package, and what is wrong with it."""
    try:
        found = version(name)
    except PackageNotFoundError:
        return "", "is missing"
    return found, f", but {least} is required" if _parts(found) < _parts(least) else ""


def _parts(number: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", number)[:3]]


def _linear_algebra() -> Iterator[str]:
    """Yield the linear algebra libraries with their threads, and the settings of these."""
    import scipy.linalg  # noqa: F401 (loads its own library)

    for library in threadpool_info():
        if library["user_api"] == "blas":
            yield f"{library['internal_api']} {library['version']}, threads: {library['num_threads']}"
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield f"{processors} processors; amsbq uses one thread up to {MANY_OBSERVATIONS:,} observations, and all beyond"
    given = [f"{name}={os.environ[name]}" for name in THREADS if name in os.environ]
    yield f"set in the environment: {', '.join(given) or 'nothing'}"


def _locks() -> str:
    """Return whether several hosts may write to a journal in the working directory."""
    try:
        with tempfile.TemporaryFile(dir=".") as file:
            local = one_host_only(file)
    except OSError as error:
        return f"files cannot be written here: {error.strerror or error}"
    if local:
        return f"locks on this file system ({local}) hold on one host only: ask and tell refuse to write here"
    return "locks seem to hold on all hosts that share this file system"
