"""Order of the tests: long files first, so that no worker is left with one of them at the end."""

#: files that take longest, the longest first
LONG = (
    "test_docs.py",
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


def pytest_collection_modifyitems(items):
    """Sort tests by their files, keeping the order within files and of all others."""
    rank = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path.name, len(LONG)))
