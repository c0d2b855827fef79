"""What users get wrong: one clear error before anything is spent, or the right answer, and never a wrong one."""

import codecs
import math
import re
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import amsbq
from amsbq.cli.main import main
from amsbq.execution import locks

SQUARE = {"a": (0, 1), "b": (0, 1)}


def spent(x):
    raise AssertionError("nothing may be evaluated")


class Rows:
    """A table, which is several lines where it is shown."""

    def __repr__(self):
        return "   a  b\n   1  2"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: amsbq.integrate(spent, SQUARE, budget=3, log="no"), "log must be True, False, or a dictionary"),
        (lambda: amsbq.integrate(spent, SQUARE, budget=3, log=["p"]), "log must be True, False, or a dictionary"),
        (
            lambda: amsbq.integrate(spent, SQUARE, budget=3, rel_tol=5),
            "rel_tol is a fraction of the mean, such as 0.05",
        ),
        (lambda: amsbq.integrate(spent, SQUARE, budget=3, initial=5), r"initial must be a list of \(source, x\)"),
        (lambda: amsbq.integrate(spent, SQUARE, budget=3, journal=True), "journal must be the name of a file"),
        (lambda: amsbq.integrate(spent, np.ones((100, 2)), budget=3), r"if its rows are samples, give Empirical"),
        (
            lambda: amsbq.estimate(["fine", "coarse"], [[0.1], [0.5]], [1.0, 2.0], (0, 1)),
            "sources must be numbers, 0 for the primary source",
        ),
        (lambda: amsbq.Source(spent, vectorized="yes"), "vectorized must be True or False"),
        (lambda: amsbq.Source(spent, inputs=["a", "a"]), r"different names, such as \['speed', 'angle'\]"),
        (
            lambda: amsbq.integrate(lambda a, bb: 0.0, SQUARE, budget=3),
            r"has the parameter 'bb', which is not an input \(did you mean 'b'\?\): the inputs are a, b",
        ),
        (lambda: amsbq.GaussianCopula([(1, 0), (0, 2)], np.eye(2)), r"marginals\[0\] is \(1, 0\), but an interval is"),
        (lambda: amsbq.Gaussian([0, 0], [[1, 2], [2, 1]]), "or a negative one"),
        (lambda: amsbq.external.PythonFunction("sim.py:fine"), "a module must be named without .py: sim:fine"),
        (
            lambda: amsbq.integrate(spent, {"a": 3.0, "b": (0, 1)}, budget=3),
            r"the input 'a' is 3.0, and needs a distribution, .* or a pair of limits.*a constant is not an input",
        ),
        (
            lambda: amsbq.integrate(spent, {0: (0, 1)}, budget=3),
            r"0 is not the name of an input: .*\{'speed': \(0, 1\)\}",
        ),
        (
            lambda: amsbq.integrate(spent, {"a": (0, math.inf)}, budget=3),
            r"a is \(0, inf\), but the ends of an interval must be finite",
        ),
        (lambda: amsbq.integrate(spent, SQUARE, budget=3, stop=3), "stop must be callables that take the Integrator"),
        (lambda: amsbq.integrate(spent, {}, budget=3), "a dictionary of inputs must have one at least"),
        (
            lambda: amsbq.integrate(spent, {"a": 0.3, "b": 0.7}, budget=3),
            r"the input 'a' is 0.3, and needs a distribution.*of one input: \{'mode': \{'a': 0.3, 'b': 0.7\}\}",
        ),
        (lambda: amsbq.integrate(0.5, SQUARE, budget=3), "got 0.5; give the function itself, without calling it"),
        (
            lambda: amsbq.integrate({"fine": spent}, SQUARE, budget=3),
            r"a name is given with Source\(function, name=...\)",
        ),
        (
            lambda: amsbq.integrate([spent, (spent, 0.1)], SQUARE, budget=3),
            r"sources\[1\] .*a cost is given with Source\(function, cost=...\)",
        ),
        (
            lambda: amsbq.integrate(spent, SQUARE, budget=3, executor=ThreadPoolExecutor, progress=False),
            r"executor must be .*it is a class: pass ThreadPoolExecutor\(...\)",
        ),
        (lambda: amsbq.integrate(spent, SQUARE, budget=3, workers=0), "workers must be at least 1, got 0"),
        (lambda: amsbq.integrate(spent, SQUARE, max_evaluations=0), "max_evaluations must be at least 1, got 0"),
        (
            lambda: amsbq.integrate(spent, SQUARE, budget=3, initial=[(0, 0.5)]),
            r"x of initial\[0\] must have 2 numbers, one for each input, got 0.5",
        ),
        (
            lambda: amsbq.integrate(spent, SQUARE, budget=3, initial=[(0, [0.5, 2])]),
            r"outside the support of the measure: b is 2.0, and must be between 0.0 and 1.0",
        ),
        (lambda: amsbq.integrate(spent, SQUARE, budget="3"), "budget must be a number, got '3'"),
        (lambda: amsbq.integrate(spent, SQUARE, budget=True), "budget must be a number, got True"),
        (
            lambda: amsbq.integrate(spent, SQUARE, budget=10, certify=0.95),
            "certify leaves only 0.5 of the budget of 10 for the run, but one evaluation of spent costs 1",
        ),
        (lambda: amsbq.integrate(spent, SQUARE, budget=3, outputs=0), "outputs must be different names, .* got 0"),
        (
            lambda: amsbq.integrate(spent, SQUARE, budget=3, initial=[[0.5, 0.5]]),
            r"initial must be a list of \(source, x\), got \[0.5, 0.5\] as its entry 0",
        ),
        (lambda: amsbq.read_result(3), "read_result takes the name of a journal, got 3"),
        (lambda: amsbq.Uniform(-1e308, 1e308), r"upper - lower must be finite, got \[-1e\+308\] and \[1e\+308\]"),
        (lambda: amsbq.integrate(spent, Rows(), budget=3), "cannot make a measure of a b 1 2; give a measure"),
        (
            lambda: amsbq.levels(spent, h=[0.1, 0.2], cost=[2, 1]),
            r"cost of levels is one number, or a function of the knobs by name, got \[2, 1\]",
        ),
        (
            lambda: amsbq.integrate(lambda p, q, r: 0.0, SQUARE, budget=3),
            "source 0 cannot be called with one array x, .*: missing a required argument: 'q'; nor .* by name: a, b$",
        ),
        (
            lambda: amsbq.integrate(lambda p, q: 0.0, amsbq.Gaussian([0, 0], 1.0), budget=3),
            r"source 0 cannot be called .*\. If these are its inputs, in order, give names=\['p', 'q'\]$",
        ),
        (
            lambda: amsbq.GaussianCopula({"a": (0, 1), "b": (0, 1)}, np.eye(2)),
            r"must be a non-empty list .*: give a list of its values, and names=\[\.\.\.\] to what evaluates$",
        ),
        (
            lambda: amsbq.integrate(lambda: 0.0, SQUARE, budget=3),
            "source 0 cannot be called with one array x, .*: too many positional arguments; nor .* by name: a, b",
        ),
        (
            lambda: amsbq.integrate(amsbq.Source(spent, cost=lambda a, c: 1.0), SQUARE, budget=3),
            "cost of spent has the parameter 'c', which is not an input: the inputs are a, b",
        ),
        (
            lambda: amsbq.integrate(amsbq.levels(spent, h=[0.1, 0.2]), SQUARE, budget=3),
            "h=0.1 calls spent with h=0.1: got an unexpected keyword argument 'h'",
        ),
    ],
)
def test_mistakes_are_said_before_anything_is_spent(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        wrong()


def test_a_value_in_place_of_another_distribution_points_to_given():
    result = amsbq.integrate(lambda a, b: a + b, SQUARE, budget=3, progress=False)
    for other in ({"a": 0.5}, {"a": 0.5, "b": 1}, {"a": 0.5, "b": (0, 1)}):
        with pytest.raises(ValueError, match=r"a is 0.5, which is not a distribution; .*result\.given\(a=0.5\)"):
            result.under(other)
    with pytest.raises(ValueError, match=r"a is \{'max': 1.0\}, which has a single value; .*given\(a='max'\)"):
        result.under({"a": {"max": 1.0}})


def test_locations_outside_are_named_by_their_inputs():
    result = amsbq.integrate(lambda a, b: a + b, SQUARE, budget=3, progress=False)
    for ask in (
        lambda: result.predict(0, [[0.5, 2]]),
        lambda: result.given(b=2),
        lambda: result.integrator.observe(0, [0.5, 2], 1.0),
    ):
        with pytest.raises(ValueError, match=r"b is 2.0, and must be between 0.0 and 1.0"):
            ask()


def test_mistakes_on_the_command_line_leave_the_journal_where_it_is(tmp_path, capsys):
    (tmp_path / "f.py").write_text("def f(x):\n    return x[0]\n")
    problem, journal = tmp_path / "run.toml", tmp_path / "run.jsonl"
    problem.write_text("budget = 3\n[inputs]\na = { low = 0, high = 1 }\n[[sources]]\npython = 'f:f'\n")
    assert main(["run", str(problem)]) == 0
    content = journal.read_bytes()
    for arguments, said in (
        (["run", problem, "--fresh", "--from", tmp_path / "no.jsonl"], "no.jsonl cannot be read"),
        (["run", problem, "--fresh", "--from", journal], "cannot be both renamed and read: .*another --journal"),
        (["run", problem, "--fresh", "--budget", 0.5], "--budget: a budget of 0.5 does not cover one evaluation"),
        (["resume", journal, "--budget", 0.5], "--budget: a budget of 0.5 does not cover one evaluation"),
        (["ask", journal, "--budget", 0.5], "--budget: a budget of 0.5 does not cover one evaluation"),
        (["correct", journal, 0, "0,5"], "pass one number .*decimal point, not a comma.*--variance V"),
    ):
        capsys.readouterr()
        assert main([str(argument) for argument in arguments]) == 2
        assert re.search(said, capsys.readouterr().err)
        assert journal.read_bytes() == content
        assert sorted(path.name for path in tmp_path.glob("*.jsonl")) == ["run.jsonl"]
    for arguments, said in ((["tell", journal, "a.csv"], "--from a.csv"), (["show", journal, "x"], "the number of an")):
        with pytest.raises(SystemExit):
            main([str(argument) for argument in arguments])
        assert said in capsys.readouterr().err


INPUTS = "[inputs]\na = { low = 0, high = 1 }\n"
ECHO = "[[sources]]\nname = 'fine'\ncommand = ['echo', '{a}']\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ECHO, "inputs: must be either a table [inputs] of names and distributions, or samples = 'file.csv'"),
        (f"samples = 'no.csv'\n{ECHO}", "samples: no.csv cannot be read"),
        (f"samples = 'ragged.csv'\n{ECHO}", "samples: line 3 of ragged.csv must be 2 numbers, got 0.3"),
        (f"samples = 'latin.csv'\n{ECHO}", "samples: latin.csv is not a text file in UTF-8"),
        (f"samples = 'ragged.csv'\n{INPUTS}{ECHO}", "inputs: must be either a table [inputs]"),
        (
            "[inputs]\na = { values = [0, 1] }\n" + ECHO,
            "inputs.a: must be { probabilities = { idle = 0.2, full = 0.8 } }",
        ),
        (
            "[inputs]\na = { distribution = 'norm', low = 0, high = 1 }\n" + ECHO,
            "inputs.a: has a distribution and low and high: keep one of them",
        ),
        (f"{INPUTS}{ECHO}keep = 'some'\n", "sources[0].keep: must be one of failed, all, none, got 'some'"),
        (f"{INPUTS}{ECHO}delimiters = ['<']\n", "sources[0].delimiters: must be two different strings, got ['<']"),
        (
            f"{INPUTS}{ECHO.replace('echo', './ragged.csv')}",
            "sources[0].command: there is no executable program './ragged.csv': run chmod +x ./ragged.csv",
        ),
        (
            f"{INPUTS}[[sources]]\nname = 'fine'\npython = 'three:three'\n",
            "sources[0]: fine cannot be called with one array x, which has a number for each input: missing a required",
        ),
        (
            f"certify = 0.9\n{INPUTS}{ECHO}",
            "certify: leaves only 0.3 of the budget of 3 for the run, but one evaluation of fine costs 1",
        ),
    ],
)
def test_one_mistake_in_a_problem_file_is_one_line(tmp_path, capsys, content, said):
    (tmp_path / "ragged.csv").write_text("a,b\n0.1,0.2\n0.3\n")
    (tmp_path / "latin.csv").write_bytes("é\n0.1\n".encode("latin-1"))
    (tmp_path / "three.py").write_text("def three(p, q, r):\n    return 0.0\n")
    (tmp_path / "run.toml").write_text(f"budget = 3\n{content}")
    assert main(["run", str(tmp_path / "run.toml")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{tmp_path / 'run.toml'}: {said}")
    assert not (tmp_path / "run.jsonl").exists()


def test_one_mistake_in_arguments_is_one_line(tmp_path, capsys):
    problem, journal = tmp_path / "run.toml", tmp_path / "run.jsonl"
    problem.write_text(f"budget = 9\n{INPUTS}[[sources]]\nname = 'fine'\ndetached = true\n")
    (tmp_path / "here.toml").write_text(f"budget = 9\n{INPUTS}{ECHO}")
    for arguments in (["ask", problem, "--n", 3], ["tell", journal, 0, 0.5], ["tell", journal, 1, 0.6]):
        assert main([str(argument) for argument in arguments]) == 0
    content = journal.read_bytes()
    for arguments, said in (
        (
            ["certify", journal, "--budget", 0.1],
            "a certificate budget of 0.1 covers no evaluations of fine, which cost 1 each",
        ),
        (["certify", journal, "--budget", 3, "--seed", -1], "argument --seed: must be a non-negative whole number"),
        (["correct", journal, 2, 0.5], f"evaluation 2 of {journal} has no value yet: amsbq tell {journal} 2 VALUE"),
        (["report", journal, "--output", tmp_path / "no" / "a.html"], f"there is no folder {tmp_path / 'no'}"),
        (["check", tmp_path / "here.toml", "--at", "a=2"], "a is 2.0, and must be between 0.0 and 1.0"),
        (
            ["run", problem, "--bugdet", 3],
            "there is no option --bugdet (did you mean '--budget'?); see amsbq run --help",
        ),
        (["status", journal, journal], f"unexpected argument: {journal}; see amsbq status --help"),
        (["ask", problem, "--n", 0], "argument --n: must be a whole number, at least 1, got '0'; see amsbq ask --help"),
        (["rum", problem], "invalid choice: 'rum'"),
    ):
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as ended:
            code = ended.code
        assert code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
        assert journal.read_bytes() == content
    assert main(["exclude", str(journal), "1", "--reason", " "]) == 0
    assert "excluded by the user: no reason was given" in capsys.readouterr().out


def test_more_spent_than_a_smaller_budget_is_said(tmp_path):
    for budget, said in ((4, "spent 4 of 4"), (3, "spent 4, more than the budget of 3")):
        result = amsbq.integrate(
            lambda a, b: a + b, SQUARE, budget=budget, model="icm", journal=tmp_path / "run.jsonl", progress=False
        )
        assert said in str(result)


def test_what_is_no_toml_is_shown(tmp_path, capsys):
    problem = tmp_path / "run.toml"
    for line, said in (("cost = 0,2", "cost = 0,2; write a decimal point, not a comma"), ("a = sim:f", ": a = sim:f")):
        problem.write_text(f"budget = 3\n{line}\n")
        assert main(["run", str(problem)]) == 2
        assert capsys.readouterr().err.strip().endswith(said)
    problem.write_text("budget = 3\n[inputs]\na = { low = 0, high = 1 }\n[sources]\npython = 'f:f'\n")
    assert main(["run", str(problem)]) == 2
    assert "[[sources]], in double brackets" in capsys.readouterr().err


def scalar(speed):
    return math.sin(speed)


class Simulator:
    def __call__(self, x):
        return 0.0 if x[1] else 1.0

    def run(self, x):
        return self.steps(x)

    def steps(self, x):
        return x[3]


ARRAY = r"{0} is an array with a number for each of the 2 inputs: use {0}\[0\] to {0}\[1\], or name the parameters"


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (scalar, r"\(scalar, line \d+\); " + ARRAY.format("speed")),
        (lambda speed: speed**2, r"If it should be one number: " + ARRAY.format("x")),
        (lambda x: x[3], r"\(<lambda>, line \d+\); " + ARRAY.format("x")),
        (lambda x: x["a"], r"valid indices \(<lambda>, line \d+\); " + ARRAY.format("x")),
        (Simulator().run, r"\(steps, line \d+\); " + ARRAY.format("x")),
        (amsbq.Source(lambda u: u[1], inputs=["b"]), r"there is one input, u\[0\]"),
        (lambda x: [][1], r"list index out of range \(<lambda>, line \d+\)\.$"),
        (lambda x: (x[0], x[1]), r"Name several outputs, as in outputs=\['peak', 'time'\]\.$"),
    ],
)
def test_a_function_that_mistakes_its_array_is_told_what_it_holds(function, remedy):
    with pytest.raises(RuntimeError, match=remedy):
        amsbq.integrate(function, SQUARE, budget=4, progress=False)


