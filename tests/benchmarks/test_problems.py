"""The problems of the arena: their true integrals, by other means than those that they were computed with."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

from amsbq.experiments import forrester, wiggly
from benchmarks.arena.families import MAKERS, family, problem_named, problems
from benchmarks.arena.families.diffusion import FREQUENCIES, SIZES, solver
from benchmarks.arena.families.levels import driven, oscillation, two_point
from benchmarks.arena.families.sde import Equation
from benchmarks.arena.quadrature import by_breaks, by_product, by_sparse_grid, corner_sum, line
from benchmarks.arena.split import HELD_OUT, IN_BOTH_HALVES, SEEN_FAMILIES, half_of
from benchmarks.arena.truths import truth_of, truths_of

PROBLEMS = problems()
#: families and problems that take more than a moment
SLOW = (
    "diffusion",
    "column",
    "oscillator",
    "sde",
    "nearly-free/3",
    "unordered/2",
    "smooth/3",
    "smooth/4",
    "varying-cost/2",
    "fewer-inputs/3",
    "free/3",
    "two-knobs/1",
    "two-knobs/5",
)
#: problems with a rare peak, whose variance ten thousand points do not show
RARE = ("genz/2",)


def test_there_are_enough_of_them():
    assert len(MAKERS) >= 31
    for name in MAKERS:
        assert sum(half_of(p) == "validation" for p in family(name)) >= 4, name
    assert len({(p.family, p.title) for p in PROBLEMS}) == len(PROBLEMS)
    assert {p.dim for p in PROBLEMS} >= {1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 50, 100}
    assert {len(p.functions) for p in PROBLEMS} == {1, 2, 3, 4, 5, 6}
    assert {len(p.outputs) for p in PROBLEMS} == {0, 2, 3, 4, 5, 20}


def test_the_split_is_that_of_the_written_rule():
    free = set(MAKERS) - set(IN_BOTH_HALVES) - set(SEEN_FAMILIES)
    ranked = sorted(free, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    assert tuple(ranked[:3]) == HELD_OUT == ("diffusion", "one-source", "column")
    for p in PROBLEMS:
        expected = "validation" if not p.seen and (p.added or p.family in HELD_OUT or p.index % 2) else "development"
        assert half_of(p) == expected
        assert not (p.added and p.seen)
    for name in IN_BOTH_HALVES:
        assert {half_of(p) for p in family(name)} == {"development", "validation"}
    assert not any(p.seen for name in HELD_OUT for p in family(name))


def test_no_family_has_more_added_problems_than_it_needs():
    for name in MAKERS:
        by_rule = [p for p in family(name) if not p.added and half_of(p) == "validation"]
        assert sum(p.added for p in family(name)) == max(4 - len(by_rule), 0)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.key)
def test_truth_by_monte_carlo(problem):
    n = 1000 if problem.family in SLOW else 10_000
    truths, X = truths_of(problem), problem.measure.sample(n, np.random.default_rng(3))
    values = problem.functions[0](X).reshape(n, -1)
    assert values.shape[1] == len(truths)
    for column, truth in zip(values.T, truths, strict=True):
        assert truth.error < 2e-9
        if not problem.log:  # narrow likelihoods are tested below
            assert abs(column.mean() - truth.mean) < 4.5 * truth.std / np.sqrt(n)
            fourth = np.mean((column - truth.mean) ** 4) / truth.std**4
            tolerance = 5 * np.sqrt(max(fourth - 1, 0.1) / n)
            assert problem.key in RARE or abs(np.var(column) / truth.std**2 - 1) < tolerance
    costs = problem.cost_of(0, X)
    assert costs.mean() == pytest.approx(1.0, abs=0.03)
    assert (costs > 0).all()
    for source, function in enumerate(problem.functions):
        together, alone = function(X[:3]), [function(X[[i]])[0] for i in range(3)]
        assert together.shape == ((3, len(problem.outputs)) if problem.outputs else (3,))
        np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12 * truths[0].std)
        assert float(np.mean(problem.cost_of(source, X))) <= 1.03


@pytest.mark.parametrize("problem", family("evidence"), ids=lambda p: p.key)
def test_evidence_by_importance_sampling(problem):
    """Draws from a normal distribution around the best of many points, which is weighed by prior and likelihood."""
    rng, f = np.random.default_rng(4), problem.functions[0]
    low, high = problem.measure.bounds.T
    prior = stats.uniform(low, high - low) if np.isfinite(low).all() else stats.norm(np.zeros(problem.dim), 1)
    X = prior.rvs((400_000, problem.dim), random_state=rng)
    logs = f(X)
    weights = np.exp(logs - logs.max())
    kept = rng.choice(len(X), 2000, p=weights / weights.sum())
    proposal = stats.gaussian_kde(X[kept].T)  # has all modes that the prior's draws have
    Z = proposal.resample(20_000, seed=5).T
    ratio = np.exp(f(Z) + prior.logpdf(Z).sum(axis=1)) / proposal(Z.T)
    assert np.log(ratio.mean()) == pytest.approx(truth_of(problem).mean, abs=5 * ratio.std() / ratio.mean() / 141)
    assert ratio.std() / ratio.mean() < 3


QUICK = [p for p in PROBLEMS if p.family not in SLOW and p.key not in SLOW]


@pytest.mark.parametrize("problem", QUICK, ids=lambda p: p.key)
def test_stored_truths_are_those_that_are_computed(problem):
    computed = problem.moments()
    for known, found in zip(truths_of(problem), computed if problem.outputs else [computed], strict=True):
        assert found.mean == pytest.approx(known.mean, rel=1e-11, abs=1e-11 * known.std)
        assert found.std == pytest.approx(known.std, rel=1e-9)


def test_published_values():
    assert truth_of(problem_named("boundary-value/0")).mean == pytest.approx(-3.413622, abs=5e-7)
    assert truth_of(problem_named("nearly-free/0")).mean == pytest.approx(2.5, abs=1e-12)
    assert truth_of(problem_named("nearly-free/0")).std == pytest.approx(3.293, abs=5e-4)
    assert truth_of(problem_named("smooth/0")).mean == pytest.approx(forrester.true_integral(), rel=1e-10)
    assert truth_of(problem_named("smooth/2")).mean == pytest.approx(wiggly.true_integral(), rel=1e-10)


def test_mediocre_sources_are_mediocre():
    for problem in family("mediocre"):
        X = problem.measure.sample(50_000, np.random.default_rng(5))
        primary, *secondaries = (f(X) for f in problem.functions)
        for values in secondaries:
            assert 0.27 < np.corrcoef(primary, values)[0, 1] < 0.82


def test_rules_of_lines_have_the_moments_of_their_distributions():
    for marginal in (stats.gamma(5, loc=1, scale=4), stats.lognorm(0.6), stats.expon(scale=0.5), stats.uniform(2, 3)):
        x, w = line(marginal, 20)
        assert w @ x == pytest.approx(marginal.mean(), rel=1e-12)
        assert w @ (x - marginal.mean()) ** 2 == pytest.approx(marginal.var(), rel=1e-10)


def test_sparse_grids_are_exact_for_polynomials():
    normal = [stats.norm()] * 3
    moments = by_sparse_grid(normal, lambda X: X[:, 0] ** 2 * X[:, 1] ** 4 + X[:, 2] ** 6 + X[:, 0], 5)()
    assert moments.mean == pytest.approx(3 + 15, rel=1e-12)
    # anisotropic: the second input has indices up to 2 only, five nodes, exact to degree 9
    moments = by_sparse_grid(normal[:2], lambda X: X[:, 0] ** 8 + X[:, 1] ** 4, 4, (1.0, 0.5))()
    assert moments.mean == pytest.approx(105 + 3, rel=1e-12)


def test_sparse_grids_agree_with_products():
    normal = [stats.norm()] * 3

    def f(X):
        return np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1]) * np.cos(0.5 * X[:, 2])

    sparse, full = by_sparse_grid(normal, f, 8)(), by_product(normal, f, 20)()
    assert sparse.mean == pytest.approx(full.mean, rel=1e-10)
    assert sparse.std == pytest.approx(full.std, rel=1e-7)


def test_sums_over_corners():
    assert corner_sum(np.array([1.0, 1.0]), 1.0, 1) == pytest.approx(1 / 6)
    assert corner_sum(np.array([1.0, 1.0]), 1.0, 0) == pytest.approx(1 / 2)
    assert corner_sum(np.array([2.0]), 0.5, 2) == pytest.approx(1.5**3 / 6)


def test_euler_chains_have_the_moments_of_geometric_brownian_motion():
    chain = Equation(lambda x: 0.05 * x, lambda x: 0.3 * x, 1.0, lambda x: x, 1.0, (0.02, 12.0))
    found = chain.moments(8)
    assert found.mean == pytest.approx((1 + 0.05 / 8) ** 8, rel=1e-9)
    assert found.std**2 + found.mean**2 == pytest.approx(((1 + 0.05 / 8) ** 2 + 0.09 / 8) ** 8, rel=1e-8)


def test_the_boundary_value_solver_by_a_parabola():
    """With a constant coefficient u is a parabola, and differences are exact at the nodes; the sum is not."""
    solve = two_point(lambda X, x: np.ones(len(X)), lambda X: X[:, 0])
    for cells in (2, 4, 32):
        expected = -7.0 / 12 * (1 - 1 / cells**2)
        assert solve(cells, np.array([[7.0]]))[0] == pytest.approx(expected, rel=1e-12)


def test_the_diffusion_solver_by_a_series():
    """With the coefficient 1, ∫ u is a double series; differences converge with the square of the cell."""
    m, n = np.meshgrid(np.arange(1, 800, 2), np.arange(1, 800, 2))
    series = 64 / np.pi**6 * np.sum(1 / (m**2 * n**2 * (m**2 + n**2)))
    at = {n: solver(1.0, "average")(n, np.zeros((1, 4)))[0] for n in (16, 32)}
    assert (4 * at[32] - at[16]) / 3 == pytest.approx(series, rel=1e-4)


def test_the_diffusion_solver_by_a_dense_matrix():
    X, n, h = np.array([[0.3, -0.5, 0.7, 1.1, -0.2]]), 6, 1 / 6

    def g(x, y):
        waves = [np.cos(i * np.pi * x) * np.cos(j * np.pi * y) for i, j in FREQUENCIES[:5]]
        return np.exp(0.8 * (X[0] * SIZES[:5]) @ waves)

    A, index = np.zeros((25, 25)), {(i, j): 5 * (i - 1) + j - 1 for i in range(1, n) for j in range(1, n)}
    for (i, j), k in index.items():
        for di, dj in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            c = g((i + di / 2) * h, (j + dj / 2) * h) / h**2
            A[k, k] += c
            if (i + di, j + dj) in index:
                A[k, index[i + di, j + dj]] -= c
    u = np.linalg.solve(A, np.ones(25))
    assert solver(0.8, "average")(n, X)[0] == pytest.approx(u.sum() * h**2, rel=1e-12)
    assert solver(0.8, "centre")(n, X)[0] == pytest.approx(u[12], rel=1e-12)


def test_the_oscillator_by_another_solver():
    x = np.array([0.3, 2.0, 1.1])
    times = np.arange(160) * 12 / 160
    path = solve_ivp(
        lambda t, z: [z[1], driven(x[None], t, z[0], z[1])[0]],
        (0, 12),
        [1.0, 0.0],
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    )
    assert oscillation(driven, 12.0)(160, x[None])[0] == pytest.approx(np.mean(path.y[0] ** 2), rel=1e-5)


def test_the_fingerprint_changes_with_the_problem():
    problem = problem_named("smooth/2")
    [truth] = truths = truths_of(problem)
    marks = {
        problem.fingerprint(truths),
        replace(problem, costs=(1.0, 0.06)).fingerprint(truths),
        replace(problem, functions=problem.functions[::-1]).fingerprint(truths),
        replace(problem, log=True).fingerprint(truths),
        problem.fingerprint([replace(truth, mean=truth.mean + 1e-6)]),
    }
    assert len(marks) == 5
    noisy, given = problem_named("odd-noise/0"), problem_named("poor-designs/0")
    gaussian = replace(noisy, noise=(replace(noisy.noise[0], draw=None), None))
    assert noisy.fingerprint(truths_of(noisy)) != gaussian.fingerprint(truths_of(noisy))
    elsewhere = replace(given, design=problem_named("poor-designs/5").design)
    assert given.fingerprint(truths_of(given)) != elsewhere.fingerprint(truths_of(given))


@pytest.mark.parametrize("problem", family("odd-noise"), ids=lambda p: p.key)
def test_odd_noise_has_mean_zero_and_its_standard_deviation_on_average(problem):
    rng, X = np.random.default_rng(6), problem.measure.sample(40_000, np.random.default_rng(7))
    for function, noise in zip(problem.functions, problem.noise, strict=True):
        if noise is not None:
            exact = function(X)
            errors = np.array([noise.add(value, rng) for value in exact]) - exact
            assert abs(errors.mean()) < 5 * errors.std() / 200
            assert errors.std() == pytest.approx(noise.std, rel=0.15)
            assert noise.add(1.0, np.random.default_rng(1)) == noise.add(1.0, np.random.default_rng(1))


def test_integrals_between_breaks():
    """|x - c(y)|^½ has a root at a place that moves; its integral over x is known."""
    square = [stats.uniform(0, 1)] * 2
    found = by_breaks(
        square, lambda X: np.sqrt(np.abs(X[:, 0] - 0.5 * X[:, 1])), lambda rest: [0.5 * rest[:, 0]], [20, 30]
    )()
    y = np.polynomial.legendre.leggauss(200)
    c = (1 + y[0]) / 4
    expected = (y[1] / 2) @ (2 / 3 * (c**1.5 + (1 - c) ** 1.5))
    assert found.mean == pytest.approx(expected, rel=1e-7)  # y^1.5 itself is not smooth at zero


def test_one_of_several_outputs_is_a_problem_of_its_own():
    problem = problem_named("outputs/2")
    X = problem.measure.sample(5, np.random.default_rng(0))
    alone = problem.alone(1)
    assert alone.plain
    assert not problem.plain
    np.testing.assert_array_equal(alone.functions[0](X), problem.functions[0](X)[:, 1])
    log = problem_named("evidence/0")
    np.testing.assert_allclose(log.exponential(2.0).functions[0](X), np.exp(log.functions[0](X) - 2))
    assert problem_named("free/1").costing_at_least(0.01).costs == (1.0, 0.1, 0.01)


def test_fine_settings_of_two_knobs_agree():
    """A finer source of the same refinement is closer to the finest one in the mean, along either knob."""
    for problem in family("two-knobs"):
        X, truth = problem.measure.sample(200, np.random.default_rng(1)), truth_of(problem)
        finest = problem.functions[0](X)
        errors = {f.args: np.sqrt(np.mean((f(X) - finest) ** 2)) / truth.std for f in problem.functions}
        best = problem.functions[0].args
        for knob in (0, 1):
            along = [pair for pair in sorted(errors, reverse=True) if pair[1 - knob] == best[1 - knob]]
            assert len(along) >= 2
            found = [errors[pair] for pair in along]
            if knob == 1 and problem.noise:  # paths have no part in the expectation
                noise = [each.std * f.args[1] ** 0.5 for each, f in zip(problem.noise, problem.functions, strict=True)]
                np.testing.assert_allclose(noise, noise[0])
                assert max(found) == 0
            else:
                assert found[0] == 0 < found[1] == min(found[1:])
        assert max(errors.values()) < 5


@pytest.mark.parametrize(("number", "start", "end"), [(8, 1.0, 1.0), (9, 1.5, 2.0)])
def test_averages_over_paths(number, start, end):
    """Against simulated paths: the expectation by steps, and the size of the noise of one path."""
    problem = family("two-knobs")[number]
    rng, n = np.random.default_rng(2), 100_000
    spreads = []
    for x in problem.measure.sobol(4, 3):
        for function in problem.functions[-1:]:
            steps = function.args[0]
            s, h = np.full(n, start), end / steps
            for _ in range(steps):
                moved = rng.normal(size=n) * h**0.5
                s = s + x[0] * s * h + x[1] * s * moved if number == 8 else s + x[0] * (x[1] - s) * h + x[2] * moved
            values = s**2 if number == 8 else np.exp(-s)
            assert function(x[None])[0] == pytest.approx(values.mean(), abs=4.5 * values.std() / n**0.5)
            spreads.append(values.std())
    assert 0.5 < np.mean(spreads) / (problem.noise[0].std * problem.functions[0].args[1] ** 0.5) < 2


def test_noise_is_that_of_the_problem_and_of_the_seed():
    problem = problem_named("noisy/0")
    x = np.array([0.3])
    exact = problem.functions[0](x[None])[0]
    draws = np.array([problem.sources(seed)[0].function(x).value - exact for seed in range(400)])
    assert draws.std() == pytest.approx(0.07, rel=0.15)
    first, again = (problem.sources(1)[0].function(x) for _ in range(2))
    assert first == again
    assert first.variance == pytest.approx(0.07**2)
    unknown = problem_named("noisy/1").sources(0)
    assert [source.noise for source in unknown] == ["learn", "learn"]
    assert isinstance(unknown[0].function(np.array([0.3, 0.2])), float)
