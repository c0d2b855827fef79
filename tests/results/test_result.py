"""What a result shows, in tables and to other programs."""

import json
import math
from dataclasses import replace

import amsbq
from amsbq.results.result import result_of
from amsbq.results.summary import as_json, state, state_text


def fine(x):
    return float(x[0] ** 2)


def test_inputs_that_are_called_like_columns():
    result = amsbq.integrate(fine, [(0, 1)], budget=3, model="icm", progress=False)
    named = replace(result, inputs=["value"])
    assert [row["value"] for row in named.rows()] == [e.value for e in result.evaluations]
    assert [row["x.value"] for row in named.rows()] == [e.x[0] for e in result.evaluations]
    told = as_json(named)["evaluations"][0]
    assert told["x"] == {"value": result.evaluations[0].x[0]}
    assert told["value"] == result.evaluations[0].value


def test_other_programs_get_null_for_what_is_no_number():
    it = amsbq.Integrator([amsbq.Source(fine)], [(0, 1)], model="icm")
    it.fail(it.ask(), "diverged")
    it.observe(0, 0.3, 0.09)
    it.observe(0, 0.6, 0.36)
    result = replace(result_of(it, ""), estimate=amsbq.Estimate([0.3]))
    assert math.isinf(result.budget)
    told = json.loads(json.dumps(as_json(result), allow_nan=False))
    assert (told["mean"], told["std"], told["interval"]) == (0.3, None, [None, None])
    assert (told["evaluations"][0]["value"], told["evaluations"][0]["reason"]) == (None, "diverged")
    now = json.loads(json.dumps(state(result), allow_nan=False))
    assert (now["mean"], now["std"], now["budget"], now["stopped"], now["pending"]) == (0.3, None, None, None, 0)
    assert "0 pending" in state_text(now)