@pytest.mark.filterwarnings("ignore")
def test_outputs_that_were_not_declared_are_pointed_to():
    with pytest.raises(RuntimeError, match=r"must be 2 numbers, p, q.*name all outputs of the run"):
        amsbq.integrate(lambda x: (1.0, 2.0, 3.0), SQUARE, budget=3, outputs=["p", "q"], progress=False)
    coarse = amsbq.Source(lambda x: [x[0]], cost=0.1)
    result = amsbq.integrate([lambda x: (x[0], x[1]), coarse], SQUARE, budget=3, outputs=["p", "q"], progress=False)
    reasons = [e.reason for e in result.evaluations if e.source == 1]
    assert "name these as its own, as in outputs=['p']" in reasons[0]


@pytest.mark.filterwarnings("ignore")
def test_a_range_that_no_value_is_in_is_said_to_be_wrong():
    wrong = r"outside the range that was declared, 0 to 1: they are between 20\d.* and 20\d.*. That range is probably"
    with pytest.raises(RuntimeError, match=wrong):
        amsbq.integrate(lambda x: 200 + 9 * x[0], SQUARE, budget=6, output_range=(0, 1), progress=False)
    sources = [lambda x: x[0], amsbq.Source(lambda x: 200 + 9 * x[0], cost=0.1, name="coarse")]
    result = amsbq.integrate(sources, SQUARE, budget=4, output_range=(0, 1), progress=False)
    [finding, _] = [finding for finding in result.diagnose() if finding.about == "failures"]
    assert re.search(f"coarse: all values are {wrong} wrong: change output_range", finding.text)
    partly = amsbq.integrate(lambda x: 2 * x[0], SQUARE, budget=5, output_range=(0, 1), progress=False)
    assert not [finding for finding in partly.diagnose() if "probably wrong" in finding.text]


