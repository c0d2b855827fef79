"""The paper's experiments from one command: run, write tables, check claims, draw figures."""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
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
    try:
        import matplotlib
        import pandas
    except ImportError as error:
        raise ImportError(f"amsbq reproduce needs {error.name}: pip install 'amsbq[all]'") from None
    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, tables in _tables(names, settings, workers).items():
        for table, rows in tables.items():
            pandas.DataFrame(rows).to_csv(folder / name / f"{table}.csv", index=False)
    claims = {}
    for name in names:
        experiment = EXPERIMENTS[name]
        read: Tables = {path.stem: pandas.read_csv(path) for path in sorted((folder / name).glob("*.csv"))}
        claims[name] = experiment.claims(read)
        for picture, figure in experiment.figures(read).items():
            for kind in ("png", "pdf"):
                figure.savefig(folder / name / f"{picture}.{kind}", dpi=150)
            plt.close(figure)
        found = [{"claim": c.text, "found": c.found, "holds": c.holds} for c in claims[name]]
        pandas.DataFrame(found).to_csv(folder / name / "claims.csv", index=False)
    return claims


def _tables(names: Sequence[str], settings: Settings, workers: int) -> dict[str, dict[str, list[Row]]]:
    """The rows of all tables; jobs of all experiments share the processes, and come back in any order."""
    jobs = [(name, job) for name in names for job in EXPERIMENTS[name].jobs(settings)]
    found: dict[tuple[str, int], list[Row]] = {}
    with _one_thread_each(), _bar(len(jobs)) as tick:
        context = get_context("spawn")  # with threads about, a fork may hang
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            futures = {pool.submit(_rows, job): (name, i) for i, (name, job) in enumerate(jobs)}
            try:
                for future in as_completed(futures):
                    found[futures[future]] = future.result()
                    tick(futures[future][0])
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    tables: dict[str, dict[str, list[Row]]] = {name: defaultdict(list) for name in names}
    for i, (name, job) in enumerate(jobs):
        tables[name][job.table] += found[name, i]
    return tables


def _rows(job: Job) -> list[Row]:
    import warnings

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
