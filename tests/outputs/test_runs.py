"""Runs with several outputs: one run serves all of them."""

import math

import numpy as np
import pytest

import amsbq
from amsbq.design.evaluations import Option
from amsbq.execution.journal import read_journal

SQUARE = amsbq.Uniform([0, 0], [1, 1])


def fine(x):
    return {"bump": math.exp(-3 * np.sum((x - 0.3) ** 2)), "product": 1e12 * (1 + x[0] * x[1])}


def coarse(x):
    return [math.exp(-3 * np.sum((x - 0.3) ** 2)) + 0.1 * x[0], 1e12 * (1.1 + x[0] * x[1])]


def bump_only(x):
    return [math.exp(-3 * np.sum((x - 0.35) ** 2))]


def sources():
    return [fine, amsbq.Source(coarse, cost=0.1)]


OPTIONS = {"outputs": ["bump", "product"], "model": "icm"}


@pytest.fixture(scope="module")
def result():
    return amsbq.integrate(sources(), SQUARE, budget=5, **OPTIONS)


@pytest.mark.front_door
def test_a_run_has_an_answer_for_each_output(result):
    from scipy.special import erf

    width = math.sqrt(math.pi / 3) / 2 * (erf(0.7 * math.sqrt(3)) + erf(0.3 * math.sqrt(3)))
    truth = np.array([width**2, 1.25e12])
    assert result.mean.shape == result.std.shape == (2,)
    assert abs(result.mean / truth - 1).max() < 0.05
    low, high = result.interval(0.95)
    assert (low < result.mean).all()
    assert (result.mean < high).all()
    assert (result.quantile(0.975) == high).all()
    assert result.spent <= 5
    assert "bump:" in str(result)
    assert "product:" in str(result)
    assert result["bump"].mean == result.mean[0] == result[0].mean


def test_what_is_known_of_one_output_is_a_result_of_its_own(result):
    alone = amsbq.Integrator(sources(), SQUARE, model="icm")
    for e in result.evaluations:
        alone.observe(e.source, e.x, e.value[1])
    product = result["product"]
    assert product.mean == alone.estimate().mean
    assert product.std == alone.estimate().std
    assert [e.value for e in product.evaluations] == [e.value[1] for e in result.evaluations]
    assert product.outputs is None
    assert product.rows()[0]["value"] == result.evaluations[0].value[1]
    assert product.predict(0, [[0.5, 0.5]])[0] == pytest.approx(1.25e12, rel=0.05)
    mean, _ = result.predict(0, [[0.5, 0.5], [0.1, 0.2]])
    assert mean.shape == (2, 2)
    assert mean[0, 1] == pytest.approx(product.predict(0, [[0.5, 0.5]])[0][0], rel=1e-12)
    with pytest.raises(KeyError, match="no output 'peak'; valid names: bump, product"):
        result["peak"]
    with pytest.raises(IndexError, match="no output 2; valid names: bump, product"):
        result[2]
    assert [one.output for one in result] == ["bump", "product"]


def test_what_is_asked_of_an_output_is_asked_by_its_name(result):
    assert result.distribution("bump").std().mean == result["bump"].distribution().std().mean
    assert result.sensitivity(output=1).first.mean[0] == result["product"].sensitivity().first.mean[0]
    with pytest.raises(ValueError, match="several outputs: look at one of them, as in result\\['bump'\\]"):
        result.distribution()
    narrow = amsbq.Uniform([0.4, 0.4], [0.6, 0.6])
    assert result.under(narrow)["product"].mean == result["product"].under(narrow).mean
    assert result.under(narrow).mean[1] == pytest.approx(1.25e12, rel=0.02)


def test_diagnosis_is_about_the_output_that_is_furthest_from_its_goal(result):
    share = result.std / np.abs(result.mean)
    furthest = result.outputs[int(share.argmax())]
    assert f"{furthest} is farthest from its goal" in str(result.diagnose())


def test_tables_have_columns_for_each_output(result):
    row = result.rows()[0]
    assert row["value.bump"] == result.evaluations[0].value[0]
    assert {"value.product", "variance.bump", "mean.bump", "std.product"} <= set(row)


def test_a_forecast_has_all_outputs(result):
    ahead = result.integrator.forecast(7)
    assert ahead[0][1] == pytest.approx(result.std)
    assert (ahead[-1][1] < result.std).all()
    assert "bump" in str(ahead)
    assert "product" in str(ahead)


def test_a_forecast_leaves_out_what_was_never_seen():
    found = amsbq.integrate(lambda x: [x[0], math.nan], SQUARE, budget=4, **OPTIONS)
    ahead = found.integrator.forecast(6)
    assert ahead[-1][1][0] < found.std[0]
    assert all(np.isnan(stds[1]) for _, stds in ahead)


