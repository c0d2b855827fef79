"""Certificates are unbiased whatever the model is worth, and depend on nothing that was evaluated before."""

import re

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.certificates.answers import Answer, logarithm_of
from amsbq.certificates.control import ControlVariate

TRUTH, SPREAD = (np.exp(2) - 1) / 2, np.sqrt((np.exp(4) - 1) / 4 - ((np.exp(2) - 1) / 2) ** 2)


def fine(x):
    return float(np.exp(2 * x[0]))


def coarse(x):
    return float(np.exp(2 * x[0]) + 3 * np.sin(9 * x[0]))


def model(L=1, rho=0.9):
    """A Gaussian process with given hyperparameters: nothing is learned, so that hundreds of certificates are quick."""
    B = 40 * np.array([[1.0]] if L == 1 else [[1.0, rho], [rho, 1.0]])
    return amsbq.MultiSourceGP([amsbq.Term(B, amsbq.RBF([0.2]))], amsbq.Uniform(0, 1), noise=1e-6)


def wrong_run(L=1, **about):
    """A run whose values are wrong by ten standard deviations, up and down, so that its model is nonsense."""
    sources = [fine, amsbq.Source(coarse, cost=0.02)][:L]
    it = amsbq.Integrator(sources, amsbq.Uniform(0, 1), model=model(L), **about)
    for i, x in enumerate(np.linspace(0.05, 0.95, 7)):
        for source in range(L):
            it.observe(source, [x], fine([x]) + (-1) ** i * 10 * SPREAD)
    return it.result()


def z_score(values, truth):
    return (np.mean(values) - truth) / stats.sem(values)


def test_unbiased_whatever_the_model_is_worth():
    result = wrong_run()
    assert np.ptp(result.predict(0, np.linspace(0, 1, 50)[:, None])[0]) > 15 * SPREAD
    found = [amsbq.certify(result, budget=4, seed=seed) for seed in range(400)]
    assert abs(z_score([c.mean for c in found], TRUTH)) < 3
    assert np.mean([c.interval()[0] <= TRUTH <= c.interval()[1] for c in found]) > 0.9


def test_unbiased_with_secondary_sources():
    """The model believes that both sources differ by little, and is wrong by ten standard deviations."""
    result = wrong_run(2)
    found = [amsbq.certify(result, budget=5, seed=seed) for seed in range(400)]
    assert len(found[0].plan.terms) == 2
    assert abs(z_score([c.mean for c in found], TRUTH)) < 3
    assert all(c.spent <= 5 for c in found)


def test_draws_of_means_are_spread_out():
    """Errors are smaller than those of independent draws, and the interval is not narrower."""
    gp = amsbq.MultiSourceGP([amsbq.Term([[1e-6]], amsbq.RBF([9.0]))], amsbq.Uniform(0, 1), mean=3.0)
    it = amsbq.Integrator([fine], amsbq.Uniform(0, 1), model=gp)
    it.observe(0, [0.55], 3.0)
    result = it.result()
    found = {only: [amsbq.certify(result, 6, seed, primary_only=only) for seed in range(100)] for only in (True, False)}
    independent, even = ([c.mean for c in found[only]] for only in (True, False))
    assert abs(z_score(even, TRUTH)) < 3
    assert np.std(even) < 0.4 * np.std(independent)
    assert np.mean([c.std for c in found[False]]) > 0.9 * SPREAD / np.sqrt(6)
    cells = np.sort(np.floor(6 * found[False][0].plan.X[0][:, 0]))
    np.testing.assert_array_equal(cells, np.arange(6))


@pytest.mark.parametrize(
    ("target", "truth"),
    [("variance", SPREAD**2), (amsbq.Exceedance(4.0), 1 - np.log(4) / 2)],
    ids=["variance", "share"],
)
def test_variances_and_probabilities_are_unbiased(target, truth):
    result = wrong_run(target=target)
    found = [amsbq.certify(result, budget=5, seed=seed) for seed in range(200)]
    assert abs(z_score([c.mean for c in found], truth)) < 3
    assert np.mean([c.interval()[0] <= truth <= c.interval()[1] for c in found]) > 0.85