def test_a_copula_takes_intervals():
    copula = amsbq.GaussianCopula([(0, 1), (2, 4)], [[1, 0.5], [0.5, 1]])
    assert copula.bounds.tolist() == [[0, 1], [2, 4]]


def test_transposed_samples_are_noticed():
    with pytest.warns(UserWarning, match="there are 2 samples of 30 inputs.*transposed"):
        amsbq.Empirical(np.random.default_rng(0).normal(size=(2, 30)))


def test_inputs_of_a_source_are_in_its_order():
    inputs = {"a": (0, 1), "b": (10, 11), "c": (20, 21)}
    it = amsbq.Integrator(amsbq.Source(lambda x: x[0], inputs=["c", "a", "b"]), inputs, budget=3)
    assert it.sources[0].function(np.array([0.5, 10.5, 20.5])) == 20.5


def test_columns_of_a_data_frame_go_by_their_names():
    pandas = pytest.importorskip("pandas")
    inputs = {"a": (0, 1), "b": stats.beta(1, 3)}
    frame = pandas.DataFrame(np.random.default_rng(0).random((12, 2)), columns=["b", "a"])
    ours = amsbq.estimate(0, frame, 10 * frame["a"] ** 2, inputs, seed=0)
    assert ours.mean == amsbq.estimate(0, frame[["a", "b"]].to_numpy(), 10 * frame["a"] ** 2, inputs, seed=0).mean
    assert ours.mean == pytest.approx(10 / 3, abs=5 * ours.std)
    with pytest.raises(ValueError, match="X has the columns b, z, but the inputs are a, b"):
        amsbq.estimate(0, frame.rename(columns={"a": "z"}), frame["b"], inputs)
    result = amsbq.integrate(lambda a, b: a, inputs, budget=5, seed=0, progress=False)
    np.testing.assert_allclose(result.predict(0, frame)[0], frame["a"], atol=0.2)


