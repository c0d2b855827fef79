"""Order and tiers of the tests.

Long files come first, so that no worker is left with one of them at the end: a worker takes whole files, whose tests
share fixtures, or whole classes of those that have any. `make test` leaves out what is slow, `make test-all` nothing.
"""

import faulthandler
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)  # the time that an example takes is that of a busy machine
settings.load_profile("untimed")

#: files that take longest, the longest first
LONG = (
    "test_docs.py",
    "test_pairs.py",
    "test_cli.py",
    "test_reproduce.py",
    "test_report.py",
    "test_notebook.py",
    "test_release.py",
    "test_live.py",
    "test_detached.py",
    "test_journal.py",
    "test_executors.py",
    "test_slurm.py",
    "test_integrator.py",
    "test_plots.py",
    "test_embeddings.py",
    "test_simulations.py",
    "test_epidemic.py",
    "test_absurd_confidence.py",
    "test_refits.py",
    "test_search.py",
    "test_baselines.py",
    "test_pool.py",
    "test_dependent_and_discrete.py",
    "test_runner.py",
    "test_external.py",
    "test_examples.py",
    "test_locks.py",
)

#: files and folders for `make test-all`: documentation, examples, releases, clusters, the paper's experiments, other
#: methods, the arena, and runs that take long; a test in them that is marked as a front door is in `make test` too
SLOW = (
    "baselines",
    "benchmarks/test_problems.py",
    "benchmarks/test_runs.py",
    "cli/test_pages.py",
    "design/test_bulk.py",
    "design/test_decision_cost.py",
    "design/test_useless_sources.py",
    "execution/test_cluster_page.py",
    "execution/test_executors.py",
    "execution/test_locks.py",
    "execution/test_resume_page.py",
    "execution/test_simulator_page.py",
    "execution/test_slurm.py",
    "experiments",
    "gradients/test_runs.py",
    "inference/test_absurd_confidence.py",
    "outputs/test_detached.py",
    "outputs/test_pages.py",
    "outputs/test_runs.py",
    "results/test_refits.py",
    "test_docs.py",
    "test_examples.py",
    "test_gallery.py",
    "test_notebook.py",
    "test_release.py",
    "visualization",
)

HERE = Path(__file__).parent


def pytest_configure(config):
    """Say what was running when the tests are ended from outside, as by a time limit.

    Workers print where each of their threads is. The process that started them ends with the usual summary.
    """
    if hasattr(faulthandler, "register"):
        with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            faulthandler.register(signal.SIGTERM, os.dup(2), chain=True)
    if not hasattr(config, "workerinput"):
        signal.signal(signal.SIGTERM, _terminated)


def _terminated(number, frame):
    pytest.exit("the tests were terminated; above is where each worker was", returncode=128 + number)


def is_slow(item):
    """Whether a test is for `make test-all` because of where it is."""
    if item.get_closest_marker("front_door") is not None or not item.path.is_relative_to(HERE):
        return False
    path = item.path.relative_to(HERE)
    return any(Path(name) in (path, *path.parents) for name in SLOW)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what is slow; sort tests by their files, keeping the order within files and of all others."""
    for item in items:
        if is_slow(item):
            item.add_marker("slow")
    rank = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path.name, len(LONG)))
