"""`amsbq reproduce`: run the paper's experiments, write their tables, check their claims, and draw their figures."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import TypeAlias

from . import cube, epidemic, forrester, gaussians, intuition, wiggly
from .study import Claim, Job, Row, Settings, Tables

#: the experiments by name, in the order in which they are run and shown
EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (module.EXPERIMENT for module in (intuition, forrester, wiggly, epidemic, gaussians, cube))
}
SEEDS = 5  #: default number of seeds: medians are stable, and everything takes a quarter of an hour on two cores

RowsOfTables: TypeAlias = dict[str, list[Row]]  #: the rows of an experiment's tables, by table
Tick: TypeAlias = Callable[[str], None]  #: called with the name of an experiment when one of its jobs is done


def reproduce(names: Sequence[str], folder: Path, settings: Settings, workers: int) -> dict[str, list[Claim]]:
    """Run experiments; each gets a folder for its tables (CSV) and the figures made from them (PNG and PDF).

    Parameters
    ----------
    names : sequence of str
        Keys of `EXPERIMENTS`.
    folder : Path
        Where to write; a folder for each experiment is made there.
    settings : Settings
        Number of seeds, and whether to be quick.
    workers : int
        Number of processes.

    Returns
    -------
    dict
        The claims of each experiment, by its name.
    """
    for package in ("matplotlib", "pandas"):
        if find_spec(package) is None:
            raise ImportError(f"amsbq reproduce needs {package}: pip install 'amsbq[all]'")
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    context = get_context("spawn")  # a fork of a process that has threads may hang
    with _one_blas_thread_each(), ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            rows = _run_jobs(pool, names, settings)
            claims = pool.map(_write_experiment, names, [rows[name] for name in names], [folder / n for n in names])
            return dict(zip(names, claims, strict=True))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run_jobs(pool: Executor, names: Sequence[str], settings: Settings) -> dict[str, RowsOfTables]:
    """Return the rows of all tables, by experiment; the jobs of all experiments share the processes."""
    jobs = [(name, job) for name in names for job in EXPERIMENTS[name].jobs(settings)]
    # Jobs with the default model take longest: begun first, they do not keep one process busy alone at the end.
    longest_first = sorted(jobs, key=lambda entry: not any("default" in str(a) for a in entry[1].arguments))
    found: dict[int, list[Row]] = {}
    with _progress_display(len(jobs)) as tick:
        futures = {pool.submit(_run_job, job): (name, id(job)) for name, job in longest_first}
        for future in as_completed(futures):
            name, key = futures[future]
            found[key] = future.result()
            tick(name)
    tables: dict[str, RowsOfTables] = {name: defaultdict(list) for name in names}
    for name, job in jobs:  # in the order of jobs, not of their completion
        tables[name][job.table] += found[id(job)]
    return tables


def _run_job(job: Job) -> list[Row]:
    """Compute the rows of a job, in a process of the pool."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about single runs are irrelevant for comparisons over seeds
        return job.compute_rows(*job.arguments)


def _write_experiment(name: str, rows_of_tables: RowsOfTables, folder: Path) -> list[Claim]:
    """Write the tables of an experiment, and make claims and figures from the files, in a process of the pool."""
    import matplotlib
    import pandas

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    tables: Tables = {}
    for table, rows in rows_of_tables.items():
        path = folder / f"{table}.csv"
        pandas.DataFrame(rows).to_csv(path, index=False)
        tables[table] = pandas.read_csv(path)
    claims: list[Claim] = EXPERIMENTS[name].claims(tables)
    for picture, figure in EXPERIMENTS[name].figures(tables).items():
        for suffix in ("png", "pdf"):
            figure.savefig(folder / f"{picture}.{suffix}", dpi=150)
            figure.set_layout_engine("none")  # the layout is fixed now, and equal in both files
        plt.close(figure)
    pandas.DataFrame([asdict(claim) for claim in claims]).to_csv(folder / "claims.csv", index=False)
    return claims


@contextmanager
def _one_blas_thread_each() -> Iterator[None]:
    """Limit processes started in this context to one BLAS thread each, because they share the cores."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _progress_display(total: int) -> Iterator[Tick]:
    """Show on stderr how many jobs are done: a bar on a terminal (with rich), elsewhere ten lines in total."""
    if sys.stderr.isatty():
        try:
            from rich.console import Console
            from rich.progress import Progress
        except ImportError:
            pass
        else:
            with Progress(console=Console(stderr=True)) as display:
                task = display.add_task("", total=total)
                yield lambda name: display.update(task, advance=1, description=name)
            return
    done, start = 0, time.monotonic()

    def tick(name: str) -> None:
        nonlocal done
        done += 1
        if done == total or done % max(total // 10, 1) == 0:
            print(f"{done} of {total} jobs, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)

    yield tick