def test_a_vectorized_function_with_mistaken_axes_has_no_values():
    source = amsbq.Source(lambda x: x[0] + x[1], vectorized=True)
    with pytest.raises(RuntimeError):  # with two points of two inputs, its shapes would fit
        amsbq.integrate(source, SQUARE, budget=4, progress=False)


def test_categories_of_another_distribution_go_by_their_names():
    def f(mode, b):
        return {"i": 0.0, "r": 1.0, "f": 5.0}[mode] + b

    inputs = {"mode": {"i": 0.2, "r": 0.3, "f": 0.5}, "b": (0, 1)}
    result = amsbq.integrate(f, inputs, budget=9, seed=0, progress=False)
    same = result.under({"mode": {"f": 0.5, "i": 0.2, "r": 0.3}})
    assert same.mean == pytest.approx(result.mean, abs=1e-9)
    assert result.under({"mode": {"r": 1 / 3, "f": 1 / 3, "i": 1 / 3}}).mean == pytest.approx(2.5, abs=0.05)
    with pytest.raises(ValueError, match="must have the same categories"):
        result.under({"mode": {"i": 0.2, "r": 0.3, "g": 0.5}})


def test_categories_in_another_order_are_no_change_that_can_be_accepted(tmp_path):
    def f(x):
        return x[0]

    journal = tmp_path / "run.jsonl"
    amsbq.integrate(f, amsbq.Product([{"x": 0.5, "y": 0.5}]), budget=2, journal=journal, progress=False)
    before = journal.read_bytes()
    with pytest.raises(amsbq.JournalError, match="the categories of an input were x, y, but now are y, x"):
        amsbq.integrate(
            f,
            amsbq.Product([{"y": 0.1, "x": 0.9}]),
            budget=3,
            journal=journal,
            accept_changes=True,
            progress=False,
        )
    assert journal.read_bytes() == before