def test_quantiles_are_those_of_the_draws():
    found = [amsbq.certify(wrong_run(), 9, seed, target=amsbq.Quantile(0.5)) for seed in range(5)]
    assert all(c.interval()[0] <= np.e <= c.interval()[1] for c in found)
    assert np.isnan(found[0].std)
    assert "no unbiased estimator" in str(found[0])
    assert amsbq.certify(wrong_run(), 3, target=amsbq.Quantile(0.9)).interval()[1] == np.inf


MEASURES = {
    "uniform": amsbq.Uniform([0, 0], 1),
    "normal": amsbq.as_measure([stats.norm(), stats.norm(0, 0.5)]),
    "skewed": amsbq.as_measure([stats.gamma(2, scale=0.2), stats.uniform()]),
    "correlated": amsbq.Gaussian([0, 0], [[1, 0.5], [0.5, 1]]),
    "copula": amsbq.GaussianCopula([stats.norm(), stats.uniform()], [[1, 0.6], [0.6, 1]]),
    "discrete": amsbq.Product([stats.norm(), stats.randint(0, 4)]),
    "discrete copula": amsbq.GaussianCopula([stats.norm(), stats.randint(0, 4)], [[1, 0.6], [0.6, 1]]),
    "samples": amsbq.Empirical(np.random.default_rng(0).normal(size=(900, 2)), np.linspace(1, 3, 900)),
    "mixture": amsbq.Mixture([amsbq.Gaussian([0, 0], 0.1), amsbq.Gaussian([1, 1], 0.2)], [0.5, 0.5]),
}


@pytest.fixture(scope="module", params=MEASURES)
def run(request):
    def simulator(x):
        return np.sin(2 * x[0]) + x[1] ** 2

    return amsbq.integrate(simulator, MEASURES[request.param], budget=4, model="icm")


def test_the_mean_of_the_control_variate_is_known(run):
    """In closed form, for any inputs, it is what averages of what the run predicts come to."""
    it = run.integrator
    control = ControlVariate(it.learner.posterior, it.measure, True, 1, (None,), ("mean",))
    X = it.measure.sample(40_000, 3)
    values = run.predict(0, X)[0]
    assert abs(control.mean.value[0] - values.mean()) < 4 * stats.sem(values) + 4 * control.mean.error[0]
    assert control.mean.error[0] < 0.02 * np.std(values)
    sums = control.average(lambda values, weights: weights @ values)
    assert abs(control.mean.value[0] - sums.value[0]) <= 6 * sums.error[0] + 4 * control.mean.error[0] + 1e-9


def test_any_inputs(run):
    certificate = amsbq.certify(run, budget=3)
    assert len(certificate.evaluations) == 3
    assert np.isfinite([certificate.mean, certificate.std]).all()


def test_draws_are_fresh_and_repeatable():
    result = wrong_run()
    one, again, other = (amsbq.certify(result, 4, seed) for seed in (1, 1, 2))
    locations = [np.array([e.x for e in c.evaluations]) for c in (one, again, other)]
    np.testing.assert_array_equal(locations[0], locations[1])
    assert not np.isin(locations[0], locations[2]).any()
    assert (one.mean, one.std, one.digest) == (again.mean, again.std, again.digest)
    learned = result.integrator
    for e in one.evaluations:
        learned.observe(e.source, e.x, e.value)
    later = amsbq.certify(learned.result(), 4, 1)
    assert not np.isin([e.x for e in later.evaluations], locations[0]).any()
    assert later.digest != one.digest


def test_the_control_variate_is_frozen():
    """What the run learns later does not change a certificate that waits for its values."""
    it = amsbq.Integrator([amsbq.Source(name="fine")], amsbq.Uniform(0, 1), model=model())
    it.observe(0, [0.3], fine([0.3]))
    waiting = amsbq.certify(it.result(), 2)
    assert np.isnan(waiting.mean)
    before = waiting.plan.predicted[0].copy()
    it.observe(0, [0.9], fine([0.9]))
    while (query := waiting.ask()) is not None:
        waiting.tell(query, fine(query.x))
    np.testing.assert_array_equal(waiting.plan.predicted[0], before)
    values = np.array([e.value for e in waiting.evaluations])
    assert waiting.mean == pytest.approx(waiting.plan.known[0] + np.mean(values - before[:, 0, 0]), rel=1e-12)
    assert len(it.evaluations) == 2


