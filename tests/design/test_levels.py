"""Levels of one simulator: sources that are made of its knobs, and fidelities in the description of a run."""

import numpy as np
import pytest

import amsbq
from amsbq.design.description import Problem


def solve(x, h):
    return x[0] + h * x[0] ** 2


def by_name(a, b, cells, steps):
    return a * b + 1 / cells + 10 / steps


def test_one_knob():
    made = amsbq.levels(solve, h=[1 / 32, 1 / 16, 1 / 8], cost=lambda h: (32 * h) ** -2, timeout=5)
    assert [source.name for source in made] == ["h=1/32", "h=1/16", "h=1/8"]
    assert [source.cost for source in made] == [1.0, 0.25, 0.0625]
    assert [source.fidelity for source in made] == [{"h": 1 / 32}, {"h": 1 / 16}, {"h": 1 / 8}]
    assert [source.timeout for source in made] == [5.0] * 3
    assert [source.function(np.array([2.0])) for source in made] == [2 + 4 / 32, 2 + 4 / 16, 2 + 4 / 8]


def test_every_combination_with_inputs_by_name():
    made = amsbq.levels(by_name, cells=[64, 16], steps=[100, 10], cost=lambda cells, steps: cells * steps, name="heat")
    assert [source.name for source in made][1:3] == ["heat, cells=64, steps=10", "heat, cells=16, steps=100"]
    assert [source.fidelity for source in made][3] == {"cells": 1 / 16, "steps": 1 / 10}
    problem = Problem.of(made, {"a": (0, 1), "b": (0, 1)}, budget=1e5)
    assert problem.sources[3].function(np.array([2.0, 3.0])) == by_name(2, 3, 16, 10)
    assert problem.model.fidelities.knobs == ("cells", "steps")
    assert problem.model.fidelities.values[3] == (1 / 16, 1 / 10)


def test_a_range_is_a_geometric_grid():
    made = amsbq.levels(solve, h=(1 / 256, 1 / 4))
    h = np.array([source.fidelity["h"] for source in made])
    assert (h[0], h[-1], len(h)) == (1 / 256, 1 / 4, 13)
    np.testing.assert_allclose(np.diff(np.log(h)), np.log(2) / 2, atol=0.01)
    assert len(amsbq.levels(solve, h=(1e-6, 1))) == 17
    assert len(amsbq.levels(solve, h=(0.1, 0.11))) == 2
    cells = [source.function.keywords["h"] for source in amsbq.levels(solve, h=(64, 4))]
    assert cells == [64, 45, 32, 23, 16, 11, 8, 6, 4]
    assert all(isinstance(n, int) for n in cells)


def test_ranges_of_several_knobs_have_fewer_levels():
    """Every combination is a source: at most 25 of them, unless each range has only three levels."""

    def sizes(**knobs):
        made = amsbq.levels(by_name, **knobs)
        return len(made), *(len({source.fidelity[name] for source in made}) for name in knobs)

    assert sizes(a=(0.01, 1.0), b=(0.1, 10.0)) == (25, 5, 5)
    assert sizes(a=(0.01, 1.0), b=[1, 2]) == (24, 12, 2)
    assert sizes(a=(0.01, 1.0), b=(0.1, 10.0), c=(1.0, 9.0)) == (27, 3, 3, 3)
    assert sizes(a=[1, 2, 3, 4, 5, 6], b=[1, 2, 3, 4, 5, 6]) == (36, 6, 6)  # as it was given


def test_of_many_levels_a_few_are_evaluated_at_first():
    """The finest, the coarsest, and others far from these; and then whichever tells most for its cost."""
    sources = amsbq.levels(solve, h=(1 / 1024, 1 / 4), cost=lambda h: 1 / (1024 * h))
    sources.append(amsbq.Source(lambda x: x[0], cost=0.01, name="formula"))
    result = amsbq.integrate(sources, [(0, 1)], budget=6, seed=0)
    assert {e.source for e in result.evaluations[:5]} == {0, 8, 12, 16, 17}
    assert abs(result.mean - (0.5 + 1 / 3072)) < max(4 * result.std, 1e-5)
    of_levels = [f.text for f in result.diagnose() if f.about in ("relation", "worth")]
    assert of_levels
    assert all("formula" in text for text in of_levels)  # of so many levels, none counts by itself
    corners = amsbq.levels(by_name, a=[0.1, 0.2, 0.4], b=[1, 2, 4], cost=lambda a, b: 0.1 / (a * b))
    it = amsbq.Integrator(corners, {"cells": (1, 2), "steps": (1, 2)}, budget=9, seed=0)
    asked = {query.source for query in it.ask(5)}
    assert asked == {0, 2, 4, 6, 8}


