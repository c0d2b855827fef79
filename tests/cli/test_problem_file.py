"""Problem files: what they mean, and a thousand that are wrong."""

import copy
import json
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.cli.main import main
from amsbq.problems import schema
from amsbq.problems.problem_file import ProblemError, load_problem
from amsbq.simulators.commands import Command
from amsbq.simulators.umbridge import UMBridge

EXAMPLES = Path(__file__).parents[2] / "examples"

MODULE = """
import pathlib
def f(x):
    (pathlib.Path(__file__).parent / "evaluated").touch()
    return x[0] + x[1]
def g(x):
    return x[0]
number = 3
"""

GOOD = {
    "budget": 6.0,
    "seed": 3,
    "model": "icm",
    "acquisition": "ivr",
    "rel_tol": 0.01,
    "inputs": {
        "a": {"distribution": "gamma", "a": 5, "loc": 1, "scale": 4},
        "b": {"low": 0.0, "high": 1.0},
        "c": {"distribution": "norm"},
    },
    "sources": [
        {"name": "fine", "python": "my_problem:f", "cost": 1.0, "timeout": 60, "valid": [0, 100]},
        {"name": "program", "command": [sys.executable, "-c", "print({a} + {b})"], "cost": 0.1, "noise": "learn"},
        {
            "name": "server",
            "umbridge": {"url": "http://127.0.0.1:4242", "model": "forward", "config": {"level": 1}, "output": 0},
            "cost": "measured",
            "noise": 0.01,
        },
    ],
}


