"""Generators of gest-api: what is suggested and ingested, and a run by libEnsemble on processes of this machine."""

import copy

import numpy as np
import pytest
from scipy import stats

import amsbq

vocs_module = pytest.importorskip("gest_api.vocs")
VOCS = vocs_module.VOCS
TRUTH = (1 - np.cos(5)) / 5 + 0.5
SOURCES = [amsbq.Source(name="fine"), amsbq.Source(name="coarse", cost=0.1)]


def simulator(point):
    """What an engine evaluates; it runs in another process."""
    fine = np.sin(5 * point["x"]) + point["lift"]
    return {"f": fine if point["source"] == "fine" else fine + 0.2 * point["x"]}


def problem(**others):
    variables = {"x": [0, 1], "source": {"fine", "coarse"}}
    return VOCS(**{"variables": variables, "objectives": {"f": "EXPLORE"}, "constants": {"lift": 0.5}, **others})


def test_it_asks_for_what_an_integrator_asks_for():
    generator = amsbq.gest.Generator(problem(), sources=SOURCES, seed=1, model="icm")
    it = amsbq.Integrator(SOURCES, [(0, 1)], names=["x"], seed=1, model="icm")
    for n in (3, 2, 1):
        points, queries = generator.suggest(n), it.ask(n)
        assert [(point["x"], point["source"], point["lift"]) for point in points] == [
            (query.x[0], it.names[query.source], 0.5) for query in queries
        ]
        generator.ingest([{**point, **simulator(point)} for point in points])
        for query, point in zip(queries, points, strict=True):
            it.tell(query, simulator(point)["f"])
    assert generator.integrator.estimate().mean == it.estimate().mean
    assert len(generator.suggest()) == 1


def test_answers_come_in_any_order_and_some_fail():
    generator = amsbq.gest.Generator(problem(), sources=SOURCES, seed=1, model="icm")
    points = generator.suggest(5)
    generator.ingest([{**points[3], "f": np.nan}, {**points[1], "f": 2.0}, points[4]])
    assert [made.status for made in generator.integrator.evaluations] == ["failed", "ok", "failed"]
    assert {query.id for query in generator.integrator.pending} == {points[0]["_id"], points[2]["_id"]}
    with pytest.raises(ValueError, match="no pending point has the _id"):
        generator.ingest([{**points[0], "f": 1.0}, {**points[3], "f": 1.0}])
    assert len(generator.integrator.pending) == 2  # nothing of it is taken


def test_the_only_output_is_called_as_the_objective():
    given = problem(variables={"x": [0, 1]})
    generator = amsbq.gest.Generator(given, units={"f": "m", "x": "s"}, seed=1, model="icm")
    generator.ingest([{"x": x, "f": x} for x in (0.2, 0.5, 0.9)])
    assert str(generator.integrator.result()).startswith("expected f: 0.")
    named = amsbq.gest.Generator(given, labels={"f": "range"}, units={"f": "m"}, model="icm").integrator.problem.labels
    assert named.axis("output") == "range (m)"


def test_points_of_others_are_data():
    generator = amsbq.gest.Generator(problem(), sources=SOURCES, seed=1, model="icm")
    generator.ingest(
        [
            {"x": 0.25, "source": "coarse", "lift": 0.5, "f": 1.5},
            {"_id": np.nan, "x": 0.5, "source": "fine", "f": np.nan},
            {"_id": None, "x": 0.75, "source": "fine"},
        ]
    )
    [known] = generator.integrator.evaluations
    assert (known.id, known.source, known.value, known.cost) == (None, 1, 1.5, 0.0)
    assert known.x.tolist() == [0.25]


def test_sources_by_their_numbers():
    """optimas passes numbers, and no strings."""
    named = amsbq.gest.Generator(problem(), sources=SOURCES, seed=1, model="icm")
    numbered = amsbq.gest.Generator(
        problem(variables={"x": [0, 1], "source": {0, 1}}), sources=SOURCES, seed=1, model="icm"
    )
    by_name, by_number = named.suggest(4), numbered.suggest(4)
    assert {point["source"] for point in by_number} == {0, 1}
    assert [{**point, "source": ["fine", "coarse"][point["source"]]} for point in by_number] == by_name
    numbered.ingest([{"x": 0.5, "source": np.int64(1), "f": 1.0}])
    assert numbered.integrator.evaluations[0].source == 1
    with pytest.raises(ValueError, match="there is no source 2"):
        numbered.ingest([{"x": 0.5, "source": 2, "f": 1.0}])


