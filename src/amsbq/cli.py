"""The command line."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from . import __version__
from .experiments import forrester
from .experiments.reproduce import EXPERIMENTS, SEEDS, reproduce
from .experiments.study import Settings


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="amsbq",
        description="Expected outputs of expensive simulators, with honest error bars, from cheaper approximations.",
    )
    parser.add_argument("--version", action="version", version=f"amsbq {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    demo = commands.add_parser(
        "demo",
        help="integrate the paper's two-source example",
        description="Integrate the Forrester function over [0, 1] from three observations of it and five of a cheap "
        "relative: the starting point of the paper's Figure 3. Takes a second, writes nothing.",
    )
    demo.set_defaults(run=_demo)
    _add_reproduce(commands)
    options = parser.parse_args(arguments)
    code: int = options.run(options)
    return code


def _add_reproduce(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    listed = "\n".join(f"  {name:10} {experiment.title}" for name, experiment in EXPERIMENTS.items())
    parser = commands.add_parser(
        "reproduce",
        help="the paper's experiments, with the default model beside the paper's",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run experiments of the paper; without a name, all of them. Each writes its tables (CSV), its\n"
        "figures (PNG, PDF) and what became of the paper's claims into a folder of its own.\n\nexperiments:\n" + listed,
        epilog="examples:\n"
        "  amsbq reproduce --quick            everything in two minutes, with one seed and small budgets\n"
        "  amsbq reproduce wiggly --seeds 20  one experiment, with more seeds",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="one or more of the experiments below")
    parser.add_argument("--quick", action="store_true", help="one seed and small budgets: to see that it works")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="for medians and quartiles (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("reproduction"), help="a folder (default: %(default)s)")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)"
    )
    parser.set_defaults(run=_reproduce, parser=parser)


def _reproduce(options: argparse.Namespace) -> int:
    unknown = [name for name in options.names if name not in EXPERIMENTS]
    if unknown:
        options.parser.error(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    for name in ("seeds", "workers"):
        if getattr(options, name) < 1:
            options.parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    names = list(dict.fromkeys(options.names)) or list(EXPERIMENTS)
    start = time.monotonic()
    try:
        found = reproduce(names, options.output, Settings(options.seeds, options.quick), options.workers)
    except (ImportError, OSError) as error:
        print(f"amsbq reproduce: {error}", file=sys.stderr)
        return 1
    for name, claims in found.items():
        print(f"\n{name}: {EXPERIMENTS[name].title}")
        for claim in claims:
            print(f"  {'✓' if claim.holds else '✗'} {claim.text}\n      {claim.found}")
    failed = sum(not claim.holds for claims in found.values() for claim in claims)
    print(f"\ntables and figures are in {options.output}/; {time.monotonic() - start:.0f} s")
    if failed:
        few = "; but one seed and a small budget do not tell" if options.quick else ""
        print(f"{failed} of the claims did not hold{few}")
    return 1 if failed and not options.quick else 0


def _demo(options: argparse.Namespace) -> int:
    truth = forrester.true_integral()
    both, alone = forrester.starting_posterior(), forrester.starting_posterior(sources=(0,))
    print("∫ f₁ over [0, 1] of the Forrester function f₁(x) = (6x - 2)² sin(12x - 4)")
    print("with the cheap relative f₂(x) = f₁(x)/2 + 10x; hyperparameters fixed by hand.")
    print()
    print(f"{'observations':28} {'estimate':>9}   {'std':>5}   {'error':>6}")
    for name, posterior in (("3 of f₁ (vanilla BQ)", alone), ("3 of f₁ and 5 of f₂", both)):
        mean, variance = posterior.integral()
        print(f"{name:28} {mean:9.3f} ± {variance**0.5:5.3f}   {mean - truth:+6.3f}")
    print(f"{'true value':28} {truth:9.3f}")
    print()
    grid = np.linspace(0, 1, 1001)[:, None]
    print("One more observation would take away, at best, this share of the variance (ρ²):")
    for source, name in enumerate(("f₁", "f₂")):
        rho2 = both.squared_correlation(source, grid)
        print(f"    of {name} at x = {grid[rho2.argmax(), 0]:.2f}: {rho2.max():.0%}")
    return 0
