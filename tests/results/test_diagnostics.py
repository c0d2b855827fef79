"""Findings say what is the matter with a run."""

import re
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.execution.revisions import exclude
from amsbq.results import findings as checks
from amsbq.results.refits import SourceWorth
from amsbq.results.result import furthest, result_of
from amsbq.visualization import curves


def fine(x):
    return float(np.sin(5 * x[0]) + x[-1])


def coarse(x):
    return float(np.sin(5 * x[0]) + 0.2)


def findings(result):
    return {(finding.level, finding.about) for finding in result.diagnose()}


def test_findings_of_an_honest_run():
    result = amsbq.integrate([fine, amsbq.Source(coarse, cost=0.1)], [(0, 1), (0, 1)], budget=8, progress=False)
    levels = {level for level, _ in findings(result)}
    assert "warning" not in levels
    assert {("good", "hyperparameters"), ("good", "worth"), ("good", "fit")} <= findings(result)
    outlook = next(finding for finding in result.diagnose() if finding.about == "outlook")
    cost, std = curves.forecast(result)[-1]  # the end of the line in the picture
    assert f"a standard deviation of {std:.2g} at a total cost of {cost:.4g}" in outlook.text
    half = next(cost for cost, std in curves.forecast(result) if std <= result.std / 2)
    assert f"half of the current value is expected at {half:.4g}" in outlook.text


def test_findings_print_as_lines():
    result = amsbq.integrate(fine, [(0, 1)], budget=3, progress=False)
    found = result.diagnose()
    assert str(found).splitlines() == [f"{finding.level:8} {finding}" for finding in found]
    assert [finding.level for finding in found] == sorted(
        (f.level for f in found), key=("warning", "note", "good").index
    )


def test_nothing_is_interpolated_where_a_source_always_fails():
    it = amsbq.Integrator([amsbq.Source(fine), amsbq.Source(name="nothing", cost=0.1)], [(0, 1)], budget=4, model="icm")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the source is retired
        while (query := it.ask()) is not None:
            it.fail(query, "it diverged") if query.source else it.tell(query, fine(query.x))
    [failures] = [finding for finding in it.result().diagnose() if finding.about == "failures"]
    assert "of nothing, which was retired" in failures.text
    assert failures.advice == "Fix the source."


def peaked(x):
    return 1 + 0.02 * x[1] + 6 * np.exp(-(((x[0] - 0.8) / 0.03) ** 2)) * (0.5 + x[1])


@pytest.mark.parametrize("hits", [0, 1, 2])
def test_a_single_value_that_all_rests_on_is_named(hits):
    it = amsbq.Integrator([amsbq.Source(name="fine")], {"a": (0, 1), "b": (0, 1)}, initial=[])
    X = [[0.8, 0.5], *([u, v] for u in (0.1, 0.3, 0.5) for v in (0.2, 0.9))]
    X += [[0.8, 0.9], [0.2, 0.2], [0.4, 0.4], [0.6, 0.6], [0.2, 0.6]] if hits == 2 else []
    for x in X if hits else X[1:]:
        it.observe(0, x, peaked(x))
    found = [finding for finding in it.result().diagnose() if finding.about == "few that vary"]
    texts = [
        "one of the 7 values of fine, 7.01 at a = 0.8, b = 0.5, differs greatly from the others",
        "2 of the 12 values of fine, such as 9.418 at a = 0.8, b = 0.9, differ greatly from the others",
    ]
    assert [finding.level for finding in found] == ["warning"] * bool(hits)
    assert all(finding.text.startswith(texts[hits - 1]) for finding in found)


