"""Journals of format 1 mean the same in format 2."""

import math

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.execution.format1 import translated
from amsbq.execution.state import RunState
from amsbq.gp.posterior import gp_from_dict
from amsbq.measures.adapters import measure_from_dict

MEASURES = [
    amsbq.Uniform([0, -1], [1, 1.5]),
    amsbq.Gaussian([0.1, 0.2], [[1.0, 0.3], [0.3, 2.0]]),
    amsbq.Product([stats.gamma(5, loc=1, scale=4), stats.truncnorm(-1, 2), stats.uniform(0, 1), stats.norm(40, 3)]),
    amsbq.Product([stats.truncnorm(-1, np.inf)]),
]


def header(**problem):
    """The header of a format-1 journal."""
    source = {"name": "fine", "cost": 1.0, "noise": 0.0, "valid": [None, 10.0]}
    about = {"sources": [source], "measure": "Uniform([0.0], [1.0])", "model": "icm", "acquisition": "mi"}
    return {"event": "begun", "format": 1, "budget": None, "problem": {**about, "seed": 0, "initial": None, **problem}}


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_measures_are_made_again_from_their_names(measure):
    again = measure_from_dict(translated(header(measure=repr(measure)), [])[0]["problem"]["measure"])
    assert repr(again) == repr(measure)
    X = measure.sample(5, 1)
    np.testing.assert_array_equal(again.sample(5, 1), X)


@pytest.mark.parametrize(
    "text",
    ["Product([rv_histogram(<3 bins>)])", "__import__('os').getcwd()", "Product([zipf(2)])", "Uniform(", "open('x')"],
)
def test_names_that_cannot_be_measures(text):
    assert translated(header(measure=text), [])[0]["problem"]["measure"] is None


def test_models_of_ones_own_are_made_again_from_their_names():
    terms = [amsbq.Term([[1.0, 0.2], [0.2, 2.0]], amsbq.Matern(2.5, [0.3])), amsbq.Term(np.eye(2), amsbq.Constant())]
    gp = amsbq.MultiSourceGP(terms, amsbq.Gaussian(0.3, 2.0), noise=[0.1, 0.0], mean=[1.0, -2.0])
    problem = translated(header(model=repr(gp)), [])[0]["problem"]
    assert repr(gp_from_dict(problem["model"])) == repr(gp)


def asked(id, cost=1.0):
    return {"event": "asked", "id": id, "source": 0, "x": [0.5], "cost": cost, "rate": None}


def told(id, value, cost=None):
    return {"event": "told", "id": id, "value": value, "variance": 0.0, "cost": cost}


def test_nulls_get_their_meaning_back():
    known = {"event": "known", "id": 0, "mean": None, "std": None}
    estimate = {"centres": [1.0], "scales": [0.5], "weights": [1.0], "dof": None, "effective_draws": 1.0}
    stopped = {"event": "stopped", "reason": "tolerance", "spent": 1.0, "budget": None, "estimate": estimate}
    state = RunState.from_events(header(), [asked(0, 0.7), told(0, 3.0), known, stopped])
    assert (state.budget, state.stopped, state.unknown) == (math.inf, "tolerance", 0)
    assert math.isnan(state.queries[0].rate)
    assert math.isnan(state.evaluations[0].mean)
    assert state.evaluations[0].cost == 0.7  # what was expected
    assert state.estimate.interval() == amsbq.Estimate([1.0], [0.5]).interval()
    assert state.sources[0]["valid"] == (-math.inf, 10.0)


def test_values_outside_of_what_is_valid_have_failed():
    state = RunState.from_events(header(), [asked(0), told(0, 11.0, 0.4), asked(1), told(1, -1e9, 0.5)])
    assert [e.status for e in state.evaluations] == ["failed", "ok"]
    assert state.evaluations[0].reason == "the value 11 is outside the valid range, -inf to 10"
    assert math.isnan(state.evaluations[0].value)
    assert [e.cost for e in state.evaluations] == [0.4, 0.5]


def test_draws_from_the_tempered_posterior_get_their_name():
    parameters = {"draws": {"theta": [[0.5]]}, "doubtful": {"theta": [[0.25]]}}
    old = {"event": "fitted", "n": 1, "hyperparameters": parameters, "warnings": []}
    state = RunState.from_events(header(), [asked(0), told(0, 1.0), old])
    assert state.fitted["hyperparameters"] == {"draws": {"theta": [[0.5]]}, "tempered": {"theta": [[0.25]]}}


@pytest.mark.parametrize(("n", "observed"), [(2, 0), (5, 3)])
def test_observations_that_the_journal_does_not_hold_are_noticed(n, observed):
    fitted = {"event": "fitted", "n": n, "hyperparameters": {}, "warnings": []}
    events = [asked(0), told(0, 1.0), asked(1), told(1, 1.0), fitted, asked(2), told(2, 1.0)]
    assert translated(header(), events)[0]["problem"]["observed"] == observed


def test_the_samples_of_a_measure_are_in_the_header():
    samples = {"samples": [[0.1], [0.2], [0.7]], "weights": [0.25, 0.25, 0.5]}
    new, _ = translated({**header(measure="Empirical(3 samples of 1 inputs), checksum 0"), **samples}, [])
    assert measure_from_dict(new["problem"]["measure"]).same_as(amsbq.Empirical([[0.1], [0.2], [0.7]], [1, 1, 2]))
    assert "samples" not in new
