"""Small things that people trip over: names of inputs, runs without a budget, results of integrators, texts."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import amsbq
from tests.design.test_integrator import fixed

UNIT = amsbq.Uniform(0, 1)
SQUARE = amsbq.Uniform([0, 0], [1, 1])


def total(x):
    return float(np.sum(x))


@pytest.fixture(scope="module")
def named():
    """A result with named inputs."""
    return amsbq.integrate(total, {"load": (0, 1), "size": stats.norm(0, 1)}, budget=6, model="icm")


def test_a_dictionary_names_the_inputs(named, tmp_path):
    assert named.inputs == ["load", "size"]
    assert {"load", "size"} <= set(named.rows()[0])
    path = tmp_path / "run.jsonl"
    amsbq.integrate(total, {"load": (0, 1), "size": (1, 2)}, budget=2, model="icm", journal=path)
    assert amsbq.read_result(path).inputs == ["load", "size"]
    with pytest.raises(amsbq.JournalError, match=r"inputs was \['load', 'size'\], and now is \['load', 'mass'\]"):
        amsbq.integrate(total, {"load": (0, 1), "mass": (1, 2)}, budget=2, model="icm", journal=path)


def test_a_dictionary_of_inputs_is_a_measure():
    both = amsbq.as_measure({"load": (0, 1), "kind": {"a": 0.2, "b": 0.8}})
    assert both.to_dict() == amsbq.as_measure([(0, 1), {"a": 0.2, "b": 0.8}]).to_dict()
    assert amsbq.as_measure({"a": 0.2, "b": 0.8}).dim == 1  # probabilities of categories


def test_names_beside_a_measure():
    result = amsbq.integrate(total, SQUARE, names=["a", "b"], budget=2, model="icm")
    assert result.inputs == ["a", "b"]
    assert amsbq.Integrator(total, {"a": (0, 1)}).inputs == ["a"]
    assert amsbq.Integrator(total, SQUARE).inputs is None
    for wrong in (["a"], ["a", "a"], ["a", 1], "ab"):
        with pytest.raises(ValueError, match="names"):
            amsbq.Integrator(total, SQUARE, names=wrong)
    with pytest.raises(ValueError, match="not both"):
        amsbq.Integrator(total, {"a": (0, 1)}, names=["a"])


def test_an_integrator_has_a_result():
    it = amsbq.Integrator(amsbq.Source(name="fine"), {"load": (0, 1)}, budget=2, model=fixed(L=1))
    with pytest.raises(ValueError, match="no result yet"):
        it.result()
    it.tell(it.ask(), 1.0)
    assert it.result().stopped == ""
    it.tell(it.ask(), 2.0)
    assert it.ask() is None
    result = it.result()
    assert (result.stopped, result.inputs, len(result.evaluations)) == ("budget", ["load"], 2)
    assert (result.mean, result.std) == (it.estimate().mean, it.estimate().std)
    assert result.integrator is it


def observed(*values):
    it = amsbq.Integrator([amsbq.Source()], UNIT)
    for i, value in enumerate(values):
        it.observe(0, [0.1 + 0.3 * i], value)
    return it


CONSTANT = {
    "integrate": lambda: amsbq.integrate(lambda x: 1.0, UNIT, budget=3),
    "estimate": lambda: amsbq.estimate(0, [[0.1], [0.5], [0.9]], [1.0, 1.0, 1.0], UNIT),
    "result": lambda: observed(1.0, 1.0, 1.0).result(),
}


@pytest.mark.parametrize("call", CONSTANT)
def test_warnings_are_blamed_on_the_line_of_the_user(call):
    with pytest.warns(UserWarning, match="they do not show how much it varies") as warned:
        CONSTANT[call]()
    assert {each.filename for each in warned} == {__file__}


def test_a_file_in_a_folder_that_is_called_like_the_package_is_the_users():
    folder = Path(amsbq.__file__).parent
    study = str(folder.with_name(folder.name + "-study") / "study.py")
    with pytest.warns(UserWarning, match="they do not show how much it varies") as warned:
        exec(compile("amsbq.estimate(0, [[0.1], [0.5]], [1.0, 1.0], UNIT)", study, "exec"), globals())
    assert {each.filename for each in warned} == {study}


def test_without_a_value_of_the_primary_source_an_integrator_has_no_answer():
    """Neither as an estimate nor as a result, and both say why."""
    it = amsbq.Integrator([amsbq.Source(name="fine"), amsbq.Source(cost=0.1)], UNIT, budget=9, model=fixed(L=2))
    with pytest.raises(ValueError, match="nothing to estimate from"):
        it.estimate()
    it.observe(1, [0.5], 3.0)
    with pytest.warns(UserWarning, match="the integral is unknown, because fine has no value") as warned:
        estimate = it.estimate()
    assert warned[0].filename == __file__
    assert math.isnan(estimate.mean)
    assert all(map(math.isnan, (estimate.std, *estimate.interval(), it.result().mean)))
    assert str(it.result()).startswith("integral: unknown, because fine has no value")
    it.observe(0, [0.2], 2.0)
    assert math.isfinite(it.estimate().mean)
    assert it.result().mean == it.estimate().mean


def test_sources_have_names():
    it = amsbq.Integrator([amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)], UNIT, model=fixed(L=2))
    for source in ("fine", "coarse", 1):
        it.observe(source, [0.3 + 0.1 * (source == 1)], 2.0)
    assert [e.source for e in it.evaluations] == [0, 1, 1]
    np.testing.assert_array_equal(it.predict("coarse", [[0.7]]), it.predict(1, [[0.7]]))
    assert it.forecast(1, sources=["fine"]) == it.forecast(1, sources=[0])
    with pytest.raises(ValueError, match="source must be one of fine, coarse, or its number, got 'corse'"):
        it.predict("corse", [[0.7]])


def test_a_forecast_is_of_what_comes():
    result = amsbq.integrate(total, UNIT, budget=4, model=fixed(L=1))
    assert len(result.integrator.forecast(4)) == 1
    with pytest.raises(ValueError, match="budget is 3, but 4 is spent or reserved: give a larger one"):
        result.integrator.forecast(3)


def test_a_tolerance_needs_no_budget():
    result = amsbq.integrate(total, UNIT, rel_tol=0.2, model="icm")
    low, high = result.interval(0.95)
    assert (result.stopped, result.budget) == ("tolerance", math.inf)
    assert (high - low) / 2 <= 0.2 * abs(result.mean)
    with pytest.raises(ValueError, match="nothing would end the run: pass a budget, a tolerance"):
        amsbq.integrate(total, UNIT)


@pytest.mark.parametrize("sources", [total, [total], amsbq.Source(total), [amsbq.Source(total), total]])
def test_estimate_with_functions_says_what_to_call_instead(sources):
    with pytest.raises(TypeError, match=r"takes existing values.*call integrate\(sources, inputs"):
        amsbq.estimate(sources, UNIT)
    with pytest.raises(TypeError, match="needs sources, X, y and inputs"):
        amsbq.estimate([0, 0], [[0.1], [0.2]])


def test_an_estimate_without_a_value_of_the_primary_source_is_none():
    """Whatever the others have returned."""

    def broken(x):
        raise RuntimeError("no licence")

    result = amsbq.integrate([broken, amsbq.Source(total, cost=0.1)], UNIT, budget=50, model=fixed())
    assert math.isnan(result.mean)
    assert result.stopped == "failures"
    assert sum(e.source == 0 for e in result.evaluations) == 2
    assert str(result).startswith("integral: unknown, because broken has no value")
    assert "±" not in str(result)


def test_failures_that_differ_do_not_stop_a_run():
    reasons = iter(["mesh", "licence", "memory"])

    def unlucky(x):
        reason = next(reasons, None)
        if reason is not None:
            raise RuntimeError(f"no {reason}")
        return total(x)

    result = amsbq.integrate(unlucky, UNIT, budget=6, model="icm")
    assert [e.status for e in result.evaluations] == ["failed"] * 3 + ["ok"] * 3


def test_findings_print_as_text(named):
    findings = named.diagnose()
    lines = str(findings).splitlines()
    assert lines == [f"{finding.level:8} {finding}" for finding in findings]
    assert repr(findings) == str(findings)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (float("nan"), "the value must be finite, got nan; the simulator returned nan"),
        ([1.0, 2.0], "the value must be one number, got shape (2,); the simulator returned [1.0, 2.0]"),
        (
            {"peak": 1.0},
            "the simulator returned {'peak': 1.0}. Name several outputs, as in outputs=['peak', 'time']",
        ),
        ("1.5 m", "the value must be a number, got '1.5 m'; the simulator returned '1.5 m'"),
        (None, "the value must be a number, got None; the simulator returned None"),
    ],
)
def test_messages_say_what_the_simulator_returned(returned, said):
    with pytest.raises(RuntimeError, match="no evaluation was successful") as raised:
        amsbq.integrate(lambda x: returned, UNIT, budget=3, model="icm")
    assert said in str(raised.value)


def test_every_plot_returns_something_with_a_figure(named):
    plt = pytest.importorskip("matplotlib.pyplot")
    from matplotlib.figure import Figure

    refined = amsbq.integrate(amsbq.levels(lambda x, h: x[0] + h, h=[0.1, 0.2, 0.4]), [(0, 1)], budget=4)
    two_knobs = amsbq.levels(lambda x, h, k: x[0] + h + k, h=[0.1, 0.2], k=[0.1, 0.2])
    grid = amsbq.integrate(two_knobs, [(0, 1)], budget=4, max_evaluations=5)
    special = {"compare": {"run": named}, "refinement": refined, "levels": grid}
    for name in amsbq.plots.__all__:
        drawn = getattr(amsbq.plots, name)(special.get(name, named))
        assert isinstance(drawn.figure, Figure), name
        plt.close("all")


def test_the_old_name_of_the_inputs_is_taken_with_a_warning():
    with pytest.warns(DeprecationWarning, match="measure= is called inputs= now"):
        old = amsbq.integrate(lambda x: x[0], measure=[(0, 1)], budget=2, model="vbq")
    assert old.mean == amsbq.integrate(lambda x: x[0], inputs=[(0, 1)], budget=2, model="vbq").mean
    with pytest.warns(DeprecationWarning, match="measure= is called inputs= now"):
        amsbq.Integrator(lambda x: x[0], measure=[(0, 1)])
    with pytest.warns(DeprecationWarning, match="measure= is called inputs= now"):
        amsbq.estimate([0, 0], [[0.2], [0.7]], [1.0, 2.0], measure=[(0, 1)], model="vbq")
    with pytest.raises(TypeError, match="multiple values for argument 'inputs'"):
        amsbq.integrate(lambda x: x[0], [(0, 1)], inputs=[(0, 1)], budget=2)