@pytest.mark.filterwarnings("ignore")
def test_a_limit_in_another_unit_is_noticed():
    result = amsbq.integrate(lambda x: x[0], (0, 1.5), budget=5, target=amsbq.Exceedance(300), progress=False)
    [finding] = [finding for finding in result.diagnose() if finding.about == "limit"]
    assert finding.level == "warning"
    assert "300, is far from all values" in finding.text
    near = amsbq.integrate(lambda x: x[0], (0, 1.5), budget=5, target=amsbq.Exceedance(1.6), progress=False)
    assert not [finding for finding in near.diagnose() if finding.about == "limit"]


def test_gradients_that_never_come_are_noticed():
    source = amsbq.Source(lambda x: x[0] ** 2, gradient=True, name="plain")
    result = amsbq.integrate(source, (0, 1), budget=4, progress=False)
    [finding] = [finding for finding in result.diagnose() if finding.about == "gradients"]
    assert "plain was declared to return gradients, but none of its 4 evaluations has one" in finding.text


def test_results_of_few_samples_are_printed():
    for budget in (2, 3):
        assert "integral: " in str(amsbq.baselines.monte_carlo([lambda x: x[0]], (0, 1), budget=budget))


def test_samples_begin_with_names(tmp_path, capsys):
    (tmp_path / "s.csv").write_text("0.1,0.3\n0.5,0.2\n0.9,0.9\n")
    (tmp_path / "f.py").write_text("def f(x):\n    return x[0]\n")
    file = tmp_path / "problem.toml"
    file.write_text('budget = 3\nsamples = "s.csv"\n[[sources]]\npython = "f:f"\nseed = 3\n')
    assert main(["check", str(file)]) != 0
    said = capsys.readouterr().err
    assert "samples: s.csv must begin with a header line of names, got 0.1,0.3" in said
    assert "sources[0].seed: belongs above the first table of the file" in said
    journal = tmp_path / "run.jsonl"
    journal.write_text('{"event": "begun"}\n')
    assert main(["run", str(journal)]) != 0
    assert "is a journal, not a problem file" in capsys.readouterr().err