def test_failures_are_reported_and_the_model_stands_in():
    it = amsbq.Integrator([amsbq.Source(name="fine")], amsbq.Uniform(0, 1), model=model(), output_range=(0, 10))
    it.observe(0, [0.3], fine([0.3]))
    certificate = amsbq.certify(it.result(), 4)
    for _ in range(3):
        certificate.tell(query := certificate.ask(), fine(query.x))
    certificate.fail(certificate.ask(), "no mesh")
    values = np.array([e.value for e in certificate.evaluations])
    expected = np.append(values[:3] - certificate.plan.predicted[0][:3, 0, 0], 0.0)
    assert certificate.mean == pytest.approx(certificate.plan.known[0] + expected.mean(), rel=1e-12)
    low, high = stats.binomtest(1, 4).proportion_ci(method="exact")
    (caution,) = [each for each in certificate.cautions if "failed" in each]
    assert f"1 of 4 fresh evaluations of fine failed: between {100 * low:.2g} and {100 * high:.2g} %" in caution
    assert f"can move the mean by {10 * high:.2g} at most" in caution
    lost = amsbq.certify(it.result(), 2)
    while (query := lost.ask()) is not None:
        lost.fail(query, "no mesh")
    assert np.isnan(lost.mean)


def test_several_outputs():
    def both(x):
        return fine(x), -3 * x[0]

    truths = np.array([TRUTH, -1.5])
    result = amsbq.integrate(both, amsbq.Uniform(0, 1), budget=4, outputs=["peak", "time"], model="icm")
    found = amsbq.certify(result, 5)
    assert found.mean.shape == found.std.shape == found.interval()[0].shape == (2,)
    assert (np.abs(found.mean - truths) < 6 * found.std + 1e-9).all()
    wide = found.interval(joint=True)
    np.testing.assert_allclose(wide, found.interval(0.975), rtol=1e-12)
    one = found["time"]
    assert (one.mean, one.std) == (found.mean[1], found.std[1])
    assert "the certificate of peak" in str(found)
    with pytest.raises(KeyError, match="width"):
        found["width"]


def test_a_source_that_lacks_an_output_helps_with_the_others():
    """It is evaluated for the first output, and counts nothing for the second."""

    def both(x):
        return np.sin(40 * x[0]) + np.cos(77 * x[0] ** 2), -3 * x[0]

    def near(x):
        return [1.1 * both(x)[0]]

    sources = [both, amsbq.Source(near, cost=0.01, outputs=["wave"])]
    result = amsbq.integrate(sources, [(0, 1)], budget=6, outputs=["wave", "line"], model="icm", max_evaluations=40)
    found = [amsbq.certify(result, 8, seed) for seed in range(20)]
    terms = found[0].plan.terms
    assert [term.sources for term in terms] == [(0, 1), (1,)]
    assert terms[0].weights[0].tolist() == [1, 1]
    assert terms[0].weights[1, 0] != 0
    assert terms[0].weights[1, 1] == terms[1].weights[0, 1] == 0
    assert abs(z_score([c.mean[1] for c in found], -1.5)) < 3.5
    wave = np.mean([both([t])[0] for t in (np.arange(20000) + 0.5) / 20000])
    assert abs(z_score([c.mean[0] for c in found], wave)) < 3.5


def test_it_is_compared_with_the_model():
    right = amsbq.certify(amsbq.integrate(fine, amsbq.Uniform(0, 1), budget=4, model="icm"), 4)
    number = r"\S+ ± \S+"
    sentence = rf"the certificate {number} agrees with the model's {number}: (\S+) standard deviations\."
    said = re.fullmatch(sentence, right.comparison().text)
    assert float(said[1]) < 3
    assert right.comparison().text in str(right)
    gp = amsbq.MultiSourceGP([amsbq.Term([[1e-6]], amsbq.RBF([9.0]))], amsbq.Uniform(0, 1), mean=50.0)
    sure = amsbq.Integrator([fine], amsbq.Uniform(0, 1), model=gp)
    sure.observe(0, [0.3], 50.0)
    found = amsbq.certify(sure.result(), 8).comparison()
    assert not found.agrees
    assert "does not agree" in found.text
    assert "Trust the certificate" in found.advice