def test_scales_of_the_outputs_do_not_matter():
    def scaled(x):
        both = fine(x)
        return [1e-12 * both["bump"], 7 + both["product"]]

    plain = amsbq.integrate(fine, SQUARE, budget=5, **OPTIONS)
    other = amsbq.integrate(scaled, SQUARE, budget=5, **OPTIONS)
    assert np.array_equal([e.x for e in plain.evaluations], [e.x for e in other.evaluations])
    assert other.mean == pytest.approx([1e-12 * plain.mean[0], 7 + plain.mean[1]], rel=1e-9)


def test_a_source_may_lack_an_output_and_helps_with_the_others():
    cheap = amsbq.Source(bump_only, cost=0.05, outputs=["bump"])
    found = amsbq.integrate([fine, cheap], SQUARE, budget=4, **OPTIONS)
    of_cheap = [e for e in found.evaluations if e.source == 1]
    assert len(of_cheap) > 5
    assert all(np.isnan(e.value[1]) for e in of_cheap)
    assert [e.source for e in found["product"].evaluations] == [0] * len(found["product"].evaluations)
    it = found.integrator
    X = SQUARE.sample(20, np.random.default_rng(0))
    rate = it.policy.next_rate(it.learner.posterior)
    assert (rate.parts[1].values([Option(1)], X) == 0).all()
    assert (rate.parts[0].values([Option(1)], X) > 0).all()


def test_one_missing_output_is_no_failure_and_none_at_all_is():
    def fails(x):
        if x[0] < 0.4:
            return [math.nan, math.inf]
        return {**fine(x), "product": math.nan if x[1] < 0.5 else 2.0}

    with pytest.warns(UserWarning, match="product: all [0-9]+ observations of fails are equal"):
        found = amsbq.integrate(fails, SQUARE, budget=14, **OPTIONS)
    missing = [e for e in found.evaluations if e.status == "ok" and np.isnan(e.value[1])]
    failed = [e for e in found.evaluations if e.status == "failed"]
    assert missing
    assert failed
    assert all(e.x[1] < 0.5 and np.isfinite(e.value[0]) for e in missing)
    assert all(e.x[0] < 0.4 and e.reason == "none of the outputs is finite: bump, product" for e in failed)
    assert found.mean[1] == pytest.approx(2.0)
    assert {e.reason for e in found["product"].evaluations if e.id == missing[0].id} == {"this output has no value"}


def test_values_outside_of_a_valid_range_are_missing():
    source = amsbq.Source(fine, valid={"bump": (0.5, 1.0)})
    found = amsbq.integrate(source, SQUARE, budget=6, **OPTIONS)
    values = np.array([e.value for e in found.evaluations])
    assert np.isnan(values[:, 0]).any()
    assert np.nanmin(values[:, 0]) >= 0.5
    assert np.isfinite(values[:, 1]).all()


def test_a_run_stops_when_all_tolerances_are_met():
    found = amsbq.integrate(sources(), SQUARE, rel_tol={"bump": 0.1}, abs_tol={"product": 1e11}, **OPTIONS)
    low, high = found.interval(0.95)
    assert found.stopped == "tolerance"
    assert ((high - low) / 2 <= [0.1 * found.mean[0], 1e11]).all()
    free = amsbq.integrate(sources(), SQUARE, rel_tol={"bump": 0.1}, **OPTIONS)  # the other one has no tolerance
    assert free.stopped == "tolerance"
    assert free.spent <= found.spent


def test_weights_say_which_output_matters():
    it = amsbq.Integrator(sources(), SQUARE, outputs=["bump", "product"], weights={"product": 1e9}, model="icm")
    for _ in range(6):
        query = it.ask()
        it.tell(query, (fine, coarse)[query.source](query.x))
    weights = it.policy.next_rate(it.learner.posterior).weights
    assert weights[1] == 1
    assert weights[0] < 1e-7


class Killed(Exception):
    pass


@pytest.mark.parametrize("after", [3, 9])
def test_a_killed_run_ends_where_the_unkilled_one_does(tmp_path, after):
    options = {"budget": 3, **OPTIONS}
    whole = amsbq.integrate(sources(), SQUARE, journal=tmp_path / "whole.jsonl", **options)

    def kill(it):
        if len(it.evaluations) >= after:
            raise Killed

    with pytest.raises(Killed):
        amsbq.integrate(sources(), SQUARE, journal=tmp_path / "run.jsonl", progress=kill, **options)
    again = amsbq.integrate(sources(), SQUARE, journal=tmp_path / "run.jsonl", **options)
    assert np.array_equal([e.x for e in whole.evaluations], [e.x for e in again.evaluations])
    assert np.array_equal([e.mean for e in whole.evaluations], [e.mean for e in again.evaluations])
    assert np.array_equal(whole.mean, again.mean)
    assert np.array_equal(whole.std, again.std)
    read = amsbq.read_result(tmp_path / "run.jsonl")
    assert np.array_equal(read.mean, whole.mean)
    assert read.outputs == ("bump", "product")
    assert read["bump"].std == whole["bump"].std
    assert np.array_equal(amsbq.read_result(tmp_path / "run.jsonl", model=False).std, whole.std)


