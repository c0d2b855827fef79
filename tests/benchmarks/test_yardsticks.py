"""The yardsticks: their truths by other means and against published values, their sources, runs and tables.

Formulas are compared with the outside packages where these are installed.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks.arena import runs
from benchmarks.arena.families import MAKERS as ARENA
from benchmarks.arena.families import family, problem_named
from benchmarks.arena.methods import METHODS
from benchmarks.arena.problem import Problem
from benchmarks.arena.quadrature import by_sobol
from benchmarks.arena.results import Results
from benchmarks.arena.store import load
from benchmarks.arena.truths import truth_of, truths_of
from benchmarks.yardsticks import registry, report, theirs
from benchmarks.yardsticks.functions import SOURCES, published
from benchmarks.yardsticks.multi_index import advection
from benchmarks.yardsticks.options import GEOMETRIC, STEPS

PROBLEMS = registry.problems()
#: problems whose truth takes more than a moment
SLOW = ("asian-options/1", "multi-index/2", "uqtestfuns/5", "uqtestfuns/7", "uqtestfuns/25", "uqtestfuns/27")


def points_of(problem: Problem, n: int = 10_000) -> np.ndarray:
    return problem.measure.sample(n, np.random.default_rng(3))


def test_they_are_what_the_page_says():
    assert [len(family(name)) for name in registry.MAKERS] == [2, 6, 30, 9, 3]
    assert not registry.MAKERS.keys() & ARENA.keys()
    assert [p.title for p in PROBLEMS if p.seen] == ["Forrester, two models"]
    titles = [p.title for p in family("uqtestfuns")]
    assert titles == [f"{name}, {('shifted', 'linearised')[k % 2]}" for k, name in enumerate(SOURCES)]
    assert all(p.costs == (1.0, 0.1) for p in family("uqtestfuns"))


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if not p.log], ids=lambda p: p.key)
def test_truth_by_monte_carlo(problem):
    n = 300 if problem.key == "multi-index/2" else 10_000
    values = problem.functions[0](points_of(problem, n)).reshape(n, -1)
    for column, truth in zip(values.T, truths_of(problem), strict=True):
        assert truth.error < 1e-4
        assert abs(column.mean() - truth.mean) < 4.5 * truth.std / np.sqrt(n)
        fourth = np.mean((column - truth.mean) ** 4) / truth.std**4
        assert abs(np.var(column) / truth.std**2 - 1) < 5 * np.sqrt(max(fourth - 1, 0.1) / n)


@pytest.mark.parametrize("problem", [p for p in PROBLEMS if p.key not in SLOW], ids=lambda p: p.key)
def test_stored_truths_are_those_that_are_computed(problem):
    computed = problem.moments()
    for known, found in zip(truths_of(problem), computed if problem.outputs else [computed], strict=True):
        assert found.mean == pytest.approx(known.mean, rel=1e-11, abs=1e-11 * known.std)
        assert found.std == pytest.approx(known.std, rel=1e-9)


@pytest.mark.parametrize("problem", [p for p in family("vbmc-evidence") if p.dim == 2], ids=lambda p: p.key)
def test_evidence_by_quadrature(problem):
    """The trapezoidal rule over fourteen standard deviations of the prior, which is exact for densities that decay."""
    n = 1201 if "cigar" in problem.title else 401
    axes = [np.linspace(*(m.mean() + m.std() * np.array([-7, 7])), n) for m in problem.marginals]
    grids = np.meshgrid(*axes, indexing="ij")
    X = np.column_stack([grid.ravel() for grid in grids])
    prior = np.prod([m.pdf(x) for m, x in zip(problem.marginals, X.T, strict=True)], axis=0)
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    found = np.sum(np.exp(problem.functions[0](X)) * prior) * cell
    assert np.log(found) == pytest.approx(truth_of(problem).mean, abs=1e-4)


def test_published_values():
    """Of QMCPy's options, by fastgps' notebook and QMCPy's demonstration, and of functions whose means are known."""
    printed = dict(zip(STEPS, (4.1671, 4.4027, 4.8832, 5.8860), strict=True))
    for steps, value in printed.items():
        assert GEOMETRIC.geometric_moments(steps).mean == pytest.approx(value, abs=5e-5)
    assert truth_of(problem_named("asian-options/1")).mean == pytest.approx(5.76113, abs=1e-4)
    assert truth_of(problem_named("pyapprox-ensembles/0")).mean == pytest.approx(1 / 6)
    means = {p.title.partition(",")[0]: truth_of(p).mean for p in family("uqtestfuns")}
    assert means["Moon3D"] == pytest.approx(1.75)  # 1/2 + 1/2 + 3/4
    assert means["Webster2D"] == pytest.approx(37 + 14)  # E a² + E b³
    assert means["RSQuadratic"] == pytest.approx(11 - 1.5**2 - 0.25)
    assert means["Oakley1D"] == pytest.approx(5 + np.exp(-8))
    assert means["GaytonHat"] == pytest.approx(0.5 * 5 - 1.5 * (-125 - 15) - 3)
    sine, _ = integrate.dblquad(lambda x, y: np.sin(np.pi * x * y), 0, 1, 0, 1)
    assert means["Friedman10D"] == pytest.approx(10 * sine + 20 / 12 + 5 + 2.5)


