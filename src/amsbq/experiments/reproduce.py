"""The paper's experiments from one command: run, write tables, check claims, draw figures."""

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

EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (module.EXPERIMENT for module in (intuition, forrester, wiggly, epidemic, gaussians, cube))
}
SEEDS = 5  #: unless said otherwise

Tick: TypeAlias = Callable[[str], None]


def reproduce(names: Sequence[str], folder: Path, settings: Settings, workers: int) -> dict[str, list[Claim]]:
    """Run experiments; each gets a folder for its tables (CSV) and the figures made from them (PNG and PDF)."""
    for package in ("matplotlib", "pandas"):
        if find_spec(package) is None:
            raise ImportError(f"amsbq reproduce needs {package}: pip install 'amsbq[all]'")
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    context = get_context("spawn")  # with threads about, a fork may hang
    with _one_thread_each(), ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            tables = _tables(pool, names, settings)
            claims = pool.map(_shown, names, [tables[name] for name in names], [folder / name for name in names])
            return dict(zip(names, claims, strict=True))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _tables(pool: Executor, names: Sequence[str], settings: Settings) -> dict[str, dict[str, list[Row]]]:
    """The rows of all tables; jobs of all experiments share the processes, and come back in any order."""
    jobs = [(name, job) for name in names for job in EXPERIMENTS[name].jobs(settings)]
    longest_first = sorted(jobs, key=lambda entry: not any("default" in str(a) for a in entry[1].arguments))
    found: dict[int, list[Row]] = {}
    with _bar(len(jobs)) as tick:
        futures = {pool.submit(_rows, job): (name, id(job)) for name, job in longest_first}
        for future in as_completed(futures):
            name, key = futures[future]
            found[key] = future.result()
            tick(name)
    tables: dict[str, dict[str, list[Row]]] = {name: defaultdict(list) for name in names}
    for name, job in jobs:
        tables[name][job.table] += found[id(job)]
    return tables


def _shown(name: str, tables: dict[str, list[Row]], folder: Path) -> list[Claim]:
    """Write the tables of an experiment, and make claims and figures of what was written."""
    import matplotlib
    import pandas

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    read: Tables = {}
    for table, rows in tables.items():
        path = folder / f"{table}.csv"
        pandas.DataFrame(rows).to_csv(path, index=False)
        read[table] = pandas.read_csv(path)
    claims: list[Claim] = EXPERIMENTS[name].claims(read)
    for picture, figure in EXPERIMENTS[name].figures(read).items():
        for kind in ("png", "pdf"):
            figure.savefig(folder / f"{picture}.{kind}", dpi=150)
        plt.close(figure)
    pandas.DataFrame([asdict(claim) for claim in claims]).to_csv(folder / "claims.csv", index=False)
    return claims


def _rows(job: Job) -> list[Row]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # runs that are compared over seeds need not comment on themselves
        return job.rows(*job.arguments)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """New processes get one BLAS thread: they share the cores between them."""
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
def _bar(total: int) -> Iterator[Tick]:
    """A bar on a terminal; elsewhere a line now and then."""
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