def test_a_journal_of_other_outputs_is_refused(tmp_path):
    path = tmp_path / "run.jsonl"
    amsbq.integrate(sources(), SQUARE, budget=2.5, journal=path, **OPTIONS)
    assert read_journal(path)[0]["problem"]["outputs"] == ["bump", "product"]
    with pytest.raises(amsbq.JournalError, match="outputs was"):
        amsbq.integrate(sources(), SQUARE, budget=2.5, journal=path, outputs=["product", "bump"], model="icm")


def test_observations_have_vectors():
    def noisy(x):
        return amsbq.Observation(fine(x), variance={"bump": 0.01, "product": 0.0}, cost=2.0)

    found = amsbq.integrate(noisy, SQUARE, budget=6, **OPTIONS)
    assert all(np.array_equal(e.variance, [0.01, 0.0]) and e.cost == 2 for e in found.evaluations)
    it = amsbq.Integrator(fine, SQUARE, outputs=["bump", "product"])
    it.observe(0, [0.5, 0.5], {"product": 1.0, "bump": 2.0}, [0.1, 0.2])
    assert it.evaluations[0].value.tolist() == [2.0, 1.0]
    with pytest.raises(ValueError, match="2 numbers, bump, product"):
        it.tell(it.ask(), [1.0, 2.0, 3.0])
    it.observe(0, [0.1, 0.5], [2.0, 1.0], {"product": 0.2})  # the other one has no noise
    assert it.evaluations[1].variance.tolist() == [0.0, 0.2]
    with pytest.raises(ValueError, match="no output 'prodcut'"):
        it.observe(0, [0.2, 0.5], [2.0, 1.0], {"prodcut": 0.2})


def test_messages_about_values_name_no_line_of_this_package():
    with pytest.raises(RuntimeError, match="no evaluation was successful") as raised:
        amsbq.integrate(lambda x: {"bump": 1.0}, SQUARE, budget=3, **OPTIONS)
    assert "the value has no product: it must have bump, product" in str(raised.value)
    assert " line " not in str(raised.value)


def test_a_vectorized_function_returns_a_column_for_each_output():
    def many(X):
        return np.column_stack([X[:, 0], X[:, 0] ** 2])

    found = amsbq.integrate(amsbq.Source(many, vectorized=True), amsbq.Uniform(0, 1), budget=6, outputs=2, model="icm")
    assert found.mean == pytest.approx([1 / 2, 1 / 3], abs=1e-2)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"outputs": ["a", "a"]}, "different names"),
        ({"outputs": True}, "different names"),
        ({"outputs": 2.5}, "different names"),
        ({"sources": [fine, amsbq.Source(coarse, cost=0.1, outputs=["peak"])]}, "no output 'peak'"),
        ({"sources": [amsbq.Source(fine, outputs=["bump"])]}, "it must have all outputs"),
        ({"sources": [amsbq.Source(fine, outputs=["bump"])], "outputs": None}, "name all of them"),
        ({"weights": [1, 2, 3]}, "weights"),
        ({"weights": {"peak": 1}}, "no output 'peak'"),
        ({"rel_tol": {"peak": 0.1}}, "no output 'peak'"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_evaluated(changed, says):
    options = {"sources": [fine], "inputs": SQUARE, "budget": 3, **OPTIONS, **changed}
    with pytest.raises(ValueError, match=says):
        amsbq.integrate(**options)


@pytest.mark.filterwarnings("ignore")
def test_an_output_without_values_and_without_a_tolerance_does_not_keep_a_run_going():
    def both(x):
        return {"a": float(np.exp(np.sin(5 * x[0]))), "b": np.nan}

    found = amsbq.integrate(both, amsbq.Uniform(0, 1), outputs=["a", "b"], abs_tol={"a": 0.05}, budget=30, seed=0)
    assert found.stopped == "tolerance"
    needed = amsbq.integrate(both, amsbq.Uniform(0, 1), outputs=["a", "b"], abs_tol=0.05, budget=12, seed=0)
    assert needed.stopped != "tolerance"  # nothing is known of b