def test_pages_need_a_folder_and_distributions_by_name(tmp_path):
    result = amsbq.integrate(lambda x: x[0], (0, 1), budget=3, progress=False)
    with pytest.raises(FileNotFoundError, match=re.escape(f"there is no folder {tmp_path / 'no'}")):
        amsbq.report.report(result, tmp_path / "no" / "x.html")
    with pytest.raises(TypeError, match="under must be a dictionary"):
        amsbq.report.report(result, tmp_path / "x.html", under=[(0, 1)])


def test_a_last_line_that_lacks_its_end_only_is_whole(tmp_path):
    journal = tmp_path / "run.jsonl"
    first = amsbq.integrate(lambda x: x[0] ** 2, (0, 1), budget=3, seed=0, journal=journal, progress=False)
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-1])
    assert amsbq.read_result(journal).mean == first.mean
    again = amsbq.integrate(lambda x: x[0] ** 2, (0, 1), budget=3, seed=0, journal=journal, progress=False)
    assert again.mean == first.mean
    assert journal.read_bytes() == whole
    journal.write_bytes(whole + b"\n\n")  # no event is lost
    assert amsbq.read_result(journal).mean == first.mean
    assert (
        amsbq.integrate(lambda x: x[0] ** 2, (0, 1), budget=3, seed=0, journal=journal, progress=False).mean
        == first.mean
    )
    assert journal.read_bytes() == whole
    journal.write_bytes(whole.replace(b"\n", b"\n\n", 1))
    with pytest.raises(amsbq.JournalError, match=r"line 2 .* is damaged"):
        amsbq.read_result(journal)
    journal.write_bytes(b"")
    with pytest.raises(amsbq.JournalError, match="is empty"):
        amsbq.read_result(journal)


