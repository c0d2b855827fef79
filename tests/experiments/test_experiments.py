"""The paper's experiments: their sources against independent calculations, and the command that reproduces them."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import roots_genlaguerre

from amsbq.baselines.monte_carlo import percentile
from amsbq.cli.main import main
from amsbq.experiments import epidemic, forrester, gaussians, intuition, master_equation, wiggly
from amsbq.experiments.study import cost_of_accuracy, errors_at

GRID = np.linspace(0, 1, 1001)


def costs_on_grid(costs):
    return [np.array([cost(np.array([x])) for x in GRID]) for cost in costs]


def test_the_integrals_of_both_forrester_pairs():
    for module in (forrester, wiggly):
        exact, _ = integrate.quad(module.primary, 0, 1, epsabs=1e-13, epsrel=1e-13, limit=400)
        assert module.true_integral() == pytest.approx(exact, rel=1e-12)


def test_costs_of_the_demonstration_are_what_the_paper_says():
    c1, c2 = costs_on_grid(forrester.COSTS)
    for c in (c1, c2):
        assert c.min() > 0
        assert c.max() <= 1
    assert c2[0] == pytest.approx(c1[0], rel=0.01)
    assert c1[-1] / c2[-1] == pytest.approx(100, rel=0.01)
    assert np.all(np.diff(c2) < 0)


def test_costs_of_the_wigglified_pair_have_a_minimum():
    c1, c2 = costs_on_grid(wiggly.COSTS)
    for c in (c1, c2):
        assert c.min() > 0
        assert c.max() <= 1
        assert 0.2 < GRID[c.argmin()] < 0.8
    assert c2[0] == pytest.approx(c1[0], rel=0.05)
    assert wiggly.cheapest() == pytest.approx(GRID[c2.argmin()], abs=1e-3)


@pytest.mark.parametrize("cost", [*forrester.COSTS, *wiggly.COSTS])
def test_the_gradient_of_costs(cost):
    for x in (0.05, 0.3, 0.77):
        ahead, behind = cost(np.array([x + 1e-6])), cost(np.array([x - 1e-6]))
        assert cost.gradient(np.array([x]))[0] == pytest.approx((ahead - behind) / 2e-6, rel=1e-6, abs=1e-8)


def test_paper_figure_2():
    assert intuition.rho2(np.array([np.pi / 20])) == pytest.approx(0.95)


@pytest.mark.parametrize("a", [1.5, 4.0, 30.0])
def test_the_maximum_of_the_sir_model_in_closed_form(a):
    S0, I0, N = 99.0, 1.0, 100.0
    peak = I0 + S0 - N / a * (1 + np.log(a * S0 / N))
    assert epidemic.Deterministic("peak")(np.array([a])) == pytest.approx(peak, rel=1e-7)

    def time_per_susceptible(S):  # dt = -dS / (a S I / N), and I is a function of S
        return N / (a * S * (I0 + S0 - S + N / a * np.log(S / S0)))

    when, _ = integrate.quad(time_per_susceptible, N / a, S0, epsabs=1e-12, epsrel=1e-12, limit=200)
    assert epidemic.Deterministic("time")(np.array([a])) == pytest.approx(when, rel=1e-6)


def test_an_epidemic_that_cannot_spread_has_its_maximum_at_once():
    assert epidemic.Deterministic("peak")(np.array([1.0])) == 1
    assert epidemic.Deterministic("time")(np.array([1.0])) == 0


def brute_force(rate, people, incubation=10.0):
    """E[max I] and P(outbreak) by following every sequence of events."""
    peaks = {}

    def follow(S, E, I, most, outbreak, probability):
        if E + I == 0:
            peaks[most, outbreak] = peaks.get((most, outbreak), 0.0) + probability
            return
        rates = np.array([rate * S * I / people, incubation * E, I])
        shares = rates / rates.sum() * probability
        if rates[0]:
            follow(S - 1, E + 1, I, most, True, shares[0])
        if rates[1]:
            follow(S, E - 1, I + 1, max(most, I + 1), outbreak, shares[1])
        if rates[2]:
            follow(S, E, I - 1, most, outbreak, shares[2])

    follow(people - 1, 0, 1, 1, False, 1.0)
    outbreak = sum(p for (_, spread), p in peaks.items() if spread)
    return sum(most * p for (most, spread), p in peaks.items() if spread) / outbreak, outbreak


@pytest.mark.parametrize(("rate", "people"), [(2.0, 2), (3.0, 4), (0.7, 5)])
def test_the_master_equation_is_every_sequence_of_events(rate, people):
    peak, _, outbreak = master_equation.expectations(rate, people)
    assert (peak, outbreak) == pytest.approx(brute_force(rate, people), rel=1e-12)


def test_the_time_of_the_maximum_by_hand():
    # two people: after an infection, at 1/(a/2 + 1) on average, onset beats recovery with probability γ/(γ + 1) and
    # comes 1/(γ + 1) later; else the maximum was at the start
    a, gamma = 3.0, 10.0
    _, time, outbreak = master_equation.expectations(a, people=2, incubation=gamma)
    assert outbreak == pytest.approx(a / 2 / (a / 2 + 1), rel=1e-13)
    assert time == pytest.approx(gamma / (gamma + 1) * (1 / (a / 2 + 1) + 1 / (gamma + 1)), rel=1e-13)


def test_gillespie_samples_the_master_equation():
    peak, when, outbreak = epidemic.seir(4.0, 40_000, np.random.default_rng(3), people=20)
    exact_peak, exact_time, exact_outbreak = master_equation.expectations(4.0, people=20)
    n = outbreak.sum()
    assert abs(peak[outbreak].mean() - exact_peak) < 4.5 * peak[outbreak].std() / np.sqrt(n)
    assert abs(when[outbreak].mean() - exact_time) < 4.5 * when[outbreak].std() / np.sqrt(n)
    assert abs(outbreak.mean() - exact_outbreak) < 4.5 * np.sqrt(exact_outbreak * (1 - exact_outbreak) / len(outbreak))


def test_paths_have_the_same_distribution():
    times = np.linspace(0, 12, 4000)
    found = epidemic.paths(10.0, 300, times, np.random.default_rng(4), epidemic.INCUBATION)
    assert (found.sum(axis=2) == epidemic.PEOPLE).all()
    spread = found[:, -1, 0] < epidemic.PEOPLE - 1
    peaks = found[spread, :, 2].max(axis=1)
    simulated, _, outbreak = epidemic.seir(10.0, 5000, np.random.default_rng(5))
    assert stats.ks_2samp(peaks, simulated[outbreak]).pvalue > 1e-4


def test_the_primary_source_is_a_function_with_a_variance():
    source = epidemic.Stochastic("peak", trajectories=500)
    x = np.array([7.3])
    first, again = source(x), source(x)
    assert (first.value, first.variance) == (again.value, again.variance)
    others = [epidemic.Stochastic("peak", trajectories=500, seed=s)(x).value for s in range(1, 60)]
    assert np.var(others, ddof=1) == pytest.approx(first.variance, rel=0.6)


def test_both_formulations_are_the_same_integral():
    absorbed = epidemic.Absorbed(epidemic.Deterministic("peak"))
    grid = np.linspace(1, epidemic.UPPER, 4001)
    average = integrate.simpson([absorbed(np.array([a])).value for a in grid[::10]], x=grid[::10]) / (grid[-1] - 1)
    natural = integrate.quad(
        lambda a: epidemic.PRIOR.pdf(a) * epidemic.Deterministic("peak")(np.array([a])), 1, epidemic.UPPER, limit=200
    )[0]
    assert average == pytest.approx(natural, rel=1e-5)


@pytest.mark.slow
def test_the_true_values_of_the_epidemic():
    """The rule of Gauss and Laguerre, against the interpolation that they were found by."""
    nodes, weights = roots_genlaguerre(14, 4)
    values = np.array([master_equation.expectations(1 + 4 * node)[:2] for node in nodes if node < 40])
    weights = weights[nodes < 40] / weights.sum()
    assert weights @ values[:, 0] == pytest.approx(epidemic.TRUTH["peak", "gamma"], rel=2e-6)
    assert weights @ values[:, 1] == pytest.approx(epidemic.TRUTH["time", "gamma"], rel=3e-5)


def test_the_bias_of_the_differential_equations():
    # by a Riemann sum over percentiles of the distribution, instead of adaptive quadrature
    for quantity in epidemic.QUANTITIES:
        cheap = percentile(epidemic.Deterministic(quantity), epidemic.PRIOR, budget=2000)
        expected = cheap.mean / epidemic.TRUTH[quantity, "gamma"] - 1
        assert epidemic.bias(quantity) == pytest.approx(expected, rel=2e-3)


def test_gaussian_combinations_integrate_exactly():
    source = gaussians.combinations(1)[0]
    total = 0.0
    for mean, covariance, weight in zip(source.means, source.covariances, source.weights, strict=True):
        normal = stats.multivariate_normal(mean, covariance)
        box = [
            sign * normal.cdf([x, y])
            for (x, sx), (y, sy) in itertools.product([(3, 1), (-3, -1)], repeat=2)
            for sign in [sx * sy]
        ]
        total += weight * np.sqrt(2 * np.pi) * sum(box)  # the paper's normalisation is that of one dimension
    assert source.integral() == pytest.approx(total / 36, abs=1e-6)


def test_secondary_sources_move_away():
    first, second, third = gaussians.combinations(0)
    assert (second.means >= first.means).all()
    assert (third.means >= second.means).all()
    X = np.random.default_rng(0).uniform(-3, 3, size=(2000, 2))
    near, far = (np.corrcoef(first.values(X), other.values(X))[0, 1] for other in (second, third))
    assert near > far > 0.5


def test_errors_and_costs_of_runs():
    pandas = pytest.importorskip("pandas")
    runs = pandas.DataFrame(
        [
            {"seed": 0, "spent": 1.0, "mean": np.nan, "truth": 2.0},
            {"seed": 0, "spent": 2.0, "mean": 3.0, "truth": 2.0},
            {"seed": 0, "spent": 3.0, "mean": 2.1, "truth": 2.0},
        ]
    )
    np.testing.assert_allclose(
        errors_at(runs, np.array([0.5, 1.5, 2.0, 2.9, 3.0, 9.0]))[0], [np.nan] * 2 + [0.5, 0.5, 0.05, 0.05]
    )
    assert cost_of_accuracy(runs, 0.1) == [3.0]
    assert cost_of_accuracy(runs, 0.01) == [np.inf]


def test_reproduce_writes_tables_and_figures(tmp_path, capsys):
    assert main(["reproduce", "intuition", "cube", "--quick", "--output", str(tmp_path), "--workers", "2"]) == 0
    shown = capsys.readouterr().out
    assert "✓ one source, constant cost: all three are one policy" in shown
    assert "✗" not in shown
    written = {path.name for path in (tmp_path / "cube").iterdir()}
    assert written == {"vertices.csv", "claims.csv", "cube.png", "cube.pdf"}


@pytest.mark.slow
def test_reproduce_everything_quickly(tmp_path, capsys):
    assert main(["reproduce", "--quick", "--output", str(tmp_path)]) == 0
    for name in ("intuition", "forrester", "wiggly", "epidemic", "gaussians", "cube"):
        assert list((tmp_path / name).glob("*.pdf"))
    shown = capsys.readouterr().out
    assert "the secondary source is not asked where costs are almost identical" in shown


def test_reproduce_knows_its_experiments(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "forester", "--output", str(tmp_path)])
    assert stopped.value.code == 2
    assert "there is no experiment 'forester'; there are intuition, forrester" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
