"""How many threads linear algebra gets.

Small matrices are not worth two of them. Where other work keeps the cores busy, threads that wait for each other make
a small factorisation a hundred times slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

MANY = 500  #: observations from which on more threads pay


@contextmanager
def threads_for(n: int) -> Iterator[None]:
    """One thread for linear algebra with n observations, unless they are many."""
    controller = _controller() if n < MANY else None
    if controller is None:
        yield
        return
    with controller.limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