def test_findings_name_what_is_wrong():
    def fails(x):
        if x[0] > 0.5:
            raise RuntimeError("diverged")
        return coarse(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the source is retired
        result = amsbq.integrate(
            [fine, amsbq.Source(fails, cost=0.1)], [(0, 1)], budget=3, progress=False, model="icm", max_evaluations=14
        )
    failures = next(finding for finding in result.diagnose() if finding.about == "failures")
    assert failures.level == "warning"
    assert "diverged" in failures.text
    assert ("note", "hyperparameters") in findings(result)  # only the most probable ones


def test_a_value_that_the_user_excluded_is_no_failure(tmp_path):
    path = tmp_path / "run.jsonl"
    amsbq.integrate(lambda x: float(np.sin(3 * x[0])), amsbq.Uniform(0, 1), budget=6, seed=0, journal=path)
    exclude(path, 3, "did not converge")
    result = amsbq.read_result(path)
    assert "excluded by the user" in result.evaluations[3].reason
    assert "failures" not in {finding.about for finding in result.diagnose()}


def test_few_evaluations_are_said_to_be_few():
    it = amsbq.Integrator([fine, amsbq.Source(coarse, cost=0.1)], [(0, 1)], model="icm", initial=[])
    for x in np.linspace(0, 1, 12):
        it.observe(1, [x], coarse([x]))
    it.observe(0, [0.3], fine([0.3]))
    with pytest.warns(UserWarning, match="too few observations"):
        result = result_of(it, "budget")
    few = next(finding for finding in result.diagnose() if finding.about == "few evaluations")
    assert few.level == "warning"
    assert "has only one evaluation" in few.text
    assert "4 more evaluations would show whether it is right, for a cost of about 4." in few.advice


@pytest.mark.parametrize(("n", "level"), [(3, "warning"), (4, "note"), (5, None)])
def test_three_values_fit_any_relation(n, level):
    it = amsbq.Integrator([fine, amsbq.Source(coarse, cost=0.1)], [(0, 1)], initial=[])
    for x in np.linspace(0, 1, 12):
        it.observe(1, [x], coarse([x]))
    for x in np.linspace(0.1, 0.9, n):
        it.observe(0, [x], fine([x]))
    levels = [f.level for f in result_of(it, "").diagnose() if f.about == "few evaluations"]
    assert levels == ([] if level is None else [level])


def test_answers_with_and_without_a_source_that_disagree_are_reported():
    """The secondary source is right where the primary one was evaluated, and wrong elsewhere: in a gap."""

    def primary(x):
        return float(np.sin(3 * x[0]))

    def misleading(x):
        return primary(x) + 2 * float(np.exp(-(((x[0] - 0.5) / 0.12) ** 2)))

    answers = []
    for secondary in (misleading, primary):
        it = amsbq.Integrator([amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)], [(0, 1)], initial=[])
        for x in (0.02, 0.1, 0.2, 0.8, 0.9, 0.99):
            it.observe(0, [x], primary([x]))
        for x in np.linspace(0, 1, 25):
            it.observe(1, [x], secondary([x]))
        answers.append([f for f in result_of(it, "").diagnose() if "with coarse" in f.text])
    [finding], none = answers
    assert (finding.level, finding.about) == ("warning", "disagreement")
    assert "The most informative evaluation for its cost is" in finding.advice
    assert none == []


def test_a_useless_source_counts_little_and_its_cost_is_named():
    initial = [(0, [x]) for x in (0.1, 0.5, 0.9)] + [(1, [x]) for x in (0.1, 0.3, 0.5, 0.7, 0.9)]
    sources = [fine, amsbq.Source(lambda x: float(x[0] < 0.4), cost=0.5)]
    result = amsbq.integrate(sources, [(0, 1)], budget=12, progress=False, initial=initial)
    [relation] = [finding for finding in result.diagnose() if finding.about == "relation"]
    assert relation.level == "note"
    assert "are no better with source 1: " in relation.text
    spent = sum(e.cost for e in result.evaluations if e.source == 1)
    assert relation.advice.startswith(f"It took {spent:.3g} of the cost")


def test_uneven_functions_are_noticed_and_even_ones_are_not():
    def chirp(x):
        return np.sin(30 * x**3) + x

    def even(x):
        return np.sin(12 * x) + x

    found = []
    for f in (chirp, even):
        it = amsbq.Integrator([amsbq.Source(noise=1e-6)], [(0, 1)], model="icm", initial=[])
        for x in np.random.default_rng(3).uniform(size=40):
            it.observe(0, [x], float(f(x)))
        found.append(("warning", "stationarity") in findings(result_of(it, "budget")))
    assert found == [True, False]


def test_a_run_without_a_primary_value_is_warned_of():
    def broken(x):
        raise RuntimeError("no licence")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = amsbq.integrate(
            [amsbq.Source(broken), amsbq.Source(coarse, cost=0.1)], [(0, 1)], budget=3, progress=False, model="icm"
        )
    assert {("warning", "failures"), ("warning", "few evaluations")} <= findings(result)


