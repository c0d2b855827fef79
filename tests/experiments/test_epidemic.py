"""The epidemic: simulators against closed forms and the master equation, and the master equation by brute force."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import roots_genlaguerre

from amsbq.baselines import percentile
from amsbq.experiments import epidemic, master_equation
from amsbq.experiments.epidemic_models import INFECTION_RATE, PARAMETERS, seir, trajectories

UPPER = epidemic.SETUP.upper


S0, I0, N = 99.0, 1.0, 100.0


def sir_peak(a):
    """The maximum of I in the SIR model in closed form."""
    return I0 + S0 - N / a * (1 + np.log(a * S0 / N)) if a * S0 / N > 1 else I0


def sir_maximum(a):
    """The maximum of I in the SIR model, and its time by quadrature over S."""
    if a * S0 / N <= 1:
        return I0, 0.0

    def time_per_susceptible(S):  # dt = -dS / (a S I / N), and I is a function of S
        return N / (a * S * (I0 + S0 - S + N / a * np.log(S / S0)))

    when, _ = integrate.quad(time_per_susceptible, N / a, S0, epsabs=1e-12, epsrel=1e-12, limit=200)
    return sir_peak(a), when


@pytest.mark.parametrize("a", [1.5, 4.0, 30.0])
def test_the_maximum_of_the_sir_model_in_closed_form(a):
    peak, when = sir_maximum(a)
    assert epidemic.EquationSource("peak")(np.array([a])) == pytest.approx(peak, rel=1e-7)
    assert epidemic.EquationSource("time")(np.array([a])) == pytest.approx(when, rel=1e-6)


def test_an_epidemic_that_cannot_spread_has_its_maximum_at_once():
    assert epidemic.EquationSource("peak")(np.array([1.0])) == 1
    assert epidemic.EquationSource("time")(np.array([1.0])) == 0


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
    # comes 1/(γ + 1) later; otherwise the maximum was at the start
    a, gamma = 3.0, 10.0
    _, time, outbreak = master_equation.expectations(a, people=2, incubation_rate=gamma)
    assert outbreak == pytest.approx(a / 2 / (a / 2 + 1), rel=1e-13)
    assert time == pytest.approx(gamma / (gamma + 1) * (1 / (a / 2 + 1) + 1 / (gamma + 1)), rel=1e-13)


def test_gillespie_samples_the_master_equation():
    peak, when, outbreak = seir(4.0, 40_000, np.random.default_rng(3), people=20)
    exact_peak, exact_time, exact_outbreak = master_equation.expectations(4.0, people=20)
    n = outbreak.sum()
    assert abs(peak[outbreak].mean() - exact_peak) < 4.5 * peak[outbreak].std() / np.sqrt(n)
    assert abs(when[outbreak].mean() - exact_time) < 4.5 * when[outbreak].std() / np.sqrt(n)
    assert abs(outbreak.mean() - exact_outbreak) < 4.5 * np.sqrt(exact_outbreak * (1 - exact_outbreak) / len(outbreak))


def test_trajectories_have_the_same_distribution():
    times = np.linspace(0, 12, 4000)
    found = trajectories(10.0, 300, times, np.random.default_rng(4), PARAMETERS.incubation_rate)
    assert (found.sum(axis=2) == PARAMETERS.people).all()
    spread = found[:, -1, 0] < PARAMETERS.people - 1
    peaks = found[spread, :, 2].max(axis=1)
    simulated, _, outbreak = seir(10.0, 5000, np.random.default_rng(5))
    assert stats.ks_2samp(peaks, simulated[outbreak]).pvalue > 1e-4


def test_the_primary_source_is_a_function_with_a_variance():
    source = epidemic.StochasticSource("peak", simulations=500)
    x = np.array([7.3])
    first, again = source(x), source(x)
    assert (first.value, first.variance) == (again.value, again.variance)
    others = [epidemic.StochasticSource("peak", simulations=500, seed=s)(x).value for s in range(1, 60)]
    assert np.var(others, ddof=1) == pytest.approx(first.variance, rel=0.6)


def test_both_formulations_are_the_same_integral():
    weighted = epidemic.WeightedSource(epidemic.EquationSource("peak"))
    grid = np.linspace(1, UPPER, 201)
    average = integrate.simpson([weighted(np.array([a])).value for a in grid], x=grid) / (UPPER - 1)
    natural = integrate.quad(lambda a: INFECTION_RATE.pdf(a) * sir_peak(a), 1, UPPER, limit=200)[0]
    assert average == pytest.approx(natural, rel=1e-5)


@pytest.mark.slow
def test_the_true_values_of_the_epidemic():
    """A Gauss-Laguerre rule, instead of the interpolation by which they were computed."""
    nodes, weights = roots_genlaguerre(9, 4)
    weights /= weights.sum()
    some = weights > 1e-5  # those of the largest nodes do not matter
    values = np.array([master_equation.expectations(1 + 4 * node)[:2] for node in nodes[some]])
    weights = weights[some]
    assert weights @ values[:, 0] == pytest.approx(epidemic.TRUTH["peak", "gamma"], rel=5e-5)
    assert weights @ values[:, 1] == pytest.approx(epidemic.TRUTH["time", "gamma"], rel=3e-4)


def test_the_bias_of_the_differential_equations():
    # by closed forms at percentiles of the distribution, instead of adaptive quadrature over solutions
    for quantity, column in (("peak", 0), ("time", 1)):
        secondary = percentile(lambda x, column=column: sir_maximum(x[0])[column], INFECTION_RATE, budget=700)
        expected = secondary.mean / epidemic.TRUTH[quantity, "gamma"] - 1
        assert epidemic.relative_bias(quantity) == pytest.approx(expected, rel=2e-3)