def test_another_distribution_of_the_inputs():
    result = wrong_run()
    found = amsbq.certify(result, 400, under=stats.beta(2, 1))
    draws = np.random.default_rng(0).beta(2, 1, 100_000)
    assert abs(found.mean - np.mean(np.exp(2 * draws))) < 4 * np.hypot(found.std, stats.sem(np.exp(2 * draws)))


def test_intervals_at_any_time():
    ranged = amsbq.integrate(fine, amsbq.Uniform(0, 1), budget=4, output_range=(0, 8), model="icm")
    low, high = amsbq.certify(ranged, 60, primary_only=True).interval(0.95, anytime=True)
    assert 0 <= low <= TRUTH <= high <= 8
    with pytest.raises(ValueError, match="output_range"):
        amsbq.certify(wrong_run(), 2).interval(anytime=True)
    with pytest.raises(ValueError, match="independent draws"):
        amsbq.certify(ranged, 3).interval(anytime=True)


def test_secondary_sources_do_most_of_the_work():
    """Where the model knows that they are related, and right, the interval is much narrower than without them."""

    def wiggly(x):
        return np.sin(40 * x[0]) + np.cos(77 * x[0] ** 2)

    def near(x):
        return wiggly(x) + 0.05 * x[0]

    gp = amsbq.MultiSourceGP(
        [amsbq.Term(np.array([[1, 0.99], [0.99, 1]]), amsbq.RBF([0.01]))], amsbq.Uniform(0, 1), noise=1e-4
    )
    it = amsbq.Integrator([wiggly, amsbq.Source(near, cost=0.01)], amsbq.Uniform(0, 1), model=gp)
    it.observe(0, [0.3], wiggly([0.3]))
    result = it.result()
    widths = {
        only: np.mean([np.ptp(amsbq.certify(result, 10, s, primary_only=only).interval()) for s in range(5)])
        for only in (True, False)
    }
    assert widths[False] < 0.5 * widths[True]
    assert [term.sources for term in amsbq.certify(result, 10).plan.terms] == [(0, 1), (1,)]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda r: amsbq.certify(r, 1.5),
            ValueError,
            "a certificate budget of 1.5 covers 1 evaluation of fine.* allow at least 2",
        ),
        (lambda r: amsbq.certify(r, -1), ValueError, "budget must be positive"),
        (lambda r: amsbq.certify(r, 4, target="median"), ValueError, "target must be"),
        (lambda r: amsbq.certify(r.estimate, 4), TypeError, "needs the result of integrate"),
        (lambda r: amsbq.certify(r, 4, primary_only=2), TypeError, "primary_only"),
        (lambda r: amsbq.certify(r, 2, target="variance"), ValueError, "an interval needs 3"),
        (lambda r: amsbq.certify(r, 2).interval(95), ValueError, "level"),
    ],
)
def test_bad_input_is_told(call, error, text):
    with pytest.raises(error, match=text):
        call(wrong_run())


@pytest.fixture(scope="module")
def evidence():
    """A likelihood that is narrow, and a run whose values are wrong by factors of 4, up and down."""

    def log_likelihood(x):
        return float(-300 * (x[0] - 0.4) ** 2 - 700)

    it = amsbq.Integrator([log_likelihood], amsbq.Uniform(0, 1), model="icm", log=True)
    for i, x in enumerate(np.linspace(0.05, 0.95, 10)):
        it.observe(0, [x], log_likelihood([x]) + (-1) ** i * np.log(4))
    return it.result(), 0.5 * np.log(np.pi / 300) - 700


