"""The referee: intervals of ratios and shares hold what they say, and nothing is won where nothing has changed."""

import numpy as np
import pytest
from scipy import stats

from benchmarks.arena import against, resampling
from benchmarks.arena.resampling import matched, ratio, share
from benchmarks.arena.results import Results, compared, cost_to_certify, last_interval_score
from benchmarks.arena.scores import Row
from benchmarks.arena.store import Record


def by_seed(losses, first=0):
    return {first + k: float(loss) for k, loss in enumerate(losses)}


def test_a_ratio_is_the_geometric_mean_over_problems_of_ratios_of_root_mean_squares():
    problems = {
        "a": [(by_seed([1.0, 9.0]), by_seed([4.0, 16.0]))],  # √5 / √10
        "b": [(by_seed([2.0, 2.0]), by_seed([1.0, 1.0])), (by_seed([8.0, 8.0]), by_seed([1.0, 1.0]))],  # two stages
    }
    found = ratio(problems, power=0.5)
    expected = np.sqrt(np.sqrt(0.5) * np.sqrt(np.sqrt(2) * np.sqrt(8)))
    assert found.value == pytest.approx(expected)
    assert found.low < expected < found.high
    inverse = ratio({p: [(b, a) for a, b in pairs] for p, pairs in problems.items()}, power=0.5)
    assert inverse.value == pytest.approx(1 / expected)
    assert ratio({}) is None


def test_one_problem_or_one_seed_shows_nothing():
    assert ratio({"a": [(by_seed([1.0, 1.0]), by_seed([9.0, 9.0]))]}).verdict == 0
    assert ratio({p: [(by_seed([1.0]), by_seed([9.0]))] for p in "abcd"}).verdict == 0
    clear = ratio({p: [(by_seed([1.0, 1.1]), by_seed([9.0, 9.1]))] for p in "abcd"})
    assert clear.verdict == -1
    assert clear.high < 0.2


def test_losses_are_compared_on_the_same_seeds_or_on_as_many():
    ours, theirs = by_seed([1.0, 2.0, 3.0]), by_seed([5.0, 6.0], first=1)
    assert matched(ours, theirs) == ([2.0, 3.0], [5.0, 6.0])
    assert matched(ours, by_seed([7.0, 8.0], first=10)) == ([1.0, 2.0], [7.0, 8.0])


@pytest.mark.parametrize("n_problems", [2, 4, 8, 60])
@pytest.mark.parametrize("tail", ["normal", "heavy"])
def test_nothing_is_won_or_lost_beyond_chance_where_nothing_has_changed(n_problems, tail, monkeypatch):
    """Two sets of runs of the same method: at most 5 % of intervals exclude 1, up to the noise of this test."""
    monkeypatch.setattr(resampling, "N_RESAMPLED", 200)
    rng, n = np.random.default_rng(n_problems), 300 if n_problems < 20 else 60

    def errors():
        scales = np.exp(rng.normal(size=(n_problems, 1)))
        drawn = rng.normal(size=(2, n_problems, 5)) if tail == "normal" else rng.standard_t(3, size=(2, n_problems, 5))
        return scales * drawn

    wrong = 0
    for _ in range(n):
        a, b = errors() ** 2
        found = ratio({str(p): [(by_seed(a[p]), by_seed(b[p], 5))] for p in range(n_problems)}, 0.5)
        wrong += found.verdict != 0
    # with two problems, of which only halves of the development families consist, it is a little more
    assert wrong <= stats.binom.ppf(0.999, n, 0.05 if n_problems > 2 else 0.1)


def test_a_factor_is_told_from_chance():
    """All problems of a half, five seeds: a change of all errors by a factor of 1.25 is seen."""
    rng, seen = np.random.default_rng(5), 0
    for _ in range(20):
        a, b = rng.normal(size=(2, 120, 5)) ** 2
        seen += ratio({str(p): [(by_seed(1.25**2 * a[p]), by_seed(b[p], 5))] for p in range(120)}, 0.5).verdict == 1
    assert seen >= 18


def test_shares_of_independent_runs_have_the_interval_of_clopper_and_pearson():
    hits = {"a": [1, 1, 1, 0], "b": [1, 1, 0, 1], "c": [1, 0, 1, 1]}  # less alike than chance would have them
    found = share(hits)
    exact = stats.binomtest(9, 12).proportion_ci(0.95, "exact")
    assert found == pytest.approx((0.75, exact.low, exact.high))
    everything = share({"a": [1, 1, 1], "b": [1, 1, 1]})
    assert everything == pytest.approx((1.0, stats.binomtest(6, 6).proportion_ci(0.95, "exact").low, 1.0))
    assert share({}) is None


