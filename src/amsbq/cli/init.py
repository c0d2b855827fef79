"""``amsbq init``: a commented problem file and a simulator to replace, which run as they are."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence

from .exits import ExitCode, UserError

KINDS = ("python", "command", "umbridge")

#: names of the inputs unless the user gives others
DEFAULT_INPUTS = ("rate", "dose")

HEAD = """\
# A problem file of amsbq. See what a run would do with:  amsbq check {file}
budget = 10.0               # in units of cost: here ten evaluations of the simulator, or many more of the other
# rel_tol = 0.01            # stop earlier, when the 95 % interval is within one percent of the mean
# error_cost = 50           # or when more evaluations cost more than a smaller error saves; here per unit of the output
# title = "My study"        # shown by print, figures and reports, like the label and the unit of the output
# labels = {{ output = "peak" }}
# units = {{ output = "m", cost = "core hours" }}

[inputs]                    # in order; any continuous distribution of scipy.stats, or bounds
{inputs}
"""

SOURCES = {
    "python": """
[[sources]]                 # the first one is the simulator whose expected output is estimated
name = "fine"
python = "simulators:fine"  # simulators.py, next to this file
cost = 1.0                  # in any unit that all sources share, or "measured"
# timeout = 600             # seconds after which an evaluation has failed
# valid = [0, 100]          # a value outside is a failed evaluation

[[sources]]                 # a cheaper approximation; there may be any number of them, or none
name = "coarse"
python = "simulators:coarse"
cost = 0.05
""",
    "command": """
[[sources]]                 # the first one is the simulator whose expected output is estimated
name = "fine"
command = ["./simulator.sh", "100"]
template = "deck.in"        # filled in and written into a work directory for each evaluation
output = { file = "result.csv", column = "peak", row = -1 }
# output = { regex = 'peak = (\\S+)' }     # or from what the program prints, by a regular expression with a group,
# output = { last = true }                # the last number,
# output = { json = "wave.peak[0]" }      # or an entry of a JSON object
# files = ["mesh.dat"]      # linked into the work directory; copies = [...] are copied
# keep = "failed"           # which work directories are kept: "failed", "all" or "none"
cost = 1.0                  # in any unit that all sources share, or "measured"
# timeout = 600             # seconds after which the program is killed

[[sources]]                 # a cheaper approximation; there may be any number of them, or none
name = "coarse"
command = ["./simulator.sh", "5"]
template = "deck.in"
output = { file = "result.csv", column = "peak", row = -1 }
cost = 0.05
""",
    "umbridge": """
[[sources]]                 # the first one is the simulator whose expected output is estimated
name = "fine"
umbridge = { url = "http://127.0.0.1:4242", model = "forward", config = { level = 0 }, output = 0 }
cost = 1.0                  # in any unit that all sources share, or "measured"
# timeout = 600             # seconds to wait for an answer

[[sources]]                 # a cheaper approximation; there may be any number of them, or none
name = "coarse"
umbridge = { url = "http://127.0.0.1:4242", model = "forward", config = { level = 1 }, output = 0 }
cost = 0.05
""",
}

PYTHON = '''\
"""Simulators to be replaced by yours: each takes x, an array of {count}, and returns a number."""

import math


def fine(x):
    {names} = x
    return math.exp(-({total}) / 2)


def coarse(x):
    {names} = x
    return 1 - ({total}) / 2
'''

DECK = """\
# the inputs of one evaluation, filled in by name; formats are those of Python
{lines}
"""

SCRIPT = """\
#!/bin/sh
# A simulator to be replaced by yours: it reads deck.in, solves dy/dt = -(the sum of the inputs) y / 2 in $1 steps, and
# writes a table.
awk -v steps="$1" '
    /^#/ { next }
    { total += $3 }
    END {
        print "time,peak"; y = 1
        for (i = 1; i <= steps; i++) { y -= y * total / 2 / steps; print i / steps "," y }
    }' deck.in > result.csv
echo "done in $1 steps"
"""

SERVER = '''\
"""A UM-Bridge server to be replaced by yours. Start it with: python server.py"""

import functools
import math

import umbridge
from aiohttp import web

web.run_app = functools.partial(web.run_app, host="127.0.0.1")  # on this machine only


class Forward(umbridge.Model):
    def __init__(self):
        super().__init__("forward")

    def get_input_sizes(self, config):
        return [{size}]

    def get_output_sizes(self, config):
        return [1]

    def supports_evaluate(self):
        return True

    def __call__(self, parameters, config):
        total = sum(parameters[0])
        return [[math.exp(-total / 2) if config.get("level", 0) == 0 else 1 - total / 2]]


umbridge.serve_models([Forward()], 4242)
'''


def init_command(options: argparse.Namespace) -> int:
    """Write a problem file and an example simulator; on a terminal, ask for missing options."""
    kind, names = options.kind, options.inputs
    asking = sys.stdin.isatty() and kind is None
    if kind is None:
        kind = _answer(f"What is your simulator? {', '.join(KINDS)}", KINDS[0]) if asking else KINDS[0]
    if kind not in KINDS:
        raise UserError(f"a simulator is one of {', '.join(KINDS)}, got {kind!r}")
    if names is None:
        default = ",".join(DEFAULT_INPUTS)
        names = _answer("Names of its inputs, separated by commas", default) if asking else default
    inputs = [name.strip() for name in names.split(",")]
    for name in inputs:
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or inputs.count(name) > 1:
            raise UserError(f"names of inputs must be distinct and consist of letters, digits and _, got {names!r}")
    problem = options.path if options.path.suffix == ".toml" else options.path / "problem.toml"
    made = files(kind, inputs, problem.name)
    present = [name for name in made if (problem.parent / name).exists()]
    if present:
        raise UserError(
            f"{problem.parent / present[0]} already exists and will not be overwritten: choose another folder"
        )
    problem.parent.mkdir(parents=True, exist_ok=True)
    for name, text in made.items():
        (problem.parent / name).write_text(text, encoding="utf-8")
        if text.startswith("#!"):
            (problem.parent / name).chmod(0o755)
    others = " and ".join(name for name in made if name != problem.name)
    print(f"wrote {', '.join(str(problem.parent / name) for name in made)}")
    print(f"put your simulator into {others}, or change its call in {problem.name}; then: amsbq check {problem}")
    return ExitCode.DONE


def files(kind: str, inputs: Sequence[str], problem: str) -> dict[str, str]:
    """Return the contents of the files to write, by name; ``problem`` is the name of the problem file."""
    width = max(len(name) for name in inputs)
    table = [f"{name:{width}} = {{ low = 0.0, high = 1.0 }}" for name in inputs]
    table[0] += '     # or { distribution = "gamma", a = 5, scale = 0.1 }'
    made = {problem: HEAD.format(file=problem, inputs="\n".join(table)) + SOURCES[kind]}
    if kind == "python":
        unpacked = ", ".join(inputs) if len(inputs) > 1 else f"({inputs[0]},)"
        count = "one number" if len(inputs) == 1 else f"{len(inputs)} numbers"
        made["simulators.py"] = PYTHON.format(count=count, names=unpacked, total=" + ".join(inputs))
    elif kind == "command":
        made["deck.in"] = DECK.format(lines="\n".join(f"{name} = {{{name}:.12e}}" for name in inputs))
        made["simulator.sh"] = SCRIPT
    else:
        made["server.py"] = SERVER.format(size=len(inputs))
    return made


def _answer(question: str, default: str) -> str:
    """Return the user's answer, or the default if it is empty."""
    return input(f"{question} [{default}]: ").strip() or default
