"""Programs as sources: inputs on the command line or in input files, the value from the output."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, Self

from ..common.validation import Array, brief
from ..design.failures import rejection
from ..design.observations import Observation
from .answers import SimulatorError, log_output
from .digests import digests
from .numerals import Quantity
from .output import OutputRule, Rules, as_answer, count_from_the_start, files_of, quoted_end, read_quantities, rules_of
from .program import Ended, run_program
from .template import Delimiters, filled_argument
from .workdir import KEEP, PATTERN, Keep, Work, WorkDirectory


class Command:
    r"""A program that is run for each evaluation, in any language.

    The inputs replace their names in the arguments and in templates of input files. They are also sent to
    its standard input, as a JSON object such as ``{"rate": 1.5, "dose": 0.25}``. The value is read from the output:
    by default from the last printed line, which is a number or a JSON object with "value" and, optionally,
    "variance" (of the noise on the value) and "cost"; or by an output rule. Use it as the function of a
    `Source`.

    Parameters
    ----------
    arguments : list of str
        The program and its arguments. ``{name}`` is replaced by the input of that name, with all of its digits;
        ``{name:.3f}`` by the input in a Python format; ``{{name}}`` stands for the text ``{name}``. Other braces,
        such as those of ``{ print $1 }``, are kept. No shell is involved: quotes, wildcards and semicolons have
        no special meaning.
    names : list of str
        The names of the inputs, in the order of x.
    folder : path
        Where a program written as "./program", templates and files are found. It is also the working directory of the
        program, unless each evaluation has a work directory.
    timeout : float, optional
        Seconds after which the program is killed, with the processes that it has started, except for those in their
        own session. By default there is no limit.
    output : dict, optional
        Where the value is: ``{"last": True}``, ``{"regex": r"peak = (\S+)"}``, ``{"column": "peak", "row": -1}``,
        ``{"json": "a.b[0]"}``, each with an optional "file", or ``{"file": "field.npy", "index": [0, -1]}``.
        Alternatively, a dictionary of such rules by name: "value", "variance" and "cost" make up an observation; with
        other names the call returns a dictionary of numbers.
    template : str or list of str, optional
        Input files, or folders of them, whose placeholders are filled in; they are written into the work directory.
    files, copies : list of str
        Files or folders that are linked, or copied, into the work directory. Those that an argument names are linked.
    inputs_file : str, optional
        The name of a file in the work directory to which the inputs are written, as a JSON object.
    workdir : str, optional
        The work directory of each evaluation, with ``{id}`` for its number and ``{source}`` for the name of the source.
        By default there is one, "runs/{source}-{id}", if there is a template, files, copies, an inputs_file or an
        output rule with a file.
    keep : "failed", "all" or "none"
        Which work directories are kept. They then contain the program's outputs, in stdout.txt and stderr.txt.
    environment : dict of str, optional
        Environment variables in addition to those of this process; ``{name}`` stands for an input, as in the arguments.
    delimiters : (str, str)
        The strings before and after the name of an input in a template.
    outputs : list of str
        Names of several outputs, each with a rule of that name in ``output``. Without rules, the last printed line has
        a number for each, or is a JSON object of them.
    settings : dict of float, optional
        Numbers by name that are the same in all evaluations, such as a number of cells: they replace their names as
        inputs do.

    Raises
    ------
    TypeError
        If the arguments are not a list of strings.
    ValueError
        If an argument or a template contains a ``{name}`` that is not the name of an input, or an invalid format; if a
        file is missing, or an output rule is invalid.

    Examples
    --------
    >>> import numpy as np
    >>> command = Command(["awk", "BEGIN { print 2 * {rate} + {dose} }"], ["rate", "dose"])
    >>> command(np.array([1.5, 0.25]))
    Observation(value=3.25, variance=0.0, cost=None, gradient=None)
    >>> verbose = Command(["echo", "peak = {rate} m; done in 0.3 s"], ["rate"], output={"regex": r"peak = (\S+)"})
    >>> verbose(np.array([1.5]))
    Observation(value=1.5, variance=0.0, cost=None, gradient=None)
    """

    one_by_one = True  #: it is not evaluated in bulk, however little it costs

    def __init__(
        self,
        arguments: Sequence[str],
        names: Sequence[str],
        folder: str | os.PathLike[str] = ".",
        timeout: float | None = None,
        *,
        output: Mapping[str, Any] | None = None,
        template: str | Sequence[str] = (),
        files: Sequence[str] = (),
        copies: Sequence[str] = (),
        inputs_file: str | None = None,
        workdir: str | None = None,
        keep: Keep = "failed",
        environment: Mapping[str, str] | None = None,
        delimiters: Delimiters = ("{", "}"),
        outputs: Sequence[str] = (),
        settings: Mapping[str, float] | None = None,
    ) -> None:
        if isinstance(arguments, str) or not arguments or not all(isinstance(a, str) for a in arguments):
            raise TypeError(f"a command is a list of strings, the program first, got {brief(arguments)}")
        self.arguments, self.names, self.timeout = list(arguments), list(names), timeout
        self.folder = str(Path(folder).resolve())
        self.environment = dict(environment or {})
        self.rules: Rules = None if output is None else rules_of(output)
        self.outputs, self.settings = tuple(outputs), dict(settings or {})
        if self.outputs and self.rules is not None:
            ruled = () if isinstance(self.rules, OutputRule) else tuple(self.rules)
            if missing := [name for name in self.outputs if name not in ruled]:
                raise ValueError(
                    f"output has no rule for {missing[0]!r}: add one for each of {', '.join(self.outputs)}"
                )
        self.__name__ = Path(self.arguments[0]).name
        for text in (*self.arguments, *self.environment.values()):
            filled_argument(
                text, dict.fromkeys(self.names, 0.5) | self.settings
            )  # raises if it is invalid, before anything runs
        if keep not in KEEP:
            raise ValueError(f"keep must be one of {', '.join(KEEP)}, got {keep!r}")
        if len(delimiters) != 2 or not all(delimiters) or delimiters[0] == delimiters[1]:
            raise ValueError(f"delimiters must be two different strings, got {list(delimiters)}")
        templates = (template,) if isinstance(template, str) else tuple(template)
        self._directory: WorkDirectory | None = None
        if workdir is not None or templates or files or copies or inputs_file is not None or files_of(self.rules):
            written = files_of(self.rules)
            if linked := {Path(name).name for name in files} & set(written):
                raise ValueError(f"{linked.pop()!r} cannot be both a linked file and the file of an output rule")
            self._directory = WorkDirectory(
                Path(self.folder),
                tuple(self.names),
                workdir or PATTERN,
                templates,
                tuple(files),
                tuple(copies),
                tuple(name for name in dict.fromkeys(self._named_files()) if os.path.normpath(name) not in written),
                inputs_file,
                delimiters,
                keep,
                self.settings,
            )
        self._source: str = self.__name__
        self._number: object = None
        self._valid: tuple[float, float] | None = None

    def numbered(self, source: str, number: object, valid: tuple[float, float] | None = None) -> Self:
        """Return a copy of the command for one evaluation, after which its work directory is named.

        Parameters
        ----------
        source : str
            The name of the source.
        number : int or str
            The number of the evaluation.
        valid : (float, float), optional
            An evaluation with a value outside has failed: its directory is kept, and the value is returned.
        """
        one = copy.copy(self)
        one._source, one._number, one._valid = source, number, valid
        return one

    def source_definition(self) -> dict[str, Any]:
        """Return everything on which the value depends, by which a journal identifies the source.

        It consists of the arguments, the names of the inputs, settings, the folder, output rules, templates, files,
        environment variables, and digests of the files.
        """
        described: dict[str, Any] = {"command": self.arguments, "inputs": self.names, "folder": self.folder}
        if self.outputs:
            described["outputs"] = list(self.outputs)
        if self.settings:
            described["settings"] = self.settings
        if self.environment:
            described["environment"] = self.environment
        if isinstance(self.rules, OutputRule):
            described["output"] = self.rules.as_dict()
        elif self.rules is not None:
            described["output"] = {name: rule.as_dict() for name, rule in self.rules.items()}
        files = [*self._named_files()]
        if self._directory is not None:
            kinds = {"template": self._directory.templates, "files": self._directory.files}
            kinds["copies"] = self._directory.copies
            described |= {kind: list(names) for kind, names in kinds.items() if names}
            files += [name for names in kinds.values() for name in names]
            if self._directory.inputs_file is not None:
                described["inputs_file"] = self._directory.inputs_file
        return {**described, "digests": digests(Path(self.folder), files)}

    def _named_files(self) -> list[str]:
        """Return the arguments that name a file in the folder: the program itself, a script, a mesh."""
        return [
            argument
            for argument in self.arguments
            if not Path(argument).is_absolute() and ".." not in Path(argument).parts and self._is_file(argument)
        ]

    def _is_file(self, name: str) -> bool:
        try:
            return (Path(self.folder) / name).is_file()
        except (OSError, ValueError):  # arguments may be programs of awk, too long for a name
            return False

    def filled(self, x: Array) -> tuple[list[str], dict[str, str]]:
        """Return the arguments and the contents of filled-in templates, by name, for x of shape (D,)."""
        inputs = self._inputs(x)
        made = {} if self._directory is None else self._directory.filled(inputs)
        texts = {name: text for name, (_, text) in made.items() if text is not None}
        return [filled_argument(argument, inputs) for argument in self.arguments], texts

    def quantities(self, x: Array) -> dict[str, Quantity]:
        """Run the program with the inputs x, of shape (D,), and return its quantities with units, by name.

        Raises
        ------
        SimulatorError
            If the program takes longer than the timeout, ends with an error, or writes no value. The message quotes
            the end of its output.
        OSError
            If the program cannot be started.
        """
        inputs = self._inputs(x)
        arguments = [filled_argument(argument, inputs) for argument in self.arguments]
        if self._directory is not None and os.sep in arguments[0]:
            arguments[0] = str(Path(self.folder) / arguments[0])
        environment = {name: filled_argument(text, inputs) for name, text in self.environment.items()}
        with self._working(inputs) as work:
            ended = run_program(arguments, work.folder, json.dumps(inputs).encode(), self.timeout, environment)
            log_output(ended.stdout, ended.stderr)
            if self._directory is not None and self._directory.keep != "none":
                _write_outputs(work.folder, ended)
            if ended.problem:
                raise SimulatorError(f"{ended.problem}{quoted_end(ended.stderr or ended.stdout)}")
            if ended.cut and count_from_the_start(self.rules):
                raise SimulatorError("it printed too much to count rows from the beginning: let it write a file")
            try:
                found = read_quantities(self.rules, ended.stdout, work.folder, self.outputs)
                answer = as_answer(found)  # raises if a variance is negative, for example
            except (SimulatorError, ValueError) as error:
                raise SimulatorError(f"{error}{quoted_end(ended.stderr)}") from None
            refused = isinstance(answer, Observation) and rejection(answer.value, self._valid, answer.variance)
            work.succeeded = not refused
            return found

    def __call__(self, x: Array) -> Observation | dict[str, float]:
        """Run the program with the inputs x, of shape (D,), and return its answer; see `quantities` for errors."""
        return as_answer(self.quantities(x))

    def _inputs(self, x: Array) -> dict[str, float]:
        return dict(zip(self.names, (float(value) for value in x), strict=True)) | self.settings

    def _working(self, inputs: dict[str, float]) -> AbstractContextManager[Work]:
        """Return a context with the working directory of the program."""
        if self._directory is None:
            return nullcontext(Work(Path(self.folder)))
        return self._directory.prepared(inputs, self._source, self._number)


def _write_outputs(folder: Path, ended: Ended) -> None:
    """Write the outputs of a program to its work directory, unless it has written files of these names."""
    for name, text in (("stdout.txt", ended.stdout), ("stderr.txt", ended.stderr)):
        if not (folder / name).exists():
            (folder / name).write_text(text, encoding="utf-8")