def test_shares_of_runs_that_share_their_fate_have_wider_intervals():
    """Four problems, of which one never holds: it is one of four, not five of twenty."""
    found = share({p: [float(p != "a")] * 5 for p in "abcd"})
    independent = stats.binomtest(15, 20).proportion_ci(0.95, "exact")
    assert found.value == 0.75
    assert found.low < independent.low - 0.1
    assert found.high > independent.high


def test_intervals_of_shares_hold():
    """Problems differ in how often they hold (a beta distribution with mean 0.9); five seeds each."""
    rng, held = np.random.default_rng(8), 0
    for _ in range(400):
        chances = rng.beta(4.5, 0.5, size=20)
        found = share({str(k): rng.binomial(1, chance, size=5) for k, chance in enumerate(chances)})
        held += found.low <= 0.9 <= found.high
    assert held >= 0.92 * 400


def record(problem, seed, error, stage="10", method="auto", half=0.3, fingerprint="f", seconds=1.0):
    rows = [
        Row(c, error * 10 / c, half, ((-1, 1), (-1, 1), (error * 10 / c - half, error * 10 / c + half)))
        for c in (5, 10)
    ]
    return Record(problem, method, stage, seed, 0, fingerprint, "d", seconds, 20, rows)


def some(scale=1.0, problems=("smooth/1", "smooth/3", "rough/1", "rough/3"), **options):
    rng = np.random.default_rng(1)
    return [record(p, s, scale * (0.1 + 0.02 * rng.normal()), **options) for p in problems for s in range(5)]


def test_only_the_same_problems_and_seeds_are_compared():
    ours = [*some(), record("smooth/5", 0, 9.0), record("smooth/7", 0, 9.0, fingerprint="new")]
    theirs = [*some(), record("smooth/7", 0, 1.0), record("smooth/1", 7, 9.0)]
    a, b = against.shared(ours, theirs)
    assert a.problems == b.problems == {"smooth/1", "smooth/3", "rough/1", "rough/3"}
    assert {r.seed for r in b.records} == set(range(5))
    found = compared(a, b, ["10"])
    assert found == (1.0, 1.0, 1.0)
    assert found.verdict == 0


def test_the_table_has_what_was_won_and_lost():
    ours = [r for r in some(0.5) if r.family == "smooth"] + [r for r in some(1.5) if r.family == "rough"]
    comparison = against.Comparison(Results.of(ours), Results.of(some(seconds=2.0)))
    cells = {row[1]: dict(zip(comparison.head, row, strict=True)) for row in comparison.rows}
    assert list(cells) == ["smooth", "rough", "all"]
    assert cells["smooth"]["budget 10"].startswith("0.50 [0.50, 0.50]+")
    assert cells["rough"]["budget 10"].startswith("1.50 [1.50, 1.50]-")
    # all four problems alike: √0.75 / √3^(√(4/3)), and times it
    assert cells["all"]["budget 10"].startswith("0.87 [0.46, 1.63]")
    assert cells["smooth"]["CPU"] == "0.50"
    assert cells["smooth"]["95 %"] == "100 (100)"
    assert comparison.summary().startswith("1 of 3 cells won, 1 lost")
    text = against.text_table(comparison.head, comparison.rows)
    assert len({line.index("0.50 [") for line in text.splitlines() if "0.50 [0.50" in line}) == 1
    assert "budget 3" not in text


def test_other_losses():
    ours, theirs = Results.of(some(half=0.3)), Results.of(some(half=0.6))
    assert compared(ours, theirs, ["10"], last_interval_score, 1.0).value == pytest.approx(0.5)
    assert compared(ours, theirs, ["10"], cost_to_certify(0.4), 1.0).value == pytest.approx(0.25)  # at 5; never: 20


def test_even_seeds_against_odd_ones():
    even, odd = against.halves_of_seeds(Results.of(some()))
    assert ({r.seed for r in even.records}, {r.seed for r in odd.records}) == ({0, 2, 4}, {1, 3})


def test_a_quick_look_has_the_quickest_development_problem_of_each_family():
    records = [record("smooth/4", 0, 1.0, seconds=5.0), record("smooth/6", 0, 1.0, seconds=3.0)]
    records += [record("smooth/1", 0, 1.0, seconds=0.1), record("rough/0", 0, 1.0, seconds=9.0)]
    assert sorted(against.quick_problems(Results.of(records))) == ["rough/0", "smooth/6"]