def test_four_branches_by_midpoints():
    x = np.arange(-8, 8, 0.01) + 0.005
    X = np.column_stack([grid.ravel() for grid in np.meshgrid(x, x)])
    weights = np.outer(stats.norm.pdf(x), stats.norm.pdf(x)).ravel() * 1e-4
    problem = problem_named("uqtestfuns/8")
    assert weights @ problem.functions[0](X) == pytest.approx(truth_of(problem).mean, abs=1e-5)


def test_a_shifted_source_is_the_function_at_larger_scores():
    problem = problem_named("uqtestfuns/28")  # a² + b³, a uniform on [1, 10] and b normal
    a, b = 5.5, 2.0
    expected = (1 + 9 * stats.norm.cdf(0.25)) ** 2 + (b + 0.25) ** 3
    assert problem.functions[1](np.array([[a, b]]))[0] == pytest.approx(expected)


def test_a_linearised_source_touches_the_function_at_the_medians():
    problem = problem_named("uqtestfuns/29")
    f, line = problem.functions
    centre = np.array([[marginal.median() for marginal in problem.marginals]])
    assert line(centre) == pytest.approx(f(centre))
    step = 1e-3 * np.array([marginal.std() for marginal in problem.marginals])
    ahead = centre + step
    assert line(ahead) - line(centre) == pytest.approx(f(ahead) - f(centre), rel=2e-3)


def test_sobol_points_state_their_error():
    found = by_sobol([stats.norm(1, 2), stats.uniform(0, 1)], lambda X: X[:, 0] ** 2 + X[:, 1], 14, 8)()
    assert abs(found.mean - 5.5) < 5 * found.error * found.std
    assert 0 < found.error < 1e-3


def test_advection_and_diffusion_converge():
    """The output converges with the square of the cell, and with the step."""
    x = np.array([[0.3, -0.5, 0.2]])
    cells = [advection(n, 8, x)[0] for n in (4, 8, 16)]
    steps = [advection(8, n, x)[0] for n in (8, 16, 32)]
    assert (cells[0] - cells[1]) / (cells[1] - cells[2]) == pytest.approx(4, abs=1.2)
    assert (steps[0] - steps[1]) / (steps[1] - steps[2]) == pytest.approx(2, abs=0.7)


