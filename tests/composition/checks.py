"""What is asked of every setup: it runs, its answer is right, its journal restores it, and `estimate` agrees."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, redirect_stdout
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import amsbq
from amsbq.cli.main import main

from .setups import SEED, SHARE, Setup

#: error bars between an answer and the truth
FAR = 4.0
#: how far `estimate` may be from a run on the same data: in error bars, and in the logarithm of their width, three
#: times as far as two seeds are apart; and where hyperparameters are refitted in turns, so that some are older
SAMPLING_MEAN, SAMPLING_WIDTH = 0.5, 0.75
IN_TURNS = 1.5


def answers(setup: Setup, result: Any) -> list[amsbq.Estimate]:
    """Return what is known of the target of each output."""
    parts = [result] if setup.outputs == "one" else [result[name] for name in setup.names]
    if setup.target == "mean":
        return [part.estimate for part in parts]
    outputs = [part.distribution() for part in parts]
    if setup.target == "variance":
        return [output.variance() for output in outputs]
    if setup.target == "exceedance":
        return [output.probability(above=setup.limit) for output in outputs]
    return [output.quantile(SHARE) for output in outputs]


def run(setup: Setup, folder: Path, journal: Path | None = None) -> Any:
    """Return the result of a run through its front door."""
    if setup.front == "detached":
        return detached(setup, folder)
    if setup.front == "ask and tell":
        return asked_and_told(setup)
    with ExitStack() as stack:
        execution: dict[str, Any] = {}
        if setup.execution == "workers":
            execution = {"workers": 2}
        elif setup.execution == "executor":
            execution = {"executor": stack.enter_context(ThreadPoolExecutor(2)), "workers": 2}
        options = {**setup.options, **setup.stopping, **execution}
        return amsbq.integrate(setup.sources, setup.measure, journal=journal, **options)


def asked_and_told(setup: Setup) -> Any:
    """Return the result of a run whose evaluations are made here."""
    it = amsbq.Integrator(setup.sources, setup.measure, **setup.options)
    functions = [source.after(setup.measure.function).function for source in setup.sources]
    while (query := it.ask()) is not None:
        it.tell(query, functions[query.source](query.x))
    return it.result()


def problem_file(setup: Setup, folder: Path) -> Path:
    """Return a problem file with the setup, and the module that it needs."""
    module = f"simulators_{sha256(setup.name.encode()).hexdigest()[:8]}"  # all are imported into one process
    (folder / f"{module}.py").write_text(
        "from tests.composition.setups import Formula, Setup, Simulator\n"
        f"setup = {setup!r}\n"
        "fine, coarse, formula = Simulator(setup, 0), Simulator(setup, 1), Formula(setup)\n"
    )
    lines = [f"budget = {setup.budget}", f"seed = {SEED}", f'model = "{setup.model}"']
    if setup.outputs != "one":
        lines.append(f"outputs = {json.dumps(setup.names)}")
    lines += {"range": ["output_range = [0.0, inf]"], "log": ["log = true"]}.get(setup.values, [])
    targets = {
        "variance": '"variance"',
        "exceedance": f"{{ exceedance = {setup.limit!r} }}",
        "quantile": f"{{ quantile = {SHARE} }}",
    }
    if setup.wanted == "limit":
        lines.append("limit = true")
    if setup.target != "mean":
        lines.append(f"target = {targets[setup.target]}")
    if setup.stop == "tolerance":
        lines.append(f"abs_tol = {setup.stopping['abs_tol']}")
    if setup.inputs == "empirical":
        rows = "\n".join(",".join(map(repr, row)) for row in setup.measure.samples.tolist())
        (folder / "samples.csv").write_text(f"a,b\n{rows}\n")
        lines.append('samples = "samples.csv"')
    else:
        second = (
            '{ distribution = "randint", low = 0, high = 4 }'
            if setup.inputs == "discrete"
            else "{ low = 0.0, high = 1.0 }"
        )
        lines += ["[inputs]", "a = { low = 0.0, high = 1.0 }", f"b = {second}"]
    if setup.inputs == "dependent":
        lines += ["[correlations]", "a = { b = 0.6 }"]
    for number, source in enumerate(setup.sources):
        lines += ["[[sources]]", f'name = "{source.name}"', f'python = "{module}:{source.name}"']
        cost = source.cost if isinstance(source.cost, str) else float(source.cost)
        lines.append(f"cost = {json.dumps(cost)}")
        if number < 2 and source.noise:
            lines.append(f"noise = {json.dumps(source.noise)}")
        if source.fidelity:
            lines.append(f"fidelity = {{ h = {source.fidelity['h']} }}")
        if source.timeout:
            lines.append(f"timeout = {source.timeout}")
        if source.gradient:
            lines.append("gradient = true")
        if source.outputs:
            lines.append(f"outputs = {json.dumps(list(source.outputs))}")
        if source.vectorized:
            lines.append("vectorized = true")
    file = folder / "problem.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


def detached(setup: Setup, folder: Path) -> Any:
    """Return the result of a run by shell commands, with nothing running in between."""
    file, simulators = problem_file(setup, folder), [source.function for source in setup.sources]
    journal = str(file.with_suffix(".jsonl"))
    n = "2" if setup.execution in ("workers", "executor") else "1"
    while asked := shell("ask", str(file), "--n", n).splitlines():
        for query in map(json.loads, asked):
            names = [source.name for source in setup.sources]
            x = np.array([query["x"][name] for name in ("a", "b")])
            made = simulators[names.index(query["source"])](x)
            known = made if isinstance(made, amsbq.Observation) else amsbq.Observation(made)
            extra = ["--variance", repr(known.variance)] if known.variance else []
            extra += [] if known.cost is None else ["--cost", repr(known.cost)]
            if known.gradient is not None:
                extra += ["--gradient", json.dumps(np.asarray(known.gradient).tolist())]
            shell("tell", journal, str(query["id"]), *map(repr, np.atleast_1d(known.value).tolist()), *extra)
    return amsbq.read_result(journal)


def shell(*arguments: str) -> str:
    """Return what a command of the shell prints, in this process: importing the library takes longer than most."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        status = main(list(arguments))
    if status:
        raise RuntimeError(f"amsbq {' '.join(arguments)} has failed")
    return printed.getvalue()


