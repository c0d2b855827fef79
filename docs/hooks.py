"""What happens when the site is built: code is run and its output shown, TeX becomes MathML, help texts are asked for.

With AMSBQ_DOCS_RUN=0 no code is run: there are no outputs, and figures are empty. The tests build the site like that,
as they run the code by themselves.
"""

import html
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import execute

EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="40"/>'
MATHS = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
TAG = re.compile(r"\\tag\{([^}]*)\}")
#: what browsers understand instead of what latex2mathml writes
MENDED = {
    'width="negativethinmathspace"': 'width="-0.167em"',
    'columnalign="right"': 'style="text-align: right"',
    'columnalign="left"': 'style="text-align: left"',
    "<mi>&#x00064;</mi>": '<mi mathvariant="normal">d</mi>',  # \mathrm{d}
    "<mi>&#x027E8;</mi>": '<mo stretchy="false" form="prefix">&#x027E8;</mo>',
    "<mi>&#x027E9;</mi>": '<mo stretchy="false" form="postfix">&#x027E9;</mo>',
    '<mo stretchy="false">&#x0007C;</mo>': '<mo stretchy="false" lspace="0.15em" rspace="0.15em">|</mo>',
}
UNDESCRIBED = re.compile(r'–\s*<div class="doc-md-description">\s*</div>')
NAMED = re.compile(r"<mo>([a-z]{2,})</mo>")  # such as diag
HELP = "<!-- the help of every command -->"

_folder: tempfile.TemporaryDirectory | None = None
_outputs: dict[str, list[str]] = {}


def on_files(files, config):
    """Run the code of all pages, and take in the figures that it has drawn."""
    global _folder
    _folder = _folder or tempfile.TemporaryDirectory(prefix="amsbq-docs-")
    pages = {file.src_uri: Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path}
    texts = {uri: path.read_text(encoding="utf-8") for uri, path in pages.items()}
    with_code = [uri for uri in pages if execute.has_code(texts[uri])]
    if os.environ.get("AMSBQ_DOCS_RUN", "1") != "0":
        with ThreadPoolExecutor(2) as pool:
            _outputs.update(zip(with_code, pool.map(lambda uri: _run(uri, pages[uri]), with_code), strict=True))
    for uri in with_code:
        for name in execute.figures(texts[uri]):
            drawn = Path(_folder.name, uri, name)
            target = (Path(uri).parent / name).as_posix()
            if files.get_file_from_path(target) is not None:
                raise PluginError(f"{uri} draws {name}, which another page of the same folder has, too")
            content = drawn.read_text(encoding="utf-8") if uri in _outputs else EMPTY
            files.append(File.generated(config, target, content=content))
    return files


def _run(uri: str, page: Path) -> list[str]:
    folder = Path(_folder.name, uri)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():  # a journal of the last time would make a run go on
        if old.is_file():
            old.unlink()
    absent = execute.missing(page.read_text(encoding="utf-8"))
    if absent:
        raise PluginError(f"{uri} needs {', '.join(absent)}: pip install 'amsbq[docs]'")
    command = [sys.executable, "-W", "error", str(Path(execute.__file__)), str(page), str(folder)]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads})
    if done.returncode:
        raise PluginError(f"the code of {uri} failed:\n{done.stderr}")
    return json.loads((folder / execute.OUTPUTS).read_text(encoding="utf-8"))


def on_page_markdown(markdown, page, **_):
    """Show what blocks printed, below each of them."""
    pieces, done = [], 0
    for block, output in zip(execute.blocks(markdown), _outputs.get(page.file.src_uri, []), strict=False):
        if output.strip():
            pieces += [markdown[done : block.end], f"\n\n``` {{.text .output .no-copy}}\n{output.rstrip()}\n```\n"]
            done = block.end
    return "".join([*pieces, markdown[done:]]).replace(HELP, _help() if HELP in markdown else "")


def on_page_content(html, **_):
    """TeX to MathML; and no dashes before descriptions that are not there."""
    return MATHS.sub(_mathml, UNDESCRIBED.sub("", html))


def _mathml(match: re.Match) -> str:
    tex = html.unescape(match[2]).strip()
    number = TAG.search(tex)
    display = "block" if match[1] == "div" else "inline"
    made = convert(TAG.sub("", tex), display=display)
    if "\\" in re.sub(r'alttext="[^"]*"', "", made):
        raise PluginError(f"this is not understood, and would be shown as it is: {tex}")
    for old, new in MENDED.items():
        made = made.replace(old, new)
    made = NAMED.sub(r"<mi>\1</mi><mo>&#x2061;</mo>", made)
    if display == "inline":
        return f"<span data-search-exclude>{made}</span>"
    label = f'<span class="number">({number[1]})</span>' if number else ""
    return f'<div class="equation" data-search-exclude><div class="formula">{made}</div>{label}</div>'


def _help() -> str:
    """What --help says, of the command line and of each command."""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    from amsbq.cli.parser import build_parsers

    return "\n".join(
        f"## {name}\n\n```text\n{parser.format_help().rstrip()}\n```\n" for name, parser in build_parsers().items()
    )