def test_a_last_line_that_is_cut_is_said_to_be_missing_once(tmp_path, capsys):
    (tmp_path / "f.py").write_text("def f(x):\n    return x[0]\n")
    problem, journal = tmp_path / "run.toml", tmp_path / "run.jsonl"
    problem.write_text("budget = 3\n[inputs]\na = { low = 0, high = 1 }\n[[sources]]\npython = 'f:f'\n")
    assert main(["run", str(problem)]) == 0
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-20])
    with pytest.warns(UserWarning, match="the last line of .* is incomplete and is ignored") as said:
        amsbq.read_result(journal)
    assert len(said) == 1
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["resume", str(journal)]) == 0
    said = capsys.readouterr().err
    assert said.count("the last line") == 1
    assert "was not finished and is removed" in said


def test_a_journal_that_an_editor_has_saved_goes_on(tmp_path):
    def f(x):
        return x[0] ** 2

    journal, plain = tmp_path / "run.jsonl", tmp_path / "plain.jsonl"
    options = {"seed": 0, "progress": False}
    amsbq.integrate(f, (0, 1), budget=3, journal=plain, **options)
    journal.write_bytes(codecs.BOM_UTF8 + plain.read_bytes().replace(b"\n", b"\r\n"))
    more = amsbq.integrate(f, (0, 1), budget=4, journal=journal, **options)
    assert more.mean == amsbq.read_result(journal).mean
    assert more.mean == amsbq.integrate(f, (0, 1), budget=4, journal=plain, **options).mean
    journal.write_bytes(plain.read_text().encode("utf-16"))
    with pytest.raises(amsbq.JournalError, match="is UTF-16 text"):
        amsbq.read_result(journal)