def check_answer(setup: Setup, result: Any) -> None:
    """Check that the answer for each output is within four error bars of the truth."""
    for name, truth, found in zip(setup.names, setup.truths, answers(setup, result), strict=True):
        assert np.isfinite([found.mean, found.std]).all(), name
        assert abs(found.mean - truth) <= FAR * found.std + 1e-6, f"{name}: {found!r}, but it is {truth}"


def check_journal(setup: Setup, folder: Path) -> None:
    """Check that a journal restores a run, and that one that was killed half-way ends like one that was not."""
    whole, part = folder / "whole.jsonl", folder / "part.jsonl"
    first = run(setup, folder, whole)
    read = amsbq.read_result(whole)
    np.testing.assert_array_equal(read.mean, first.mean)
    np.testing.assert_array_equal(read.std, first.std)
    assert [e.id for e in read.evaluations] == [e.id for e in first.evaluations]
    if setup.execution in ("workers", "executor") or setup.cost == "measured":
        return
    lines = whole.read_bytes().splitlines(keepends=True)
    part.write_bytes(b"".join(lines[: len(lines) // 2]))
    again = run(setup, folder, part)
    np.testing.assert_array_equal(again.mean, first.mean)
    np.testing.assert_array_equal(again.std, first.std)


def check_estimate(setup: Setup, result: Any) -> None:
    """Check that `estimate` on the data of a run agrees with the run, within the noise of sampling."""
    made = [e for e in result.evaluations if e.status == "ok"]
    bulk = list(result.bulk)
    sources = [e.source for e in made] + [b.source for b in bulk for _ in b.values]
    X = np.concatenate([[e.x for e in made], *(b.X for b in bulk)])
    y = np.concatenate([[e.value for e in made], *(b.values for b in bulk)])
    variances = np.concatenate([[e.variance for e in made], *(np.zeros_like(b.values) for b in bulk)])
    extra: dict[str, Any] = {}
    if bulk:
        extra["integrals"] = {b.source: (b.mean, np.square(b.std)) for b in bulk}
        beside = [(b.source, e.x, e.free[k][0]) for e in made for k, b in enumerate(bulk) if e.free]
        sources = sources + [source for source, _, _ in beside]
        X = np.concatenate([X, [x for _, x, _ in beside]])
        y, variances = (
            np.concatenate([a, b])
            for a, b in ((y, [v for _, _, v in beside]), (variances, 0 * np.array([v for _, _, v in beside])))
        )
    if setup.gradients == "gradients":
        shape = (len(setup.names), 2) if setup.outputs != "one" else (2,)
        known = [np.full(shape, np.nan) if e.gradient is None else e.gradient for e in made]
        extra["gradients"] = np.concatenate([known, np.full((len(y) - len(made), *shape), np.nan)])
    if setup.wanted == "limit":
        extra |= {"fidelity": setup.fidelities, "limit": True}
    noise = [source.noise for source in setup.sources]
    found = amsbq.estimate(
        sources,
        X,
        y,
        setup.measure,
        model=setup.model,
        noise=noise,
        noise_var=variances,
        seed=SEED,
        order=range(len(noise)),
        **setup.knowledge,
        **extra,
    )
    turns = 1.0 if setup.outputs == "one" else IN_TURNS
    for a, b in zip(*(np.atleast_1d(each) for each in (found.mean, result.mean)), strict=True):
        assert abs(a - b) <= turns * SAMPLING_MEAN * np.max(np.atleast_1d(result.std)) + 1e-9
    np.testing.assert_allclose(np.log(found.std), np.log(result.std), atol=turns * SAMPLING_WIDTH)


def check_certificate(setup: Setup, result: Any) -> None:
    """Check that what a run was for can be certified, whatever it has, and that the certificate holds the truth."""
    prices = [e.cost for e in result.evaluations if e.source == 0]
    budget = 6 * max(prices)
    certificate = amsbq.certify(result, budget)
    functions = [source.after(setup.measure.function).function for source in setup.sources]
    while (query := certificate.ask()) is not None:
        made = functions[query.source](query.x)
        known = made if isinstance(made, amsbq.Observation) else amsbq.Observation(made)
        certificate.tell(query, known.value, known.variance, known.cost if setup.cost == "declared" else max(prices))
    assert certificate.complete
    low, high = (np.atleast_1d(end) for end in certificate.interval(0.999))
    assert ((low <= setup.truths) & (setup.truths <= high)).all()
    assert np.isfinite(certificate.mean).all()


def check(setup: Setup, folder: Path) -> None:
    """Check everything that is promised of a setup."""
    if setup.front == "journal":
        check_journal(setup, folder)
        result = amsbq.read_result(folder / "whole.jsonl")
    else:
        result = run(setup, folder)
    assert result.spent <= setup.budget * (1 + 1e-9) or setup.cost == "measured"
    check_answer(setup, result)
    check_estimate(setup, result)
    check_certificate(setup, result)
