"""Arguments and help of ``amsbq certify``."""

from __future__ import annotations

from .arguments import CommandParser, Subparsers, add_command, add_journal, positive, seed_number, whole_number


def add_certify(subparsers: Subparsers) -> CommandParser:
    """Add ``amsbq certify``."""
    parser = add_command(
        subparsers,
        "certify",
        "certify",
        "an estimate that does not depend on the model",
        """\
Evaluate the sources of a run at fresh random inputs, and estimate its target
from these, with the model as a control variate: unbiased, however poor the
model. The evaluations are in the journal, separate from those of the run;
repeat the command to continue an interrupted certificate. For sources without
a function here, the queries are printed; pass their values with --tell.""",
        """\
examples:
  amsbq certify problem.jsonl --budget 5
  amsbq certify problem.jsonl --budget 5 --seed 1    another one
  amsbq certify problem.jsonl --tell 0 1.62          evaluated elsewhere
""",
    )
    add_journal(parser)
    parser.add_argument("--budget", type=positive, metavar="B", help="cost of the fresh evaluations")
    parser.add_argument("--seed", type=seed_number, metavar="N", help="seed of the random inputs (default: 0)")
    parser.add_argument("--primary-only", action="store_true", help="evaluate only the primary source")
    parser.add_argument(
        "--workers", type=whole_number, default=1, metavar="N", help="evaluations at a time (default: 1)"
    )
    parser.add_argument("--dask", metavar="ADDRESS", help="evaluate on a Dask cluster, such as tcp://127.0.0.1:8786")
    parser.add_argument("--json", action="store_true", help="print the certificate as one JSON object")
    parser.add_argument(
        "--tell", nargs="+", metavar=("ID", "VALUE"), help="record the value of an evaluation made elsewhere"
    )
    parser.add_argument(
        "--variance", action="append", metavar="V", help="variance of its noise (default: 0); by output NAME=V,NAME=V"
    )
    parser.add_argument("--cost", type=float, metavar="C", help="its cost (default: the expected one)")
    parser.add_argument("--failed", metavar="REASON", help="why there is no value")
    parser.add_argument(
        "--wait",
        type=positive,
        default=300.0,
        metavar="S",
        help="seconds to wait for other writers (default: %(default)g)",
    )
    return parser