def test_hyperparameters_of_ones_own_are_called_so():
    gp = amsbq.MultiSourceGP([amsbq.Term(1.0, amsbq.RBF(0.3))], amsbq.Uniform(0, 1))
    result = amsbq.integrate(fine, amsbq.Uniform(0, 1), budget=4, model=gp, progress=False)
    said = next(finding for finding in result.diagnose() if finding.about == "hyperparameters")
    assert "given, not learned" in said.text


@pytest.mark.parametrize("unit", [1e-200, 1e155])
def test_units_do_not_matter_to_what_is_said_and_shown(unit):
    result = amsbq.integrate(lambda x: unit * fine(x), [(0, 1)], budget=9, model="icm", progress=False)
    plain = amsbq.integrate(fine, [(0, 1)], budget=9, model="icm", progress=False)
    assert {(f.level, f.about) for f in result.diagnose()} == findings(plain)
    t = curves.grid(result, 0)
    np.testing.assert_allclose(
        curves.effects(result, 0, t)[0].std / unit, curves.effects(plain, 0, t)[0].std, rtol=1e-3
    )
    assert len(result.estimate.summary()) < 100


def test_an_error_bar_that_rose_names_the_evaluation_and_why():
    x = [0.1, 0.9, 0.5, 0.3, 0.7, 0.2, 0.8, 0.6]
    it = amsbq.Integrator(lambda x: 0.0, [(0, 1)], initial=[(0, [each]) for each in x], budget=20, model="ar")
    for k, each in enumerate(x):
        query = it.ask()
        assert query.x[0] == each
        it.tell(query, 1 + 0.2 * each + (1.0 if k == len(x) - 1 else 0.0))
    before, after = it.evaluations[-2].std, it.evaluations[-1].std
    assert after > 2 * before
    (found,) = [finding for finding in it.result().diagnose() if finding.about == "rise"]
    assert f"rose from {before:.2g} to {after:.2g} with evaluation 8" in found.text
    assert "surprise" in found.text


def test_an_error_bar_that_fell_all_the_way_has_not_risen():
    it = amsbq.Integrator(lambda x: 0.0, [(0, 1)], budget=6)
    while (query := it.ask()) is not None:
        it.tell(query, float(np.sin(3 * query.x[0])))
    stds = [e.std for e in it.evaluations]
    assert stds[-1] <= 1.05 * min(stds)
    assert not [finding for finding in it.result().diagnose() if finding.about == "rise"]


@pytest.mark.filterwarnings("ignore:all .* observations of")
def test_a_constant_source_is_said_to_be_constant():
    it = amsbq.Integrator([amsbq.Source(name="flat")], amsbq.Uniform(0, 1), seed=0)
    for x in np.linspace(0, 1, 5):
        it.observe(0, [x], 3.0)
    [finding] = [finding for finding in it.result().diagnose() if finding.about == "constant"]
    assert finding.level == "warning"
    assert "all 5 values of flat are 3" in finding.text
    it.observe(0, [0.5], 4.0, 1.0)
    assert "constant" not in {finding.about for finding in it.result().diagnose()}


@pytest.mark.filterwarnings("ignore:all .* observations of")
def test_the_more_values_are_equal_the_narrower_the_guess():
    stds = [amsbq.estimate([0] * n, np.linspace(0, 1, n)[:, None], [3.0] * n, (0, 1)).std for n in (2, 4, 8)]
    assert stds[0] > 2 * stds[1] > 4 * stds[2] > 0


@pytest.mark.filterwarnings("ignore:.*all .* observations of")
def test_an_output_that_never_varied_is_not_waited_for():
    result = amsbq.integrate(
        lambda x: [float(np.sin(3 * x[0])), 7.0], (0, 1), outputs=["a", "b"], budget=30, abs_tol=0.02, progress=False
    )
    assert result.stopped == "tolerance"
    assert result["b"].std > 0.02
    [finding] = [finding for finding in result["b"].diagnose() if finding.about == "constant"]
    assert finding.level == "warning"


def jumping(jump, after=3, n=8):
    it = amsbq.Integrator([amsbq.Source(name="restless")], amsbq.Uniform(0, 1), budget=n, seed=0)
    while (query := it.ask()) is not None:
        it.tell(query, float(np.sin(3 * query.x[0]) + (jump if len(it.evaluations) >= after else 0)))
    return [finding for finding in it.result().diagnose() if finding.about == "order"]


