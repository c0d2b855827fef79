"""The search finds the largest rate there is, for one observation and for sets."""

import itertools

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.design.acquisition import Rate
from amsbq.design.costs import ConstantCost, CostFunction
from amsbq.design.evaluations import Option
from amsbq.design.search import Search
from tests.problems import random_B

BOTH = [Option(0), Option(1)]


def by_option(costs):
    return {Option(source): cost for source, cost in enumerate(costs)}


MEASURES = {
    "uniform": lambda D: amsbq.Uniform(np.zeros(D), 1.0),
    "Gaussian": lambda D: amsbq.Gaussian(np.ones(D), 4.0),
    "correlated": lambda D: amsbq.Gaussian(np.zeros(D), 0.2 * np.eye(D) + 0.8),
    "gamma": lambda D: amsbq.Product([stats.gamma(5, loc=1, scale=4)] * D),
    "samples": lambda D: amsbq.Empirical(np.random.default_rng(0).normal(size=(60, D))),
}


def random_rate(D, seed, measure="uniform", kind="mi", L=2, slanted=True):
    rng = np.random.default_rng(seed)
    pi = MEASURES[measure](D)
    terms = [amsbq.Term(random_B(rng, L), amsbq.RBF(rng.uniform(0.08, 0.4, size=D) * pi.width)) for _ in range(2)]
    n = rng.integers(1, 15 * D)
    s, X = rng.integers(L, size=n), pi.sample(n, rng)
    posterior = amsbq.MultiSourceGP(terms, pi, noise=1e-6).condition(s, X, np.zeros(n))
    frequency = rng.uniform(1, 6)
    varying = CostFunction(pi, lambda x: 1.2 + np.sin(frequency * (x[0] - pi.median[0]) / pi.width[0]))
    costs = [varying if slanted else ConstantCost(pi, 1.0), *[ConstantCost(pi, rng.uniform(0.02, 1))] * (L - 1)]
    return Rate(posterior.batch, by_option(costs), kind), pi


def grid(measure, n):
    u = np.stack(np.meshgrid(*[np.linspace(low, high, n) for low, high in measure.reach], indexing="ij"), axis=-1)
    low, high = measure.bounds.T
    return np.clip(measure.median + u.reshape(-1, measure.dim) @ measure.axes.T, low, high)


@pytest.mark.parametrize(("D", "points", "cases"), [(1, 2001, 100), (2, 101, 40)])
def test_it_finds_the_global_maximum(D, points, cases):
    found = []
    for seed in range(cases):
        rate, measure = random_rate(D, seed, kind=("mi", "ivr")[seed % 2])
        best = max(rate.values([Option(source)], grid(measure, points)).max() for source in range(2))
        choice = Search(measure, BOTH, np.random.default_rng(seed)).best(rate)
        assert choice.rate == pytest.approx(rate.values([Option(choice.source)], choice.x[None])[0, 0], rel=1e-9)
        found.append(choice.rate >= (1 - 1e-3) * best)
    assert np.mean(found) >= 0.99


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", ["mi", "ivr", "ip", "nv"])
def test_every_measure_and_kind(measure, kind):
    """Samples that are far apart make many sharp peaks: there it comes close."""
    for seed in range(5):
        rate, pi = random_rate(1, seed, measure, kind)
        best = max(rate.values([Option(source)], grid(pi, 2001)).max() for source in range(2))
        choice = Search(pi, BOTH, np.random.default_rng(seed)).best(rate)
        assert choice.rate >= best - 2e-3 * abs(best)
        pi.check_points(choice.x[None])


def test_it_keeps_to_the_bulk_of_the_measure():
    for name, make in MEASURES.items():
        measure = make(2)
        X = measure.sample(4000, 0)
        choice = Search(measure, BOTH, np.random.default_rng(0)).best(random_rate(2, 3, name)[0])
        u = np.linalg.solve(measure.axes, (np.append(X, [choice.x], axis=0) - measure.median).T).T
        assert (u[-1] >= measure.reach[:, 0] - 1e-6).all()
        assert (u[-1] <= measure.reach[:, 1] + 1e-6).all()
        inside = ((u[:-1] >= measure.reach[:, 0]) & (u[:-1] <= measure.reach[:, 1])).all(axis=1)
        assert inside.mean() > 0.99


