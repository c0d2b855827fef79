"""How many threads linear algebra gets.

Small matrices are not worth two of them. Where other work keeps the cores busy, threads that wait for each other make
a small factorisation a hundred times slower. And the last digits of a result depend on the number of threads: with one,
a run is the same on every number of cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial

from .shared_context import SharedContext

#: observations from which on more threads are worth last digits that depend on their number. Hyperparameters come
#: from 256 observations at most, so that a second thread gained nothing measurable at 1,000; at 10,000, where a refit
#: takes minutes, factorisations are most of it. Where exactly between the two was not measured.
MANY_OBSERVATIONS = 4000


@contextmanager
def threads_for(n: int) -> Iterator[None]:
    """Limit linear algebra with n observations to one thread, unless there are many.

    The limit holds for the whole process, as long as any thread of it needs it.
    """
    with _one_thread() if n < MANY_OBSERVATIONS else nullcontext():
        yield


@cache
def _one_thread() -> SharedContext:
    """Return the limit of one thread for linear algebra."""
    from threadpoolctl import ThreadpoolController  # here, as it looks for libraries that NumPy and SciPy have loaded

    return SharedContext(partial(ThreadpoolController().limit, limits=1, user_api="blas"))
