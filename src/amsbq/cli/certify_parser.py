"""Arguments and help of ``amsbq certify``."""

from __future__ import annotations

from .arguments import CommandParser, Subparsers, add_command, add_journal, positive, seed_number, whole_number


def add_certify(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq certify``."""
    parser = add_command(
        subparsers,
        "certify",
        "certify",
        "an answer that rests on no model",
        """\
Evaluate the sources of a run at fresh random inputs, and estimate its answer
from these, with the model as a control variate: unbiased, whatever the model
is worth. The evaluations are in the journal, apart from those of the run;
repeated, the command goes on, and evaluates nothing again. If a source has no
function here, what is to be evaluated is printed; tell what came of it.""",
        """\
examples:
  amsbq certify problem.jsonl --budget 5
  amsbq certify problem.jsonl --budget 5 --seed 1    another one
  amsbq certify problem.jsonl --tell 0 1.62          evaluated elsewhere
""",
    )
    add_journal(parser)
    parser.add_argument("--budget", type=positive, metavar="B", help="what the fresh evaluations may cost")
    parser.add_argument("--seed", type=seed_number, metavar="N", help="of the random inputs (default: 0)")
    parser.add_argument("--primary-only", action="store_true", help="evaluate the primary source alone")
    parser.add_argument(
        "--workers", type=whole_number, default=1, metavar="N", help="evaluations at a time (default: 1)"
    )
    parser.add_argument("--dask", metavar="ADDRESS", help="evaluate on a Dask cluster, such as tcp://127.0.0.1:8786")
    parser.add_argument("--json", action="store_true", help="print the certificate as one JSON object")
    parser.add_argument(
        "--tell", nargs="+", metavar=("ID", "VALUE"), help="the value of an evaluation that was made elsewhere"
    )
    parser.add_argument(
        "--variance", action="append", metavar="V", help="of the noise on it (default: 0); by output NAME=V,NAME=V"
    )
    parser.add_argument("--cost", type=float, metavar="C", help="what it has cost (default: as expected)")
    parser.add_argument("--failed", metavar="REASON", help="instead of a value")
    parser.add_argument(
        "--wait", type=positive, default=300.0, metavar="S", help="seconds, for other writers (default: %(default)g)"
    )
    return parser