@pytest.mark.parametrize("end", [b"\r", b"", b"\x0b"])
def test_a_journal_without_line_ends_is_not_taken_for_one_that_was_not_finished(tmp_path, end):
    journal = tmp_path / "run.jsonl"
    amsbq.integrate(lambda x: x[0], (0, 1), budget=2, journal=journal, progress=False)
    damaged = journal.read_bytes().replace(b"\n", end)
    journal.write_bytes(damaged)
    with pytest.raises(amsbq.JournalError, match=r"line 1 of .* is damaged"):
        amsbq.integrate(lambda x: x[0], (0, 1), budget=2, journal=journal, progress=False)
    assert journal.read_bytes() == damaged


@pytest.mark.filterwarnings("error::ResourceWarning", "error::pytest.PytestUnraisableExceptionWarning")
def test_a_journal_that_is_refused_is_closed(tmp_path):
    journal = tmp_path / "run.jsonl"
    amsbq.integrate(lambda x: x[0], (0, 1), budget=2, journal=journal, progress=False)
    first, _, *others = journal.read_bytes().splitlines(keepends=True)
    with pytest.raises(amsbq.JournalError, match="is the journal of another run"):
        amsbq.integrate(lambda x: x[0], (0, 2), budget=2, journal=journal, progress=False)
    journal.write_bytes(first + b"".join(others))
    with pytest.raises(amsbq.JournalError, match="does not follow the previous line"):
        amsbq.integrate(lambda x: x[0], (0, 1), budget=2, journal=journal, progress=False)
    with journal.open("a+b") as file:  # nobody has kept it locked
        locks.lock(file)
        locks.close(file)


def test_files_that_cannot_be_written_are_named_without_numbers_of_errors(capsys):
    assert main(["init", "--python", "/dev/null/problem.toml"]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith("amsbq: /dev/null")


def test_what_the_user_has_excluded_is_in_the_status(tmp_path, capsys):
    journal = tmp_path / "run.jsonl"
    amsbq.integrate(lambda x: x[0], {"a": (0, 1)}, budget=3, journal=journal, progress=False)
    assert main(["exclude", str(journal), "1", "--reason", "wrong mesh"]) == 0
    capsys.readouterr()
    assert main(["status", str(journal)]) == 0
    said = capsys.readouterr().out
    assert "source 0: 2 made, 0 failed" in said
    assert "evaluation 1: source 0, excluded by the user: wrong mesh; it was " in said