def test_integrals_of_exponentials_are_unbiased(evidence):
    result, truth = evidence
    found = [amsbq.certify(result, 5, seed) for seed in range(200)]

    def integral(c):  # relative to the true one; it may be negative, where the certificate has minus infinity
        (residuals,) = c.plan.residuals(np.array([[e.value] for e in c.evaluations]))
        return float((c.plan.known[0] + residuals.mean()) * np.exp(c.plan.units[0] - truth))

    assert abs(z_score([integral(c) for c in found], 1.0)) < 3
    assert all(np.log(max(integral(c), 1e-300)) == pytest.approx(c.mean - truth) for c in found if c.mean > -np.inf)
    ends = np.array([c.interval() for c in found])
    assert np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])) > 0.88
    assert (ends[:, 1] > -np.inf).all()
    assert "the logarithm of an unbiased estimate" in str(found[0])
    # three quarters of the draws are where the likelihood is, which is a tenth of the inputs
    near = np.concatenate([np.abs(c.plan.X[0][:, 0] - 0.4) < 0.1 for c in found])
    assert 0.65 < np.mean(near) < 0.85
    one = next(c for c in found if c.mean > -np.inf)  # the logarithm of an unbiased estimate that is positive
    at, logs = one.plan, np.array([e.value for e in one.evaluations])
    differences = at.counts[0] * (np.exp(logs - at.units[0]) - at.predicted[0][:, 0, 0])
    assert one.mean == pytest.approx(at.units[0] + np.log(at.known[0] + differences.mean()), rel=1e-12)


def test_probabilities_of_logarithms_are_those_of_the_values(evidence):
    result, _ = evidence
    share = 2 * np.sqrt(1 / 300)  # within this distance the logarithm is above -701, on either side
    found = [amsbq.certify(result, 8, seed, target=amsbq.Exceedance(-701.0)) for seed in range(40)]
    assert abs(z_score([c.mean for c in found], share)) < 3
    assert (found[0].plan.counts[0] == 1).all()


def test_an_average_that_is_not_positive_tells_nothing_of_its_logarithm():
    made = logarithm_of(Answer(-1.0, 2.0, lambda level: (-5.0, 3.0), False, ""), 10.0)
    assert (made.mean, made.std) == (-np.inf, np.inf)
    assert made.interval(0.95) == (-np.inf, pytest.approx(10 + np.log(3)))
    lost = logarithm_of(Answer(-1.0, 0.2, lambda level: (-2.0, -0.5), False, ""), 10.0)
    assert lost.interval(0.95) == (-np.inf, np.inf)


def test_heavy_tailed_draws_with_a_large_error_give_no_upper_end():
    """Ten draws that miss the peak of a likelihood show nothing of its height."""
    ends = [
        logarithm_of(Answer(1.0, error, lambda level: (0.1, 3.0), heavy, ""), 10.0).interval(0.95)
        for heavy in (False, True)
        for error in (0.1, 0.9)
    ]
    assert {low for low, _ in ends} == {10 + np.log(0.1)}
    assert [high for _, high in ends] == [10 + np.log(3)] * 3 + [np.inf]


def test_the_evidence_of_a_peak_that_the_model_knows():
    """The control variate is averaged over points around its peak, which covers 1e-5 of the inputs."""
    precision, centre = 1e5 * np.array([[2.0, -1.0], [-1.0, 1.5]]), np.array([0.3, -0.2])

    def log_likelihood(x):
        return float(-0.5 * (x - centre) @ precision @ (x - centre))

    inputs = amsbq.Gaussian([0, 0], 1)
    covariance = np.linalg.inv(precision)
    truth = 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    truth += stats.multivariate_normal(np.zeros(2), covariance + np.eye(2)).logpdf(centre)
    found = amsbq.certify(amsbq.integrate([log_likelihood], inputs, budget=12, log=True), 4)
    assert found.mean == pytest.approx(truth, abs=1e-3)
    low, high = found.interval()
    assert low <= truth <= high
    assert high - low < 4e-3


def test_a_certificate_beside_a_limit_is_of_the_finest_source():
    """Its control variate is the mean of the finest source, whose average is not that of the limit."""

    def solve(x, h):
        return float(np.sin(4 * x[0]) + h * (1 + x[0]))

    levels = amsbq.levels(solve, h=[0.2, 0.4, 0.8], cost=lambda h: 0.04 / h**2)
    result = amsbq.integrate(levels, [(0, 1)], budget=6, limit=True)
    limit = (1 - np.cos(4)) / 4
    found = [amsbq.certify(result, budget=4, seed=seed) for seed in range(3)]
    for certificate in found:
        low, high = certificate.interval(0.95)
        assert low < limit + 0.3 < high
        assert "it is about h=1/5, the finest source: the limit cannot be evaluated" in certificate.cautions
        assert certificate.comparison() is None
    assert abs(np.mean([each.mean for each in found]) - limit) > 0.25
