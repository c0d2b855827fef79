"""Building blocks of the parsers of all commands."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

from ..common.messages import suggestion
from .exits import ExitCode


class CommandParser(argparse.ArgumentParser):
    """Parser of one command; part of its help may be composed only when help is requested."""

    appendix: Callable[[], str] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._negative_number_matcher = re.compile(r"-(\d|\.\d|inf|nan)")  # argparse takes -1e-3 for an option

    def error(self, message: str) -> NoReturn:
        """Exit with one line that says what is wrong with the arguments and where the help is."""
        self.exit(ExitCode.WRONG_INPUT, f"{self.prog}: error: {message}; see {self.prog} --help\n")

    def unknown(self, arguments: Sequence[str]) -> NoReturn:
        """Exit because of surplus arguments or unknown options."""
        option = next((argument.partition("=")[0] for argument in arguments if argument.startswith("--")), None)
        if option is None:
            self.error(f"unexpected argument: {' '.join(arguments)}")
        self.error(f"there is no option {option}{suggestion(option, self._option_string_actions)}")

    def format_help(self) -> str:
        """Return the help, followed by the appendix if there is one."""
        text = super().format_help()
        return text if self.appendix is None else f"{text}\n{self.appendix()}"


@dataclass(frozen=True)
class Command:
    """A command of the command line, imported when it is called: most imports take longer than printing help.

    Attributes
    ----------
    module : str
        The module in this package that has its function.
    name : str
        The name that a user types.
    """

    module: str
    name: str

    @property
    def function(self) -> Callable[[argparse.Namespace], int]:
        """The function of the command."""
        found: Callable[[argparse.Namespace], int]
        found = getattr(import_module(f".{self.module}", __package__), f"{self.name}_command")
        return found

    def __call__(self, options: argparse.Namespace) -> int:
        """Run the command and return an exit code."""
        return self.function(options)


#: the object to which commands are added; argparse has no public name for its type
Subparsers: TypeAlias = "argparse._SubParsersAction[CommandParser]"


def add_command(
    subparsers: Subparsers,
    name: str,
    module: str,
    summary: str,
    description: str,
    examples: str,
) -> CommandParser:
    """Add a command, whose function is ``{name}_command`` in a module of this package, and return its parser."""
    parser = subparsers.add_parser(
        name,
        help=summary,
        description=description,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(command=Command(module, name), parser=parser)
    return parser


def numbers_by_output(texts: Sequence[str]) -> float | list[float] | dict[str, float]:
    """Return the number in arguments; for several outputs a list, or a dictionary by name.

    Either none of the numbers or all of them have names. One argument may hold several numbers, separated by commas,
    or by spaces if they have no names, such as the last line that a program printed.

    >>> numbers_by_output(["0.5"]), numbers_by_output(["0.5 nan"]), numbers_by_output(["peak=0.5", "end time=12"])
    (0.5, [0.5, nan], {'peak': 0.5, 'end time': 12.0})
    """
    parts = [part for text in texts for part in (text.split(",") if "=" in text else text.replace(",", " ").split())]
    pairs = [(name.strip(), value) for name, equals, value in (part.rpartition("=") for part in parts) if equals]
    try:
        if parts and not pairs:
            numbers = [float(part) for part in parts]
            return numbers[0] if len(numbers) == 1 else numbers
        if len({name for name, _ in pairs}) == len(parts):
            return {name: float(value) for name, value in pairs}
    except ValueError:
        pass
    raise ValueError(f"must be numbers, such as 0.5 12, or peak=0.5 time=12, got {' '.join(texts)}")


def add_values(parser: CommandParser, what: str, count: Literal["*", "+"]) -> None:
    """Add arguments for the value of an evaluation, or the values of several outputs, and their variance."""
    parser.add_argument("value", nargs=count, metavar="VALUE", help=f"{what}; several outputs in order, or NAME=VALUE")
    parser.add_argument(
        "--variance", action="append", metavar="V", help="variance of the noise (default: 0); by output NAME=V,NAME=V"
    )


def add_problem(parser: CommandParser) -> None:
    """Add a problem file."""
    parser.add_argument("problem", type=Path, metavar="problem.toml", help="problem file")


def add_journal(parser: CommandParser) -> None:
    """Add the journal of a run."""
    parser.add_argument("journal", type=journal_path, metavar="run.jsonl", help="journal of the run")


def journal_path(text: str) -> Path:
    """Return the path of a journal; for a problem file, raise an error that names its journal."""
    path = Path(text)
    if path.suffix == ".toml":
        beside = path.with_suffix(".jsonl")
        where = (
            f"its journal is {beside}"
            if beside.exists()
            else "it has no journal yet: start one with amsbq run or amsbq ask"
        )
        raise argparse.ArgumentTypeError(f"{path} is a problem file, and {where}")
    return path


def whole_number(text: str) -> int:
    """Return the positive whole number in an argument."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number, at least 1, got {text!r}")
    return number


def seed_number(text: str) -> int:
    """Return the seed in an argument, a non-negative whole number."""
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"must be a non-negative whole number, got {text!r}")
    return int(text)


def evaluation_number(text: str) -> int:
    """Return the number of an evaluation in an argument; for the name of a table, the error suggests --from."""
    if not text.strip().isdecimal():
        hint = f"; pass a table of answers as --from {text}" if re.search(r"\.[a-z]\w*$", text) else ""
        raise argparse.ArgumentTypeError(
            f"must be the number of an evaluation, as ask or report shows it, got {text!r}{hint}"
        )
    return int(text)


def positive(text: str) -> float:
    """Return the positive number in an argument."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return number