def test_what_is_passed_on():
    def slope(x, h):
        return [1 + 2 * h * x[0]]

    made = amsbq.levels(solve, h=[0.1, 0.2], gradient=slope, gradient_cost=0.5, noise=lambda h: h, valid=(0, 9))
    assert [source.noise for source in made] == [0.1, 0.2]
    assert [source.gradient(np.ones(1)) for source in made] == [[1.2], [1.4]]
    assert {(source.gradient_cost, source.valid) for source in made} == {(0.5, (0.0, 9.0))}
    assert [source.function for source in amsbq.levels(h=[1, 2])] == [None, None]  # evaluated elsewhere


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "levels needs a knob"),
        ({"h": 0.1}, "the knob h must have a list of positive numbers, the finest first"),
        ({"h": []}, "the knob h must have a list"),
        ({"h": "fine"}, "got 'fine'"),
        ({"h": [0.1, True]}, "the knob h must have a list"),
        ({"h": [0.1, -0.2]}, "got \\[0.1, -0.2\\]"),
        ({"h": [0.1, 0.3, 0.2]}, "in increasing order, or in decreasing order"),
        ({"h": [0.1, 0.1]}, "in increasing order, or in decreasing order"),
        ({"h": (0.1, 0.2, 0.3)}, "a range of the knob h is two different numbers"),
        ({"h": [0.1, 0.2], "cost": lambda x: 1.0}, "cost of levels is a function of the knobs"),
        ({"h": [0.1, 0.2], "cost": lambda h: -h}, "cost must not be negative"),
    ],
)
def test_bad_levels(settings, says):
    with pytest.raises((TypeError, ValueError), match=says):
        amsbq.levels(solve, **settings)
    with pytest.raises(TypeError, match="a function of x and the knobs"):
        amsbq.levels([solve], h=[0.1, 0.2])


@pytest.mark.parametrize("given", ["h", {}, {"h": 0}, {"h": -1.0}, {"h": "fine"}, {"h": np.inf}, {1: 0.5}, 0.5])
def test_bad_fidelity(given):
    with pytest.raises((TypeError, ValueError), match="fidelity must be a dictionary of positive numbers"):
        amsbq.Source(solve, fidelity=given)


def source(name, **fidelity):
    return amsbq.Source(solve, name=name, fidelity=fidelity or None)


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ([source("fine"), source("coarse", h=0.1)], "coarse has a fidelity, but fine, the primary source, has none"),
        ([source("fine", h=0.1), source("coarse", k=0.2)], "need the same knobs"),
        ([source("fine", h=0.2), source("coarse", h=0.1)], "finer than fine, the primary source"),
        ([source("one", h=0.1), source("other", h=0.1)], "one and other have the same fidelity, h=0.1"),
        (
            [source("fine", a=0.1), source("coarse", a=0.2)],
            "'a' is both a knob of the sources and the name of an input",
        ),
    ],
)
def test_fidelities_that_do_not_go_together(sources, says):
    with pytest.raises(ValueError, match=says):
        Problem.of(sources, {"a": (0, 1)}, budget=5)


def test_a_run_and_its_journal(tmp_path):
    """Fidelities are in the journal, and a change of one is noticed."""

    def run(factor=1.0, **options):
        sources = amsbq.levels(solve, h=[0.01, 0.1, 0.4], cost=lambda h: 0.01 / h)
        sources[1].fidelity = {"h": 0.1 * factor}
        return amsbq.integrate(sources, [(0, 1)], budget=3, journal=tmp_path / "run.jsonl", seed=1, **options)

    result = run()
    assert abs(result.mean - (0.5 + 0.01 / 3)) < max(4 * result.std, 1e-3)
    assert run().mean == result.mean
    assert [row["fidelity.h"] for row in result.rows()] == [(0.01, 0.1, 0.4)[e.source] for e in result.evaluations]
    stored = amsbq.read_result(tmp_path / "run.jsonl")
    assert stored.mean == result.mean
    assert [source.fidelity for source in stored.integrator.sources] == [{"h": 0.01}, {"h": 0.1}, {"h": 0.4}]
    assert stored.integrator.problem.model.fidelities == result.integrator.problem.model.fidelities
    with pytest.raises(amsbq.JournalError, match="fidelity"):
        run(2.0)


def test_a_formula_beside_levels():
    """A source without a fidelity is a relative of the levels, and not one of them."""
    sources = amsbq.levels(solve, h=[0.01, 0.1, 0.4], cost=lambda h: 0.01 / h)
    sources.append(amsbq.Source(lambda x: 100 * x[0] - 7, cost=0.01, name="formula"))
    result = amsbq.integrate(sources, [(0, 1)], budget=3, seed=1)
    assert abs(result.mean - (0.5 + 0.01 / 3)) < max(4 * result.std, 1e-3)