def test_a_copy_goes_on_by_itself():
    """Xopt copies the generator that it is given."""
    generator = amsbq.gest.Generator(problem(), sources=SOURCES, seed=1, model="icm")
    other = copy.deepcopy(generator)
    assert other.suggest(2) == generator.suggest(2)
    other.ingest([{"_id": 0, "f": 1.0}])
    assert len(generator.integrator.evaluations) == 0


def test_several_outputs_with_noise_and_cost():
    objectives = {"peak": "EXPLORE", "time": "EXPLORE"}
    given = problem(
        objectives=objectives, variables={"x": [0, 1]}, observables={"peak_variance", "time_variance", "cost"}
    )
    generator = amsbq.gest.Generator(given, seed=1, model="icm")
    [point] = generator.suggest(1)
    seen = {"peak": 2.0, "time": np.nan, "peak_variance": 0.25, "time_variance": 0.5, "cost": 3.0}
    generator.ingest([{**point, **seen}])
    [made] = generator.integrator.evaluations
    assert made.value.tolist() == pytest.approx([2.0, np.nan], nan_ok=True)
    assert made.variance[0] == 0.25
    assert made.cost == 3.0


def test_other_distributions_go_over_their_whole_support():
    inputs = {"x": stats.norm(0.5, 0.1)}
    with pytest.raises(ValueError, match="beyond its domain"):
        amsbq.gest.Generator(problem(), inputs, SOURCES)
    wide = problem(variables={"x": [-np.inf, np.inf], "source": {"fine", "coarse"}})
    assert amsbq.gest.Generator(wide, inputs, SOURCES).integrator.inputs == ["x"]
    with pytest.raises(ValueError, match="pass the distribution of 'x'"):
        amsbq.gest.Generator(wide, sources=SOURCES)


def test_the_end_of_the_budget():
    generator = amsbq.gest.Generator(problem(variables={"x": [0, 1]}), budget=2, model="icm")
    with pytest.raises(ValueError, match="only 2 of 3 points"):
        generator.suggest(3)
    points = generator.suggest(2)  # which are not lost
    generator.ingest([{**point, "f": point["x"]} for point in points])
    with pytest.raises(ValueError, match="only 0 of 1 points are left to evaluate: budget"):
        generator.suggest()


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"constraints": {"c": ["LESS_THAN", 0]}}, "no constraints"),
        ({"objectives": {}}, "no output"),
        ({"variables": {"source": {"fine", "coarse"}}}, "no inputs"),
        ({"variables": {"x": {1, 2}, "source": {"fine", "coarse"}}}, "pass the distribution of 'x'"),
        ({"variables": {"x": [0, 1], "source": {"fine", "other"}}}, "names of the sources"),
        ({"variables": {"x": [0, 1]}}, "names of the sources"),
    ],
)
def test_problems_that_are_none_of_its(others, message):
    with pytest.raises(ValueError, match=message):
        amsbq.gest.Generator(problem(**others), sources=SOURCES)


@pytest.mark.filterwarnings("ignore")  # of libEnsemble and of processes that it forks
def test_libensemble_runs_it(monkeypatch, tmp_path):
    pytest.importorskip("libensemble")
    from libensemble import Ensemble
    from libensemble.alloc_funcs.start_only_persistent import only_persistent_gens
    from libensemble.specs import AllocSpecs, ExitCriteria, GenSpecs, LibeSpecs, SimSpecs

    monkeypatch.chdir(tmp_path)
    vocs = problem()
    generator = amsbq.gest.Generator(vocs, sources=SOURCES, seed=0, model="icm")
    ensemble = Ensemble(
        libE_specs=LibeSpecs(
            comms="local", nworkers=2, gen_on_manager=True, final_gen_send=True, disable_log_files=True, safe_mode=False
        ),
        gen_specs=GenSpecs(generator=generator, batch_size=2, vocs=vocs),
        sim_specs=SimSpecs(simulator=simulator, vocs=vocs),
        alloc_specs=AllocSpecs(alloc_f=only_persistent_gens, user={"async_return": True}),
        exit_criteria=ExitCriteria(sim_max=14),
    )
    history, _, _ = ensemble.run()
    done = history[history["sim_ended"]]
    assert len(done) >= 14
    assert set(done["source"]) == {"fine", "coarse"}
    it = generator.integrator
    assert len(it.evaluations) >= 12
    assert {(made.x[0], made.value) for made in it.evaluations} <= set(zip(done["x"], done["f"], strict=True))
    low, high = it.estimate().interval(0.95)
    assert low < TRUTH < high
    assert high - low < 1
