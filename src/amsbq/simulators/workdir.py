"""Work directories of programs: one for each evaluation, with input files made from templates."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Literal, TypeAlias

from .answers import log_output
from .template import Delimiters, Inputs, filled_template

#: which work directories are kept after an evaluation
Keep: TypeAlias = Literal["failed", "all", "none"]
KEEP: tuple[Keep, ...] = ("failed", "all", "none")

#: the default work directory of an evaluation
PATTERN = "runs/{source}-{id}"


@dataclass
class Work:
    """The work of one evaluation.

    Attributes
    ----------
    folder : Path
        The work directory.
    succeeded : bool
        Set when there is an acceptable value; until then the evaluation counts as failed.
    """

    folder: Path
    succeeded: bool = False


@dataclass(frozen=True)
class WorkDirectory:
    """The content of the work directory of each evaluation, and whether it is kept.

    Parameters
    ----------
    folder : Path
        The root of all relative paths, where templates and files are found.
    names : tuple of str
        Names of the inputs.
    pattern : str
        The name of the directory, with ``{id}`` for the number of the evaluation and, optionally, ``{source}`` for the
        name of the source. If that directory already exists, one with a number appended is made.
    templates : tuple of str
        Files, or folders of files, whose placeholders are filled in. A file is written under its own name, the content
        of a folder under the names there; files that are not text are copied.
    files, copies : tuple of str
        Files or folders that are linked, or copied, under their own names, without the folders that they are in.
    named : tuple of str
        Files that arguments name; they are linked under the same relative path, unless it exists.
    inputs_file : str, optional
        The name of a file to write, with the inputs as a JSON object.
    delimiters : (str, str)
        The strings before and after the name of an input in a template.
    keep : str
        "failed" keeps the directories of failed evaluations, including those with invalid values; "all" keeps all,
        "none" none.
    settings : dict of float
        Numbers by name that are the same in all evaluations.

    Raises
    ------
    ValueError
        If a file is missing, two would have the same name, a placeholder is not an input, or the pattern lacks
        ``{id}``.
    """

    folder: Path
    names: tuple[str, ...]
    pattern: str = PATTERN
    templates: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    inputs_file: str | None = None
    delimiters: Delimiters = ("{", "}")
    keep: Keep = "failed"
    settings: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if "{id}" not in self.pattern or set("{}") & set(self.pattern.replace("{id}", "").replace("{source}", "")):
            raise ValueError(
                f"workdir must contain {{id}}, and may contain {{source}}, as in {PATTERN!r}: got {self.pattern!r}"
            )
        for name in (*self.templates, *self.files, *self.copies):
            if not (self.folder / name).exists():
                raise ValueError(f"there is no file or folder {name!r} in {self.folder}")
        for name in (*self.templates, *self.copies):
            if (self.folder / self.pattern).resolve().is_relative_to((self.folder / name).resolve()):
                raise ValueError(
                    f"the work directories, {self.pattern}, would be inside {name!r}, which is copied into them"
                )
        if self.inputs_file is not None and Path(self.inputs_file).name != self.inputs_file:
            raise ValueError(f"inputs_file must be a name without a folder, got {self.inputs_file!r}")
        self.filled(
            dict.fromkeys(self.names, 0.5) | dict(self.settings)
        )  # raises if a template is invalid, before anything runs
        self._check_names()

    def _check_names(self) -> None:
        """Raise if two files would have the same name: writing through a link would change the user's file."""
        made = [target for template in self.templates for target, _ in _template_files(self.folder / template)]
        listed = [Path(name).name for name in (*self.files, *self.copies)]
        listed += [] if self.inputs_file is None else [self.inputs_file]
        tops = {Path(target).parts[0] for target in made}
        twice = [name for name in listed if listed.count(name) > 1 or name in tops]
        twice += [target for target in made if made.count(target) > 1]
        if twice:
            raise ValueError(f"two files of the work directory would be named {twice[0]!r}: list it once")

    def filled(self, inputs: Inputs) -> dict[str, tuple[Path, str | None]]:
        """Return by name, for each file of the templates, its path and filled text, or None if it is copied."""
        made: dict[str, tuple[Path, str | None]] = {}
        for template in self.templates:
            for target, path in _template_files(self.folder / template):
                try:
                    text = path.read_bytes().decode("utf-8")
                except UnicodeDecodeError:
                    if path == self.folder / template:  # other files belong to a folder of templates
                        raise ValueError(
                            f"template {template!r} is not UTF-8 text: convert it, or list it in copies"
                        ) from None
                    made[target] = path, None
                else:
                    made[target] = path, filled_template(text, inputs, target, self.delimiters)
        return made

    @contextmanager
    def prepared(self, inputs: Inputs, source: str, number: object = None) -> Iterator[Work]:
        """Make the work directory of an evaluation; at the end of the context, keep and log it, or remove it.

        Parameters
        ----------
        inputs : dict of float
            The values of the inputs by name.
        source : str
            The name of the source.
        number : int or str, optional
            The number of the evaluation; by default random characters, for calls outside a run.
        """
        work = Work(self._made(source, secrets.token_hex(4) if number is None else str(number)))
        try:
            self._fill(work.folder, inputs)
            yield work
        finally:
            if self.keep == "all" or (self.keep == "failed" and not work.succeeded):
                log_output(folder=str(work.folder))
            else:
                shutil.rmtree(work.folder, ignore_errors=True)

    def _made(self, source: str, number: str) -> Path:
        """Return a new, empty directory; existing files are not touched."""
        plain = "".join(c if c.isalnum() or c in "-_.+" else "_" for c in source) or "source"
        wanted = self.folder / self.pattern.replace("{source}", plain).replace("{id}", number)
        for attempt in count():
            directory = wanted if not attempt else wanted.with_name(f"{wanted.name}.{attempt}")
            with suppress(FileExistsError):
                directory.mkdir(parents=True)
                return directory
        raise AssertionError

    def _fill(self, directory: Path, inputs: Inputs) -> None:
        for name in self.files:
            (directory / Path(name).name).symlink_to((self.folder / name).resolve())
        for name in self.copies:
            path, target = self.folder / name, directory / Path(name).name
            shutil.copytree(path, target) if path.is_dir() else shutil.copy2(path, target)
        for name, (path, text) in self.filled(inputs).items():
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                shutil.copy2(path, target)
            else:
                target.write_bytes(text.encode())
                shutil.copymode(path, target)  # it may be a script
        if self.inputs_file is not None:
            (directory / self.inputs_file).write_text(json.dumps(dict(inputs)), encoding="utf-8")
        for name in self.named:
            if not (directory / name).exists():
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                (directory / name).symlink_to((self.folder / name).resolve())


def _template_files(template: Path) -> Iterator[tuple[str, Path]]:
    """For each file of a template, yield its name in the work directory and its path."""
    if not template.is_dir():
        yield template.name, template
        return
    for path in sorted(template.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(template)), path
