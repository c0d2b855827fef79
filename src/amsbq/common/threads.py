"""The number of threads for linear algebra.

Small matrices do not gain from a second thread. When other work keeps the cores busy, threads that wait for each other
make a small factorisation a hundred times slower. And the last digits of a result depend on the number of threads: with
one thread, a run is the same on any number of cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial

from .shared_context import SharedContext

#: number of observations at and above which more threads are worth last digits that depend on their number.
#: Hyperparameters are learned from 256 observations at most, so that a second thread gained nothing measurable at
#: 1,000; at 10,000, where a refit takes minutes, most of the time goes into factorisations. The break-even in between
#: was not measured.
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
    """Return the context that limits linear algebra to one thread."""
    from threadpoolctl import ThreadpoolController  # late: it looks for libraries that NumPy and SciPy have loaded

    return SharedContext(partial(ThreadpoolController().limit, limits=1, user_api="blas"))