def test_units_do_not_matter():
    pi, other = amsbq.Uniform([0, 0], 1.0), amsbq.Uniform([-8, 1024], [24, 1026])
    X = pi.sample(12, 0)
    choices = []
    for measure in (pi, other):
        term = amsbq.Term(np.array([[1.0, 0.8], [0.8, 1.0]]), amsbq.RBF(0.2 * measure.width))
        posterior = amsbq.MultiSourceGP([term], measure).condition(
            np.arange(12) % 2, measure.bounds[:, 0] + X * measure.width, np.zeros(12)
        )
        rate = Rate(posterior.batch, by_option([ConstantCost(measure, 1.0), ConstantCost(measure, 0.1)]))
        choice = Search(measure, BOTH, np.random.default_rng(0)).best(rate)
        choices.append((choice.source, (choice.x - measure.bounds[:, 0]) / measure.width))
    assert choices[0][0] == choices[1][0]
    np.testing.assert_allclose(choices[0][1], choices[1][1], atol=1e-4)


def test_only_what_can_be_paid():
    rate, measure = random_rate(1, 3)
    cheapest = min(rate.costs[Option(0)].expected(grid(measure, 4001)).min(), rate.costs[Option(1)].cost)
    for budget in (1.05 * cheapest, 0.4, 1.0):
        choice = Search(measure, BOTH, np.random.default_rng(0), budget + 3.0, 3.0).best(rate)
        if choice is not None:
            assert rate.costs[choice.option].expected(choice.x[None])[0] <= budget * (1 + 1e-12)
    assert Search(measure, BOTH, np.random.default_rng(0), 0.5 * cheapest).best(rate) is None


def test_what_is_avoided_is_not_chosen():
    rate, measure = random_rate(1, 5)
    first = Search(measure, BOTH, np.random.default_rng(0)).best(rate)
    second = Search(measure, BOTH, np.random.default_rng(0), avoided=[(first.source, first.x)]).best(rate)
    assert second.source != first.source or abs(second.x - first.x) > 0.05
    assert second.rate <= first.rate


@pytest.mark.parametrize("seed", range(6))
def test_sets_are_no_worse_than_greedy_ones(seed):
    rate, measure = random_rate(1, seed, slanted=seed % 2 == 0)
    search = Search(measure, BOTH, np.random.default_rng(0))
    greedy = search._greedy(rate, 4)
    chosen = Search(measure, BOTH, np.random.default_rng(0)).best_set(rate, 4)
    options, X = [c.option for c in chosen], np.array([c.x for c in chosen])
    assert len(chosen) == 4
    assert chosen[0].rate == pytest.approx(rate.joint(options, X), rel=1e-9)
    assert rate.joint(options, X) >= greedy.rate


@pytest.mark.parametrize("seed", range(4))
def test_pairs_are_the_best_there_are(seed):
    """Against all pairs of sources on a grid of pairs of locations."""
    rate, measure = random_rate(1, seed)
    points = grid(measure, 31)
    best = max(
        rate.joint([Option(source) for source in sources], np.array([points[i], points[j]]))
        for sources in itertools.combinations_with_replacement(range(2), 2)
        for i, j in itertools.product(range(31), repeat=2)
        if sources[0] != sources[1] or i < j
    )
    chosen = Search(measure, BOTH, np.random.default_rng(seed)).best_set(rate, 2)
    assert chosen[0].rate >= 0.995 * best


def test_a_set_that_cannot_be_paid_is_smaller():
    rate, measure = random_rate(1, 2, slanted=False)
    costs = [cost.cost for cost in rate.costs.values()]
    chosen = Search(measure, BOTH, np.random.default_rng(0), 3.5 * min(costs)).best_set(rate, 10)
    assert 0 < len(chosen) <= 3
    assert sum(costs[c.source] for c in chosen) <= 3.5 * min(costs)


def test_of_two_perfect_steps_the_cheaper():
    gp = amsbq.MultiSourceGP([amsbq.Term(np.ones((2, 2)), amsbq.Constant())], amsbq.Uniform(0, 1))
    rate = Rate(
        gp.condition([], [], []).batch, by_option([ConstantCost(gp.measure, 5.0), ConstantCost(gp.measure, 2.0)])
    )
    choice = Search(gp.measure, BOTH, np.random.default_rng(0)).best(rate)
    assert (choice.source, choice.rate) == (1, np.inf)


def test_of_given_points_the_best_is_chosen_as_it_is():
    rate, measure = random_rate(2, 3)
    points = measure.sobol(5, 3)
    choice = Search(measure, BOTH, np.random.default_rng(0)).best(rate, points)
    values = rate.values([Option(0), Option(1)], points)
    source, i = np.unravel_index(values.argmax(), values.shape)
    assert (choice.source, choice.rate) == (source, values.max())
    np.testing.assert_array_equal(choice.x, points[i])