def test_every_method_solves_a_problem_and_the_page_can_be_made(tmp_path, monkeypatch):
    file, nowhere = tmp_path / "results.jsonl", tmp_path / "results.jsonl.xz"
    chosen = [job for job in registry.jobs([problem_named("uqtestfuns/2")], range(1)) if job[2] == "5"]
    assert {method for _, method, _, _ in chosen} == set(registry.PLAYERS)
    for job in chosen:
        runs.append(runs.run(job), file)
    records = list(load(file).values())
    assert not any(record.failed for record in records)
    table = report.errors(Results.of(records))
    assert table.splitlines()[2].startswith("| ConvexFailDomain, shifted (Borri and Speranzini 1997) | ")
    page = tmp_path / "yardsticks.md"
    page.write_text(f"before\n{report.BEGIN}earlier text\n{report.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(report, "FILE", file)
    monkeypatch.setattr(report, "STORED", nowhere)
    report.write(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "earlier text" not in text
    assert (tmp_path / "yardsticks" / "ratios.svg").exists()


def test_one_source_is_run_once():
    players = registry.players_of(problem_named("vbmc-evidence/0"))
    assert players == ["auto", "Sobol points", "Monte Carlo"]
    assert set(registry.PLAYERS) <= METHODS.keys()


def test_the_page_has_what_is_stored():
    page = (report.DOCS / "yardsticks.md").read_text(encoding="utf-8")
    records = list(load(report.STORED).values())
    found = report.contests(Results.of(records))
    assert report.summary(records, found) in page


def test_figures_of_others_are_about_problems_here():
    listed = [*theirs.published(), *theirs.stored()]
    assert {figure.kind for figure in listed} == {"1 run", "5 runs", "predicted"}
    for figure in listed:
        assert problem_named(figure.problem).family in registry.MAKERS
        assert 0 <= figure.error < 1


def test_covariances_by_gauss_rules():
    (polynomial,) = theirs.covariances(problem_named("pyapprox-ensembles/0"))
    degrees = np.array([5, 4, 3, 2, 1])
    expected = 1 / (np.add.outer(degrees, degrees) + 1) - np.outer(1 / (degrees + 1), 1 / (degrees + 1))
    np.testing.assert_allclose(polynomial, expected, rtol=1e-12)


def test_functions_are_those_of_uqtestfuns():
    uqtestfuns = pytest.importorskip("uqtestfuns")
    scores = np.random.default_rng(0).uniform(0.01, 0.99, (50, 10))
    for name, (marginals, f, _) in published().items():
        other = getattr(uqtestfuns, name)()
        X = np.column_stack([m.ppf(u) for m, u in zip(marginals, scores.T, strict=False)])
        np.testing.assert_allclose(f(X), np.ravel(other(X)), rtol=1e-10, atol=1e-12, err_msg=name)
        for marginal, theirs_, u in zip(marginals, other.prob_input.marginals, scores.T, strict=False):
            np.testing.assert_allclose(marginal.ppf(u), theirs_.icdf(u), rtol=1e-8, err_msg=name)


def test_ensembles_are_those_of_pyapprox():
    statest = pytest.importorskip("pyapprox_benchmarks.statest")
    from pyapprox.util.backends.numpy import NumpyBkd

    kinds = [
        statest.PolynomialEnsembleBenchmark,
        statest.TunableEnsembleBenchmark,
        statest.MultiOutputEnsembleBenchmark,
        lambda bkd: statest.MultiOutputEnsembleBenchmark(bkd, psd=True),
        statest.BraninEnsembleProblem,
        statest.ForresterEnsembleProblem,
    ]
    for problem, kind in zip(family("pyapprox-ensembles"), kinds, strict=True):
        other = kind(NumpyBkd()).problem()
        X = points_of(problem, 20)
        np.testing.assert_allclose(other.costs(), problem.costs)
        for f, g in zip(problem.functions, other.models(), strict=True):
            np.testing.assert_allclose(f(X).reshape(20, -1), g(X.T).T, rtol=1e-12, atol=1e-12, err_msg=problem.title)


def test_options_are_those_of_qmcpy():
    qmcpy = pytest.importorskip("qmcpy")
    rng = np.random.default_rng(1)
    for steps in STEPS:
        other = qmcpy.FinancialOption(
            qmcpy.IIDStdUniform(steps, seed=1),
            option="ASIAN",
            asian_mean="GEOMETRIC",
            asian_mean_quadrature_rule="RIGHT",
            volatility=GEOMETRIC.volatility,
            start_price=GEOMETRIC.start,
            strike_price=GEOMETRIC.strike,
            interest_rate=GEOMETRIC.rate,
        )
        assert GEOMETRIC.geometric_moments(steps).mean == pytest.approx(other.get_exact_value(), rel=1e-12)
        X = rng.standard_normal((7, 16))
        prices = np.exp(GEOMETRIC.logarithms(steps, X))
        payoff = other.payoff(prices) * np.exp(-GEOMETRIC.rate)
        np.testing.assert_allclose(GEOMETRIC.geometric(steps, X), payoff, rtol=1e-12, atol=1e-12)