@pytest.mark.filterwarnings("ignore")
def test_values_that_depend_on_when_a_source_is_called_are_noticed():
    [finding] = jumping(1000)
    assert finding.level == "warning"
    assert "from its evaluation 4 onwards are above the earlier ones, by at least 99" in finding.text
    assert "Evaluate it again at x0 = " in finding.advice
    assert not jumping(0)
    assert not jumping(3)
    assert not jumping(1000, after=7)  # one value is an outlier, not a jump


def worth_of(gain):
    it = amsbq.Integrator([amsbq.Source(name="fine"), amsbq.Source(cost=0.1, name="simple")], (0, 1), seed=0)
    for x in np.linspace(0, 1, 7):
        it.observe(0, [x], float(np.sin(3 * x)))
        it.observe(1, [x], float(np.sin(3 * x) + 0.1 * x))
    found = SourceWorth(1.0, 0.1, 1.0, it.estimate(), gain, 1, True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "source_worths", lambda it: {1: found})
        [finding] = checks.diagnose(it, it.estimate(), ["x0"], ["worth"])
    return finding.text


def test_words_on_what_a_source_was_worth_follow_from_the_numbers():
    assert worth_of(2.0).startswith("simple paid off:")
    assert "2 times as large" in worth_of(2.0)
    assert worth_of(1.99).startswith("simple seems to have helped:")
    assert "times as large" in worth_of(1.5)
    assert worth_of(1.25).startswith("simple seems to have helped:")
    assert worth_of(1.24).startswith("simple made little difference:")
    assert worth_of(1.01).startswith("simple made little difference:")
    assert worth_of(1.0).startswith("simple did not pay off:")


def fit_of(surprises, n, size=2.1):
    z = np.where(np.arange(n) < surprises, size, 0.8)
    left = SimpleNamespace(of=lambda source: z)
    it = amsbq.Integrator([amsbq.Source(name="fine")], (0, 1), seed=0)
    for x in np.linspace(0, 1, 4):
        it.observe(0, [x], float(np.sin(3 * x)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "residuals", lambda it: left)
        [finding] = checks.diagnose(it, it.estimate(), ["x0"], ["fit"])
    return finding


def test_a_fit_is_good_if_surprises_are_as_many_as_by_chance():
    assert fit_of(2, 15).level == "good"  # 2 and more of 15: 15 %
    assert fit_of(3, 15).level == "note"  # 3 %
    assert fit_of(13, 100).level == "note"
    assert "13 of them by more than two" in fit_of(13, 100).text
    assert fit_of(5, 100).level == "good"
    assert "(4.6 expected)" in fit_of(5, 100).text
    assert fit_of(7, 8).level == "warning"  # their root mean square is beyond 1.6
    assert fit_of(3, 8).level == "note"


def test_what_rests_on_few_values_is_not_called_good():
    def f(x):
        return float(np.sin(5 * x[0]))

    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(cost=0.1)], amsbq.Uniform(0, 1), seed=0)
    for x in np.linspace(0, 1, 12):
        it.observe(1, [x], 1.1 * f([x]) + 0.1)
    for n, x in enumerate([0.1, 0.9, 0.5, 0.3, 0.7, 0.2], 1):
        it.observe(0, [x], f([x]))
        if n < 4:
            continue
        [finding] = [finding for finding in it.result().diagnose() if finding.about == "relation"]
        assert finding.level == ("good" if n > 5 else "note")
        assert ("may change with the next" in finding.advice) == (n <= 5)


@pytest.mark.filterwarnings("ignore:there is no observation")
def test_nothing_is_said_of_what_a_source_without_values_tells():
    it = amsbq.Integrator([amsbq.Source(), amsbq.Source(name="lo", cost=0.1)], amsbq.Uniform(0, 1), seed=0)
    for x in np.linspace(0, 1, 6):
        it.observe(0, [x], float(np.sin(3 * x)))
    assert "relation" not in {finding.about for finding in it.result().diagnose()}
    measured = amsbq.Integrator([amsbq.Source(cost="measured")] * 2, amsbq.Uniform(0, 1), seed=0, budget=5)
    _, second = measured.ask(), measured.ask()
    measured.tell(second, 0.3, cost=0.1)
    said = {finding.about: finding for finding in measured.result().diagnose()}
    assert "hyperparameters" not in said
    assert "cost" not in said["few evaluations"].advice


