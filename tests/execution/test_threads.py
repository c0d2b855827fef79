"""Runs in several threads of one process, which share linear algebra and warnings."""

import threading
import time
import warnings

import pytest
from scipy import stats
from threadpoolctl import threadpool_info, threadpool_limits

from amsbq import integrate
from amsbq.common.threads import threads_for
from amsbq.execution.journal import read_journal
from tests.design.test_integrator import FINE, UNIT
from tests.execution.test_runner import pair


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_runs_in_several_threads_leave_nothing_changed():
    """Neither the number of threads of linear algebra nor the filters of warnings, which all threads share."""
    filters, shown = list(warnings.filters), warnings.showwarning

    def run(seed):
        integrate(pair(), [stats.beta(2, 3 + 0.1 * seed)], budget=2.5, model="icm", seed=seed)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert blas_threads() == before
        assert warnings.filters == filters
        assert warnings.showwarning is shown


def test_the_limit_of_threads_is_lifted_when_nobody_needs_it():
    """In whatever order its users come and go."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = threads_for(10), threads_for(20)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
    assert set(before) == {2}


@pytest.mark.filterwarnings("ignore:the mesh is coarse")
def test_warnings_of_sources_are_not_those_of_the_model(tmp_path):
    """They come from other threads while the model is learned."""

    def warns(x):
        for _ in range(20):
            warnings.warn("the mesh is coarse", stacklevel=1)
            time.sleep(0.005)
        return FINE(x)

    integrate(pair(warns, warns), UNIT, budget=3, model="icm", workers=4, journal=tmp_path / "run.jsonl")
    fits = [event for event in read_journal(tmp_path / "run.jsonl")[1] if event["event"] == "fitted"]
    assert fits
    assert not any("mesh" in message for fit in fits for message in fit["warnings"])
