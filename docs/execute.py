"""Find and run the code on the pages of this site.

A page is one program. Its blocks are run in order, in one namespace and in an empty folder:

    ```python                       is executed; the figures on the page are files that its blocks save
    ```sh                           is executed by a shell, or in this process if all it does is to call amsbq
    ```toml title="problem.toml"    is written to that file, whatever its language

A block after a comment <!-- not run: why --> is not executed.

`tests/test_docs.py` runs all pages, with warnings as errors; `hooks.py` runs them to show outputs and figures.

    python docs/execute.py docs/quickstart.md /tmp/folder
"""

import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from amsbq.cli.main import main

BLOCK = re.compile(
    r"^(?P<skip><!-- not run: .*?-->\n+)?^```(?P<language>python|sh|toml)(?P<options>[^\n]*)\n(?P<code>.*?)^```$",
    re.M | re.S,
)
TITLE = re.compile(r'title="([^"]+)"')
NEEDS = re.compile(r"^\s*(?:import|from) (distributed|umbridge|matplotlib|gest_api)\b|\.to_(pandas)\(\)", re.M)
#: a line that calls amsbq, without anything for which a shell is needed
OWN_COMMAND = re.compile(r"amsbq [^|&;<>()$`\\*?#~]*")
FIGURE = re.compile(r"!\[[^\]]*\]\(([\w.-]+\.svg)\)")
OUTPUTS = "outputs.json"  #: the file, in the folder of a run, that holds what each block printed


@dataclass(frozen=True)
class Block:
    """One block of code on a page."""

    language: str
    file: str | None  # the file to write it to, instead of executing it
    code: str
    line: int  # number of its first line on the page
    end: int  # position of its end in the text of the page
    run: bool  # whether it is executed


def blocks(markdown: str) -> list[Block]:
    """Return all blocks of a page that are executed, written to a file or skipped."""
    found = []
    for match in BLOCK.finditer(markdown):
        title = TITLE.search(match["options"])
        language = match["language"]
        run = title is None and language in ("python", "sh") and match["skip"] is None
        line = markdown.count("\n", 0, match.start("code")) + 1
        found.append(Block(language, title and title[1], match["code"], line, match.end(), run))
    return found


def figures(markdown: str) -> list[str]:
    """Return the file names of the figures on a page, which its code has to draw."""
    return list(dict.fromkeys(FIGURE.findall(markdown)))


def has_code(markdown: str) -> bool:
    """Return whether a page has Python code to execute."""
    return any(block.language == "python" and block.run for block in blocks(markdown))


def missing(markdown: str) -> list[str]:
    """Return the packages that a page needs and that are not installed."""
    needed = dict.fromkeys(found[1] or found[2] for found in NEEDS.finditer(markdown))
    return [name for name in needed if importlib.util.find_spec(name) is None]


def run(page: Path, folder: Path) -> list[str]:
    """Run a page in a folder, and return what each of its blocks printed."""
    import matplotlib

    matplotlib.use("agg")
    markdown = page.read_text(encoding="utf-8")
    settings = {"svg.hashsalt": page.stem}  # identical figures in every build
    namespace: dict[str, object] = {"__name__": "__main__"}
    outputs = []
    with matplotlib.rc_context(settings), contextlib.chdir(folder), _importable(folder):
        for block in blocks(markdown):
            if block.file is not None:
                (folder / block.file).write_text(block.code, encoding="utf-8")
                if block.code.startswith("#!"):
                    (folder / block.file).chmod(0o755)
            outputs.append(_output(block, page, namespace) if block.run else "")
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")
    absent = [name for name in figures(markdown) if not (folder / name).exists()]
    if absent:
        raise FileNotFoundError(f"{page} shows {', '.join(absent)}, but none of its blocks saves it")
    return outputs


def _output(block: Block, page: Path, namespace: dict[str, object]) -> str:
    """Execute a block, and return what it printed."""
    lines = block.code.splitlines()
    if block.language == "sh" and not all(OWN_COMMAND.fullmatch(line) for line in lines):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-e"], input=block.code, text=True, capture_output=True, env={**os.environ, "PATH": path}
        )
        if done.returncode:
            raise RuntimeError(f"{page}, line {block.line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.language == "python":
            # The empty lines make the line numbers of a traceback those of the page.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
            return printed.getvalue()
        with contextlib.redirect_stderr(errors):
            # A process for each of them would spend most of its time on imports.
            codes = [main(shlex.split(line)[1:]) for line in lines]
    if any(codes):
        raise RuntimeError(f"{page}, line {block.line}: exit codes {codes}\n{printed.getvalue()}{errors.getvalue()}")
    return printed.getvalue()


@contextlib.contextmanager
def _importable(folder: Path):
    """Make the modules that a page writes importable, and remove them afterwards."""
    sys.path.insert(0, str(folder))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(folder), *([before] if before else [])])  # for child processes
    try:
        yield
    finally:
        sys.path[:] = [entry for entry in sys.path if entry != str(folder)]
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(f"{folder}{os.sep}"):
                del sys.modules[name]


if __name__ == "__main__":
    page, folder = (Path(argument).resolve() for argument in sys.argv[1:])
    (folder / OUTPUTS).write_text(json.dumps(run(page, folder)), encoding="utf-8")
