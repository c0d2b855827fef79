"""Real programs by problem file alone: from `amsbq init` to the page, killed in the middle and resumed."""

import json
import re
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest

from amsbq.cli.main import main
from amsbq.execution.journal import read_journal
from tests.waiting import eventually

#: All programs solve dy/dt = -rate y, y(0) = dose, by n steps of Euler's method, and find y(1); n is 200 or 4. They are
#: slow enough to be killed in the middle.
C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments) {
    double rate, dose, y, t;
    int n = atoi(arguments[2]);
    FILE *deck = fopen(arguments[1], "r"), *table;
    if (!deck || fscanf(deck, " &run rate = %lf , dose = %lf /", &rate, &dose) != 2) {
        fprintf(stderr, "bad namelist\n");
        return 2;
    }
    table = fopen("history.dat", "w");
    fprintf(table, "# time level\n");
    y = dose;
    for (int i = 1; i <= n; i++) {
        y -= rate * y / n;
        t = (double)i / n;
        fprintf(table, "%12.5E %22.15E\n", t, y);
    }
    fclose(table);
    usleep(50000);
    printf("%d steps, done in %g s\n", n, 0.05);
    return 0;
}
"""

FORTRAN = """
program decay
  implicit none
  double precision :: rate, dose, y
  integer :: i, n
  character(len=64) :: deck, steps
  namelist /run/ rate, dose
  call get_command_argument(1, deck)
  call get_command_argument(2, steps)
  read (steps, *) n
  open (10, file=deck, status='old')
  read (10, nml=run)
  open (11, file='history.dat')
  write (11, '(a)') '# time level'
  y = dose
  do i = 1, n
    y = y - rate * y / n
    write (11, '(es13.5, d25.15)') dble(i) / n, y
  end do
  close (11)
  call execute_command_line('sleep 0.05')
  print *, n, ' steps, done in ', 0.05, ' s'
end program
"""

SCRIPT = """
import json, sys, time
x = json.load(open("inputs.json"))
y, n = x["dose"], int(sys.argv[1])
for _ in range(n):
    y -= x["rate"] * y / n
time.sleep(0.05)
json.dump({"run": {"levels": [x["dose"], y], "unit": "m"}}, open("result.json", "w"))
print("done")
"""

#: @n@ is the number of steps
PIPELINE = (
    "seq @n@ | awk -v r={rate} -v d={dose} '{ d -= r * d / @n@; printf \"%.17g kg\\n\", d }' "
    "| tail -n 1 | sed 's/^/level after one second: /'; sleep 0.05"
)

AWK = (
    'BEGIN { y = {dose}; for (i = 0; i < @n@; i++) y -= {rate} * y / @n@; system("sleep 0.05"); printf "%.17g\\n", y }'
)


def compiled(folder, compiler, name, source):
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler}")
    (folder / name).write_text(source)
    subprocess.run([compiler, "-O1", "-o", "decay", name], cwd=folder, check=True)
    (folder / "deck.nml").write_text("&run rate = {rate:.17e}, dose = {dose:.17e} /\n")
    return {
        "command": ["./decay", "deck.nml", "@n@"],
        "template": "deck.nml",
        "output": {"file": "history.dat", "column": "level", "row": -1},
    }


def c_program(folder):
    return compiled(folder, "cc", "decay.c", C)


def fortran_program(folder):
    return compiled(folder, "gfortran", "decay.f90", FORTRAN)


def python_script(folder):
    (folder / "model.py").write_text(SCRIPT)
    return {
        "command": [sys.executable, "model.py", "@n@"],
        "inputs_file": "inputs.json",
        "output": {"file": "result.json", "json": "run.levels[-1]"},
    }


def shell_pipeline(folder):
    return {"command": ["sh", "-c", PIPELINE], "output": {"regex": r"after one second: (.*)"}}


def awk_line(folder):
    return {"command": ["awk", AWK]}


def toml(value):
    """Return a value as TOML writes it; texts as JSON does, which TOML understands."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(entry)}" for key, entry in value.items()) + " }"
    return json.dumps(value)


def source(name, cost, steps, keys):
    filled = {**keys, "command": [part.replace("@n@", steps) for part in keys["command"]]}
    lines = [f"{key} = {toml(value)}" for key, value in {"name": name, "cost": cost, **filled}.items()]
    return "\n[[sources]]\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("program", [c_program, fortran_program, python_script, shell_pipeline, awk_line])
def test_from_init_to_the_page_with_a_kill_between(program, tmp_path, capsys):
    def typed(*arguments):
        assert main([str(argument) for argument in arguments]) == 0
        return capsys.readouterr().out

    problem, journal = tmp_path / "problem.toml", tmp_path / "problem.jsonl"
    typed("init", "--command", tmp_path)
    keys = program(tmp_path)
    head = problem.read_text().partition("[[sources]]")[0].replace("budget = 10.0", 'budget = 3.0\nmodel = "icm"')
    problem.write_text(head + source("fine", 1.0, "200", keys) + source("coarse", 0.25, "4", keys))
    checked = typed("check", problem, "--at", "rate=0.5,dose=0.25")
    for steps in (200, 4):
        level = 0.25 * (1 - 0.5 / steps) ** steps
        found = [float(value) for value in re.findall(r"value = (\S+)", checked)]
        assert any(value == pytest.approx(level, rel=1e-9) for value in found)

    run = subprocess.Popen([sys.executable, "-m", "amsbq", "run", str(problem)], stderr=subprocess.DEVNULL)
    assert eventually(lambda: journal.exists() and journal.read_bytes().count(b'"event":"told"') >= 3)
    run.send_signal(signal.SIGKILL)
    assert run.wait() == -signal.SIGKILL
    assert "stopped" not in [event["event"] for event in read_journal(journal)[1]]

    resumed = json.loads(typed("resume", journal, "--json"))
    unbroken = json.loads(typed("run", problem, "--journal", tmp_path / "unbroken.jsonl", "--json"))
    assert [resumed[key] for key in ("mean", "std", "spent")] == [unbroken[key] for key in ("mean", "std", "spent")]
    for key in ("x", "value", "cost"):
        assert [e[key] for e in resumed["evaluations"]] == [e[key] for e in unbroken["evaluations"]]
    rate = np.linspace(0, 1, 100001)
    truth = 0.5 * np.trapezoid((1 - rate / 200) ** 200, rate)
    assert abs(resumed["mean"] - truth) < max(4 * resumed["std"], 1e-3)

    pytest.importorskip("plotly")
    typed("report", journal)
    assert f"{resumed['mean']:.2f}" in journal.with_suffix(".html").read_text()
    assert not [path for path in (tmp_path / "runs").glob("*") if "fine-check" in path.name]