def test_all_values_of_a_discrete_input_are_enough():
    it = amsbq.Integrator([amsbq.Source()], [stats.randint(0, 3)], seed=0)
    for x in range(3):
        it.observe(0, [x], float(x**2))
    advice = [finding.advice for finding in it.result().diagnose() if finding.about == "few evaluations"]
    assert not any(advice)


def test_an_error_bar_that_rose_is_the_present_one():
    it = amsbq.Integrator([amsbq.Source()], amsbq.Uniform(0, 1), seed=0)
    for _ in range(6):
        query = it.ask()
        it.tell(query, float(np.sin(3 * query.x[0])))
    query = it.ask()
    it.tell(query, 3 + float(np.sin(3 * query.x[0])))
    for x in np.linspace(0.03, 0.97, 6):
        it.observe(0, [x], float(np.sin(3 * x)))
    [finding] = [finding for finding in it.result().diagnose() if finding.about == "rise"]
    assert f"is {it.estimate().std:.2g} now" in finding.text


def test_error_bars_of_two_values_do_not_count_as_narrow():
    """They rest on what is assumed, and happen to be narrow where both values are about the same."""
    it = amsbq.Integrator(lambda x: 0.0, [(0, 1)], initial=[(0, [each]) for each in (0.2, 0.8, 0.5)], budget=20)
    for y in (1.0, 1.0001, 3.0):
        it.tell(it.ask(), y)
    assert it.evaluations[1].std < 0.1 * it.evaluations[2].std
    assert not [finding for finding in it.result().diagnose() if finding.about == "rise"]


@pytest.mark.parametrize("seed", range(3))
def test_a_source_that_does_not_correlate_has_not_paid(seed):
    measure = amsbq.as_measure([(1, 4), (1, 2), (2.2, 3.5)])
    it = amsbq.Integrator([amsbq.Source(name="fine"), amsbq.Source(cost=0.05, name="junk")], measure, seed=seed)
    for x in measure.sobol(10, seed):
        it.observe(0, x, float(60 * x[1] * (1 - np.exp(-x[0] / x[1]))))
    for x in measure.sobol(32, 10 + seed):
        it.observe(1, x, float(np.sin(7 * x[0] * x[1]) + np.cos(13 * x[2] + x[0])))
    said = str(it.result().diagnose())
    assert "junk paid" not in said


def test_the_outlook_of_another_target_is_about_that_target():
    result = amsbq.integrate(fine, [(0, 1), (0, 1)], budget=8, target=amsbq.Exceedance(1.0), progress=False)
    outlook = next(finding for finding in result.diagnose() if finding.about == "outlook")
    ahead = curves.forecast(result)
    assert f"a standard deviation of the target of {ahead[-1][1]:.2g} at" in outlook.text
    assert f"(now {ahead[0][1]:.2g} at 8)" in outlook.text
    assert "integral" not in outlook.text


@pytest.mark.filterwarnings("ignore:.*scatter")  # the last of the principal components vary fast
def test_findings_on_one_of_many_outputs_are_in_terms_of_its_error_bar():
    z = np.linspace(0, 1, 25)
    sources = [lambda x: np.exp(-(((z - x[0]) / 0.1) ** 2)), lambda x: 0.9 * np.exp(-(((z - x[0]) / 0.12) ** 2))]
    result = amsbq.integrate([sources[0], amsbq.Source(sources[1], cost=0.05)], (0.3, 0.7), budget=8, outputs=25)
    text = str(result.diagnose())
    assert f"(now {furthest(result).std:.2g} at 8)" in text
    assert f"(it is {furthest(result).std:.2g})" in text


def test_sources_that_return_logarithms_have_a_correlation():
    def log_likelihood(x):
        return float(-5 * np.log1p(((x[0] - 0.3) / 0.2) ** 2) - 5)

    sources = [log_likelihood, amsbq.Source(lambda x: log_likelihood(x) + 0.1, cost=0.1)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        result = amsbq.integrate(sources, stats.norm(), budget=8, log=True, progress=False)
        relation = next(finding for finding in result.diagnose() if finding.about == "relation")
    found, low, high = map(float, re.search(r"is (\S+) \(95 %: (\S+) to (\S+)\)", relation.text).groups())
    assert 0.95 < low <= found <= high == 1