def toml(value):
    """A value as TOML, all tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(entry) for entry in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else repr(value)


@pytest.fixture
def write(tmp_path):
    (tmp_path / "my_problem.py").write_text(MODULE)

    def written(content):
        path = tmp_path / "problem.toml"
        text = (
            content
            if isinstance(content, str)
            else "".join(f"{key} = {toml(value)}\n" for key, value in content.items())
        )
        path.write_text(text)
        return path

    yield written
    sys.modules.pop("my_problem", None)


def test_what_a_problem_file_means(write):
    problem = load_problem(write(GOOD))
    assert problem.names == ["a", "b", "c"]
    expected = amsbq.as_measure([stats.gamma(5, loc=1, scale=4), (0.0, 1.0), stats.norm()])
    assert problem.measure.same_as(expected)
    fine, program, server = problem.sources
    assert (fine.cost, fine.timeout, fine.valid) == (1.0, 60.0, (0.0, 100.0))
    assert isinstance(program.function, Command)
    assert program.noise == "learn"
    assert isinstance(server.function, UMBridge)
    assert server.function.config == {"level": 1}
    assert server.cost == "measured"
    run = problem.described
    assert (run.seed, run.model.name, run.acquisition) == (3, "icm", "ivr")
    assert (problem.budget, run.goals.relative, run.goals.absolute) == (6.0, 0.01, 0.0)
    assert program.function(np.array([1.0, 2.0, 3.0])).value == 3.0


def test_the_order_of_fidelity_is_given_by_names(write):
    names = [source["name"] for source in GOOD["sources"]]
    problem = load_problem(write(GOOD | {"order": [names[0], names[2], names[1]]}))
    assert problem.integrator().problem.order == [0, 2, 1]
    for wrong in (names[::-1], names[:2], "fine", [1, 2]):
        with pytest.raises(ProblemError, match="order: must be the names of all sources, the primary one first"):
            load_problem(write(GOOD | {"order": wrong}))


LEVELS = """
budget = 4.0
[inputs]
a = { low = 0.0, high = 1.0 }
b = { low = 0.0, high = 1.0 }
[[sources]]
fidelity = { cells = [64, 16, 4] }
"""
WITH_CELLS = "def solve(x, cells):\n    return x[0] * x[1] + x[0] / cells\n"


def test_one_source_makes_several(write, tmp_path, typed):
    """From check to report, with the number of cells in a deck."""
    (tmp_path / "deck.in").write_text("mesh = {cells:d}\na = {a:.17g}\nb = {b}\n")
    (tmp_path / "solver.py").write_text(
        "at = dict(line.split(' = ') for line in open('deck.in'))\n"
        "a, b, cells = float(at['a']), float(at['b']), int(at['mesh'])\nprint(a * b + a / cells)\n"
    )
    path = write(
        LEVELS + f"cost = [1.0, 0.25, 0.06]\ncommand = [{sys.executable!r}, 'solver.py']\ntemplate = 'deck.in'\n"
    )
    problem = load_problem(path)
    assert [source.name for source in problem.sources] == ["cells=64", "cells=16", "cells=4"]
    assert [source.cost for source in problem.sources] == [1.0, 0.25, 0.06]
    assert [source.fidelity for source in problem.sources] == [{"cells": 1 / n} for n in (64, 16, 4)]
    assert problem.sources[1].function(np.array([0.5, 0.2])).value == pytest.approx(0.1 + 0.5 / 16)
    assert problem.sources[1].function.source_definition()["settings"] == {"cells": 16}
    assert "cells=16" in typed("check", path).out
    typed("run", path)
    assert "cells=64" in typed("status", tmp_path / "problem.jsonl").out
    typed("report", tmp_path / "problem.jsonl")
    found = amsbq.read_result(tmp_path / "problem.jsonl")
    assert abs(found.mean - (0.25 + 0.5 / 64)) < max(4 * found.std, 1e-3)


def test_levels_of_functions_and_servers(write, tmp_path):
    (tmp_path / "my_problem.py").write_text(WITH_CELLS)
    problem = load_problem(write(LEVELS + "python = 'my_problem:solve'\nname = 'heat'\ncost = 'measured'\n"))
    assert [source.name for source in problem.sources] == ["heat, cells=64", "heat, cells=16", "heat, cells=4"]
    assert problem.sources[2].function(np.array([0.5, 0.2])) == 0.1 + 0.5 / 4
    assert {source.cost for source in problem.sources} == {"measured"}
    config = "{ mesh = '{cells}', file = 'mesh-{cells}.msh', fixed = 3, more = ['{cells}'] }"
    problem = load_problem(write(LEVELS + f"umbridge = {{ url = 'http://127.0.0.1:1', config = {config} }}\n"))
    assert problem.sources[1].function.config == {"mesh": 16, "file": "mesh-16.msh", "fixed": 3, "more": [16]}
    two = LEVELS.replace("{ cells = [64, 16, 4] }", "{ cells = [64, 16], dt = [0.1, 0.2] }") + "detached = true\n"
    assert [source.name for source in load_problem(write(two)).sources][2] == "cells=16, dt=0.1"
    single = LEVELS.replace("[64, 16, 4]", "0.01") + "python = 'my_problem:solve'\nname = 'fine'\n"
    assert [(source.name, source.fidelity) for source in load_problem(write(single)).sources] == [
        ("fine", {"cells": 0.01})
    ]


def test_a_range_of_a_knob(write, tmp_path):
    (tmp_path / "my_problem.py").write_text("def solve(x, cells, dt):\n    return x[0] * x[1] + x[0] / cells + dt\n")
    text = LEVELS.replace("[64, 16, 4]", "{ finest = 64, coarsest = 4 }, dt = [0.1, 0.2]")
    problem = load_problem(write(text + "python = 'my_problem:solve'\ncost = { finest = 2.0, cells = 2, dt = 1 }\n"))
    settings = [(cells, dt) for cells in (64, 45, 32, 23, 16, 11, 8, 6, 4) for dt in (0.1, 0.2)]
    assert [source.fidelity for source in problem.sources] == [{"cells": 1 / n, "dt": dt} for n, dt in settings]
    expected = [2 * (n / 64) ** 2 * (0.1 / dt) for n, dt in settings]
    np.testing.assert_allclose([source.cost for source in problem.sources], expected)


@pytest.mark.parametrize(
    ("fidelity", "more", "says"),
    [
        ("{ cells = [64, 16, 32] }", "", "sources[0].fidelity: the knob cells must have a list"),
        ("{ cells = '64' }", "", "sources[0].fidelity: the knob cells must have a list"),
        ("[64, 16]", "", "sources[0].fidelity: must be a table of lists, the finest value first"),
        ("{}", "", "sources[0].fidelity: must be a table of lists"),
        ("{ a = [1, 2] }", "", "sources[0].fidelity: a is an input"),
        ("{ cells = [64, 16] }", "cost = [1.0, 0.5, 0.1]", "sources[0].cost: has 3 numbers for 2 levels"),
        ("{ cells = [64, 16] }", "cost = 'free'", "sources[0].cost: must be a positive number, 'measured', a list"),
        (
            "{ cells = [64, 16] }",
            "cost = { finest = 1.0 }",
            "sources[0].cost: must have a number for finest, cells, got",
        ),
        ("{ cells = [64, 16] }", "cost = { finest = 0, cells = 1 }", "sources[0].cost: must be a positive number"),
        ("{ cells = { finest = 64 } }", "", "sources[0].fidelity: a range is two numbers"),
        ("{ cells = { finest = 64, coarsest = 64 } }", "", "sources[0].fidelity: a range of the knob cells is two"),
    ],
)
def test_levels_that_are_wrong(write, tmp_path, fidelity, more, says):
    (tmp_path / "my_problem.py").write_text(WITH_CELLS)
    text = LEVELS.replace("{ cells = [64, 16, 4] }", fidelity) + f"python = 'my_problem:solve'\n{more}\n"
    with pytest.raises(ProblemError) as raised:
        load_problem(write(text))
    assert len(raised.value.errors) == 1
    assert raised.value.errors[0].startswith(says)


def test_decisions_may_cost_something(write):
    problem = load_problem(write({**GOOD, "decision_cost": 0.25}))
    assert problem.integrator().ledger.decisions.per_second == 0.25
    assert load_problem(write(GOOD)).integrator().ledger.decisions.per_second == 0
    with pytest.raises(ProblemError, match=r"decision_cost.*positive"):
        load_problem(write({**GOOD, "decision_cost": -1}))


def test_samples_with_weights(write, tmp_path):
    (tmp_path / "posterior.csv").write_text("a, weight, b\n1.0, 1, 2.0\n3.0, 3, 4.0\n")
    content = {key: value for key, value in GOOD.items() if key != "inputs"} | {"samples": "posterior.csv"}
    content["sources"] = content["sources"][:1]
    problem = load_problem(write(content))
    assert problem.names == ["a", "b"]
    np.testing.assert_array_equal(problem.measure.samples, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(problem.measure.weights, [0.25, 0.75])


def test_all_that_is_wrong_is_said_at_once(write):
    content = copy.deepcopy(GOOD)
    del content["budget"], content["rel_tol"]
    content["modle"] = "icm"
    content["inputs"]["a"]["scale"] = -4
    content["sources"][1]["cost"] = -1
    with pytest.raises(ProblemError) as error:
        load_problem(write(content))
    said = str(error.value).splitlines()
    assert len(said) == 4
    for line, part in zip(
        said,
        (
            "modle: is not known (did you mean 'model'?)",
            "budget: is missing: in units of cost, such as budget = 10.0",
            "inputs.a: gamma does not exist for a = 5, loc = 1, scale = -4",
            "sources[1].cost: must be a positive number or 'measured', got -1",
        ),
        strict=True,
    ):
        assert part in line
        assert "problem.toml: " in line


def places(content, path=()):
    """Every table, list and value in a problem, as a path."""
    yield path
    if isinstance(content, dict):
        for key in content:
            yield from places(content[key], (*path, key))
    elif isinstance(content, list):
        for i in range(len(content)):
            yield from places(content[i], (*path, i))


def at(content, path):
    for key in path:
        content = content[key]
    return content


#: removing these, or giving them another number or name, leaves a problem that is right
OPTIONAL = {"seed", "model", "acquisition", "rel_tol", "cost", "timeout", "valid", "noise", "name", "loc", "scale"}


def wrong_types(content, rng):
    path = rng.choice([p for p in places(content) if p and "config" not in p])
    parent, value = at(content, path[:-1]), at(content, path)
    others = ["text", -7.25, True, [1, "two"], {"strange": 1}, [], ""]
    parent[path[-1]] = rng.choice([o for o in others if type(o) is not type(value)])
    return f"{path} is {parent[path[-1]]!r}", content


def missing_keys(content, rng):
    required = [
        ("budget",),
        ("inputs",),
        ("sources",),
        ("inputs", "a", "a"),
        ("inputs", "b", "low"),
        ("inputs", "b", "high"),
    ]
    required += [("sources", 0, "python"), ("sources", 1, "command"), ("sources", 2, "umbridge")]
    required += [("sources", 2, "umbridge", "url")]
    path = rng.choice(required)
    del content["rel_tol"]  # with which a budget is not needed
    del at(content, path[:-1])[path[-1]]
    return f"{path} is missing", content


def unknown_keys(content, rng):
    tables = [p for p in places(content) if isinstance(at(content, p), dict) and "config" not in p and p != ("inputs",)]
    path = rng.choice(tables)
    name = "".join(rng.choices("abcdefghij_", k=rng.randint(3, 9)))
    at(content, path)[f"z{name}"] = rng.choice([1, "x", True])
    return f"{path} has {name}", content


def impossible_distributions(content, rng):
    content["inputs"]["a"] = rng.choice(
        [
            {"distribution": "gamma", "a": -rng.uniform(0.1, 5)},
            {"distribution": "beta", "a": 1, "b": -rng.uniform(0.1, 5)},
            {"distribution": "norm", "scale": -rng.uniform(0.1, 5)},
            {"distribution": "norm", "scale": 0},
            {"distribution": f"gam{rng.randint(0, 99)}"},
            {"distribution": "poisson", "mu": -rng.uniform(1, 5)},
            {"probabilities": {"on": 0.5, "off": rng.uniform(0.6, 0.9)}},
            {"values": [1, 2], "probabilities": [rng.uniform(0, 0.4), 0.5]},
            {"values": [1, 1], "probabilities": [0.5, 0.5]},
            {"distribution": "linregress"},
            {"low": 1.0, "high": 1.0 - rng.uniform(0, 1)},
            {"distribution": "norm", "loc": float("nan")},
            {"low": float("-inf"), "high": 1.0},
        ]
    )
    return f"a is {content['inputs']['a']}", content


def negative_costs(content, rng):
    source = rng.choice(content["sources"])
    key = rng.choice(["cost", "timeout", "noise"])
    source[key] = rng.choice([-rng.uniform(0.1, 5), float("nan"), float("inf"), -1])
    return f"{key} is {source[key]}", content


def unknown_kinds(content, rng):
    source = rng.choice(content["sources"])
    for kind in ("python", "command", "umbridge"):
        source.pop(kind, None)
    if rng.random() < 0.7:
        source[rng.choice(["julia", "matlab", "url", "fortran", "exec"])] = "something"
    else:
        source.update(
            rng.choice([{"python": "nowhere_to_be_found:f"}, {"python": "my_problem:h"}, {"python": "my_problem"}])
        )
    return "kind", content


def wrong_sources(content, rng):
    content["sources"][1:2] = [
        rng.choice(
            [
                {"command": ["./not-there", "{a}"]},
                {"command": ["no-such-program-anywhere"]},
                {"command": [sys.executable, "{nothing}"]},
                {"command": []},
                {"command": [1, 2]},
                {"python": "my_problem:number"},
                {"python": "my_problem:f", "command": ["awk"]},
                {"umbridge": {"url": "127.0.0.1"}},
                {"umbridge": {"url": "http://127.0.0.1", "output": "first"}},
                {"umbridge": {"url": "http://127.0.0.1", "port": 80}},
                {"python": "my_problem:f", "valid": [3, 1]},
                {"python": "my_problem:f", "valid": [1]},
            ]
        )
    ]
    return "source", content


def duplicate_names(content, rng):
    first, second = rng.sample(range(3), 2)
    content["sources"][first]["name"] = content["sources"][second]["name"]
    return "names", content


def wrong_settings(content, rng):
    key, value = rng.choice(
        [
            ("model", "best"),
            ("acquisition", "ei"),
            ("seed", -1),
            ("seed", 1.5),
            ("budget", 0),
            ("budget", -3.0),
            ("budget", 0.5),
            ("rel_tol", 0),
            ("abs_tol", -1e-3),
            ("samples", "posterior.csv"),
            ("sources", []),
            ("inputs", {}),
        ]
    )
    content[key] = value
    return f"{key} is {value}", content


def not_toml(content, rng):
    text = "".join(f"{key} = {toml(value)}\n" for key, value in content.items())
    cut = rng.randrange(10, len(text) - 5)
    return "cut", text[:cut] + rng.choice(["\n= 3\n", "\n[[[\n", "\n'unfinished\n", "\nbudget = = 1\n"])


FAULTS = [
    wrong_types,
    missing_keys,
    unknown_keys,
    impossible_distributions,
    negative_costs,
    unknown_kinds,
    wrong_sources,
    duplicate_names,
    wrong_settings,
    not_toml,
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.__name__)
def test_files_with_one_fault_each(write, tmp_path, capsys, fault):
    for seed in range(30):
        what, content = fault(copy.deepcopy(GOOD), random.Random(seed))
        path = write(content)
        assert main(["run", str(path)]) == 2, what
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith(str(path)), what
        assert "Traceback" not in said.err
        assert len(said.err.splitlines()) <= 4, said.err
        assert not (tmp_path / "evaluated").exists()
        assert not path.with_suffix(".jsonl").exists()


def test_the_good_one_is_good(write):
    assert load_problem(write(GOOD)).names == ["a", "b", "c"]


def test_programs_are_found_beside_the_problem_file_or_on_the_path(write, tmp_path, monkeypatch):
    """With a slash in its name a program is relative to the problem file, as when it is run; without one, on PATH."""
    (tmp_path / "bin").mkdir()
    for path in (tmp_path / "beside", tmp_path / "bin" / "installed"):
        path.write_text("#!/bin/sh\necho 3\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "here").symlink_to(tmp_path / "beside")
    monkeypatch.chdir(tmp_path / "elsewhere")
    for program in ("./beside", str(tmp_path / "beside"), "installed"):
        [source] = load_problem(write({**GOOD, "sources": [{"command": [program]}]})).sources
        assert source.function(np.zeros(3)).value == 3.0
    for program in ("beside", "./here", "./installed"):
        with pytest.raises(ProblemError, match=f"there is no executable program '{program}'"):
            load_problem(write({**GOOD, "sources": [{"command": [program]}]}))


BAD_MODULES = {
    "sys.exit(3)": r"the module my_bad calls sys\.exit\(3\) when it is imported: put its program code",
    "sys.exit('no licence')": r"calls sys\.exit\('no licence'\) when it is imported",
    "raise GeneratorExit('over')": "GeneratorExit: over",
    "raise OSError('\\udcff\\n\\x1b[31m')": r"OSError: \\udcff \\x1b\[31m",
}


@pytest.mark.parametrize("code", BAD_MODULES)
def test_modules_that_cannot_be_imported_are_one_line(write, tmp_path, capsys, monkeypatch, code):
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "my_bad.py").write_text(f"import sys\n{code}\n")
    path = write({**GOOD, "sources": [{"python": "my_bad:f"}]})
    assert main(["run", str(path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}: sources[0].python: ")
    assert re.search(BAD_MODULES[code], line)


@pytest.mark.parametrize(
    "number", ["1" * 400, "-" + "1" * 400, "1" * 5000, "0x" + "f" * 400, "0x" + "f" * 5000], ids=lambda n: n[:3]
)
@pytest.mark.parametrize("key", ["budget", "seconds", "valid", "low"])
def test_integers_of_any_size_are_one_line(write, capsys, key, number):
    content = {
        "budget": "budget = NUMBER\n[inputs]\na = { low = 0, high = 1 }\n[[sources]]\ncommand = ['echo', '1']\n",
        "seconds": "budget = 2\n[inputs]\na = { low = 0, high = 1 }\n[[sources]]\ncommand = ['echo', '1']\n"
        "timeout = NUMBER\n",
        "valid": "budget = 2\n[inputs]\na = { low = 0, high = 1 }\n[[sources]]\ncommand = ['echo', '1']\n"
        "valid = [0, NUMBER]\n",
        "low": "budget = 2\n[inputs]\na = { low = NUMBER, high = 1 }\n[[sources]]\ncommand = ['echo', '1']\n",
    }[key]
    path = write(content.replace("NUMBER", number))
    assert main(["run", str(path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}: ")


def test_nested_without_end_is_one_line(write, capsys):
    path = write("a = " + "[" * 100_000)
    assert main(["run", str(path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}: is not TOML: ")


def test_files_may_begin_with_a_byte_order_mark(write, tmp_path):
    (tmp_path / "s.csv").write_text("a,b\n1.0,2.0\n3.0,4.0\n", encoding="utf-8-sig")
    path = write({"budget": 3.0, "samples": "s.csv", "sources": [{"command": ["echo", "{a}"]}]})
    path.write_text(path.read_text(), encoding="utf-8-sig")
    problem = load_problem(path)
    assert problem.names == ["a", "b"]
    assert problem.sources[0].function(np.array([1.5, 2.0])).value == 1.5


def test_names_of_samples_may_have_spaces_and_signs(write, tmp_path):
    (tmp_path / "s.csv").write_text("flow rate,T-in (K)\n1.0,2.0\n3.0,4.0\n")
    path = write({"budget": 3.0, "samples": "s.csv", "sources": [{"command": ["echo", "{T-in (K):.1f}"]}]})
    assert load_problem(path).sources[0].function(np.array([1.5, 2.46])).value == 2.5


def test_files_that_are_not_there(tmp_path, capsys):
    assert main(["run", str(tmp_path / "nothing.toml")]) == 2
    assert "nothing.toml: cannot be read: No such file or directory" in capsys.readouterr().err


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_columns_of_samples_have_any_separator(write, tmp_path, mark):
    (tmp_path / "s.csv").write_text("a,b\n1.0,2.0\n3.0,4.0\n\n".replace(",", mark))
    problem = load_problem(write({"budget": 3.0, "samples": "s.csv", "sources": GOOD["sources"][:1]}))
    assert problem.names == ["a", "b"]
    assert problem.measure.bounds.tolist() == [[1.0, 3.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n3\n", "line 3 of s.csv must be 2 numbers, got 3"),
        ("a,b\n1,x\n", "line 2 of s.csv must be 2 numbers"),
        ("a;b\n0.5;0,5\n", "line 2 of s.csv must be 2 numbers, got 0.5;0,5; write a decimal point, not a comma"),
        ("", "must have a header line of names"),
        ("a,a\n1,2\n", "two columns with the same name"),
        ("a,weight\n1,-2\n", "weights must not be negative"),
    ],
)
def test_samples_that_are_wrong(write, tmp_path, text, said):
    (tmp_path / "s.csv").write_text(text)
    content = {"budget": 3.0, "samples": "s.csv", "sources": GOOD["sources"][:1]}
    with pytest.raises(ProblemError, match=said):
        load_problem(write(content))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("inputs", "b"), {"values": [0, [1]], "probabilities": [0.5, 0.5]}, "inputs.b: must be { probabilities = "),
        (("sources", 2, "outputs"), 1, "sources[2].outputs: must be some of "),
        (("sources", 2, "umbridge", "output"), "first", "sources[2].umbridge.output: must be one number, got 'first'"),
        (("sources", 0, "keep"), "all", "sources[0].keep: belongs to a command, but this source is python"),
    ],
)
def test_values_that_belong_elsewhere_are_one_line(write, path, value, said):
    content = copy.deepcopy(GOOD)
    at(content, path[:-1])[path[-1]] = value
    with pytest.raises(ProblemError) as raised:
        load_problem(write(content))
    [line] = raised.value.errors
    assert line.startswith(said)


def test_every_key_is_on_the_page():
    page = (EXAMPLES.parent / "docs" / "reference" / "problem-files.md").read_text(encoding="utf-8")
    tables = (schema.PROBLEM, schema.BOUNDS, schema.PROBABILITIES, schema.SOURCE, schema.UMBRIDGE)
    keys = [key for table in tables for key in table]
    assert [key for key in keys if not re.search(rf"(?:^|[`\[{{,;#]) ?{key}(?:[`\]]| =)", page, re.MULTILINE)] == []


def test_dependent_and_discrete_inputs():
    """The example: a copula of two inputs, and a category besides; the others of a file stay where they are."""
    problem = load_problem(EXAMPLES / "turbine" / "problem.toml")
    assert problem.names == ["wind", "turbulence", "mode"]
    measure = problem.measure
    assert measure.categorical == (2,)
    X = measure.sample(4000, 0)
    assert -0.56 < stats.spearmanr(X[:, 0], X[:, 1]).statistic < -0.40
    assert np.mean(X[:, 2] == 2) == pytest.approx(0.7, abs=0.03)
    assert stats.kstest(X[:, 0], stats.weibull_min(2, scale=9).cdf).pvalue > 1e-3
    truth = np.mean([problem.sources[1].function(x) for x in X])
    found = amsbq.integrate(problem.sources[1].function, measure, budget=20)
    assert found.mean == pytest.approx(truth, abs=2.5)  # the standard error of 4,000 draws is 0.4


def inputs_of(tmp_path, text):
    (tmp_path / "f.py").write_text("def f(x):\n    return 1.0\n")
    (tmp_path / "problem.toml").write_text(f'budget = 3\n{text}\n[[sources]]\npython = "f:f"\n')
    return load_problem(tmp_path / "problem.toml").measure


def test_counts_between_correlated_inputs(tmp_path):
    measure = inputs_of(
        tmp_path,
        """
        [inputs]
        a = { low = 0, high = 2 }
        n = { values = [0, 1, 4], probabilities = [0.2, 0.5, 0.3] }
        b = { distribution = "norm" }
        k = { distribution = "poisson", mu = 3, loc = 1 }
        [correlations]
        b = { a = 0.8, k = 0.5 }
        """,
    )
    X = measure.sample(3000, 1)
    assert set(X[:, 1]) == {0, 1, 4}
    assert measure.discrete == (1, 3)
    assert stats.spearmanr(X[:, 0], X[:, 2]).statistic > 0.75
    assert 0.4 < stats.spearmanr(X[:, 2], X[:, 3]).statistic < 0.55
    assert X[:, 3].mean() == pytest.approx(4, abs=0.15)
    found = amsbq.integrate(lambda x: x[0] + x[1] * x[3], measure, budget=12, seed=0, progress=False)
    assert found.mean == pytest.approx(1 + 1.7 * 4, abs=4 * found.std + 0.02)
    assert measure.bounds[:2].tolist() == [[0, 2], [0, 4]]


@pytest.mark.parametrize(
    ("correlations", "message"),
    [
        ("a = { b = 1.5 }", "correlations: correlation must be positive semi-definite"),
        ("a = { c = 0.5 }", "correlations.a.c: there is no input 'c'"),
        ("a = { a = 1 }", "correlations.a.a: the correlation of an input with itself is 1"),
        ("a = { n = 0.5 }", "categories have no order"),
        ("a = 0.5", "correlations: must be a table of pairs"),
        ("a = { b = 'x' }", "correlations.a.b"),
    ],
)
def test_correlations_that_are_wrong(tmp_path, correlations, message):
    inputs = "[inputs]\na = { low = 0, high = 1 }\n"
    inputs += "b = { distribution = 'norm' }\nn = { probabilities = { x = 0.5, y = 0.5 } }"
    with pytest.raises(ProblemError, match=message):
        inputs_of(tmp_path, f"{inputs}\n[correlations]\n{correlations}")


BY_NAME = """
budget = 4
[inputs]
speed = { low = 0, high = 2 }
mode = { probabilities = { idle = 0.2, full = 0.8 } }
[[sources]]
name = "fine"
python = "named:fine"
[[sources]]
name = "coarse"
python = "named:coarse"
cost = 0.1
inputs = ["speed"]
"""


def test_functions_get_inputs_by_name_and_some_of_them_only(tmp_path):
    (tmp_path / "named.py").write_text(
        "def fine(speed, mode):\n    return speed**2 + {'idle': 1, 'full': 2}[mode]\n"
        "def coarse(x):\n    assert x.shape == (1,)\n    return x[0] ** 2\n"
    )
    file = tmp_path / "problem.toml"
    file.write_text(BY_NAME)
    fine, coarse = load_problem(file).integrator().sources
    assert fine.function(np.array([0.5, 1])) == 2.25
    assert coarse.function(np.array([0.5, 1])) == 0.25
    assert main(["check", str(file)]) == 0
    assert main(["run", str(file)]) == 0
    assert amsbq.read_result(tmp_path / "problem.jsonl").mean == pytest.approx(4 / 3 + 1.8, abs=0.3)
    file.write_text(BY_NAME.replace('["speed"]', '["sped"]'))
    with pytest.raises(ProblemError, match=r"sources\[1\].inputs: must be some of speed, mode, got \['sped'\]"):
        load_problem(file)
    file.write_text(BY_NAME.replace('python = "named:coarse"', 'command = ["echo", "{speed}"]'))
    with pytest.raises(ProblemError, match=r"sources\[1\].inputs: belongs to functions and servers"):
        load_problem(file)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("seed = true", "seed: must be a non-negative whole number, got true"),
        ("seed = 1979-05-27", "seed: must be a non-negative whole number, got 1979-05-27"),
        ("rel_tol = { peak = 0.1 }", "rel_tol: must be a positive number, got { peak = 0.1 }"),
        ("rel_tol = 5", "rel_tol: is a fraction of the mean"),
        ("weights = 'x'", "weights: must be positive numbers, one for each output"),
        ("log = true\noutput_range = [0, 1]", "log: is for sources that return logarithms"),
    ],
)
def test_mistakes_are_said_in_the_words_of_the_file(tmp_path, line, said):
    path = tmp_path / "problem.toml"
    path.write_text(
        f"{line}\nbudget = 3\n[inputs]\na = {{ low = 0, high = 1 }}\n[[sources]]\ncommand = ['echo', '1']\n"
    )
    with pytest.raises(ProblemError) as raised:
        load_problem(path)
    assert raised.value.errors[0].startswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("gradient = true", "sources[0].gradient: belongs to functions and servers, but this source is command"),
        ("keep = true", "sources[0].keep: must be 'failed', 'all' or 'none', got true"),
        ("output = { json = 'a[' }", "sources[0].output: json of an output rule must be a path such as a.b[0]"),
        (
            "output = { row = 'peak' }",
            "sources[0].output: row of an output rule must be a whole number",
        ),
        ("output = { regex = 3 }", "sources[0].output: regex of an output rule must be a string in quotes, got 3"),
        (
            "output = { column = 0.5 }",
            "sources[0].output: column of an output rule must be a name in quotes or a",
        ),
        ("cost = 0", "sources[0]: echo is the primary source: it must cost something"),
    ],
)
def test_mistakes_of_sources_name_their_key(tmp_path, line, said):
    path = tmp_path / "problem.toml"
    path.write_text(
        f"budget = 3\n[inputs]\na = {{ low = 0, high = 1 }}\n[[sources]]\ncommand = ['echo', '1']\n{line}\n"
    )
    with pytest.raises(ProblemError) as raised:
        load_problem(path)
    assert [error[: len(said)] for error in raised.value.errors] == [said]


def test_probabilities_that_are_wrong_name_their_input(tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text(
        "budget = 3\n[inputs]\nmode = { probabilities = { a = 0.5, b = 0.6 } }\n[[sources]]\ndetached = true\n"
    )
    with pytest.raises(
        ProblemError, match=r"inputs\.mode\.probabilities: must be numbers from 0 to 1 that sum to 1, got "
    ):
        load_problem(path)
