"""MkDocs hooks: run the code on pages, show its output, the notebook and the gallery, convert TeX, insert the help.

What a page printed and drew is kept in `.cache/docs`. The page is run again only if it, the library or a package that
it rests on has changed. With AMSBQ_DOCS_RUN=0 no code is run: there are no outputs, and figures are empty. The tests
build the site in this way, because they run the code separately.
"""

import hashlib
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).parent))
import execute
import gallery
import notebook

EMPTY_FIGURE = '<svg xmlns="http://www.w3.org/2000/svg" width="64" height="40"/>'
#: TeX as the extension arithmatex marks it, inline (span) or displayed (div)
TEX = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)
EQUATION_NUMBER = re.compile(r"\\tag\{([^}]*)\}")
#: output of latex2mathml that browsers do not display well -> what they do
MATHML_FIXES = {
    'width="negativethinmathspace"': 'width="-0.167em"',
    'columnalign="right"': 'style="text-align: right"',
    'columnalign="left"': 'style="text-align: left"',
    "<mi>&#x00064;</mi>": '<mi mathvariant="normal">d</mi>',  # \mathrm{d}
    "<mi>&#x027E8;</mi>": '<mo stretchy="false" form="prefix">&#x027E8;</mo>',
    "<mi>&#x027E9;</mi>": '<mo stretchy="false" form="postfix">&#x027E9;</mo>',
    '<mo stretchy="false">&#x0007C;</mo>': '<mo stretchy="false" lspace="0.15em" rspace="0.15em">|</mo>',
}
OPERATOR_NAME = re.compile(r"<mo>([a-z]{2,})</mo>")  # such as diag
#: the dash that mkdocstrings writes before an empty description
EMPTY_DESCRIPTION = re.compile(r'–\s*<div class="doc-md-description">\s*</div>')
HELP_PLACEHOLDER = "<!-- the help of every command -->"
CARDS_PLACEHOLDER, TRUTHS_PLACEHOLDER = "<!-- the cards of the gallery -->", "<!-- the truths of the gallery -->"
#: what pages printed and drew, in a folder for each digest of what that depends on
CACHE = Path(__file__).parent.parent / ".cache" / "docs"
#: comments for those who maintain a page: the tests of what it promises
TESTS = re.compile(r"[ \t]*<!--\s*tests/.*?-->\n?", re.S)

_folder: tempfile.TemporaryDirectory | None = None  # where the code of all pages is run
_outputs: dict[str, list[str]] = {}  # of each page, what its blocks printed


def on_files(files, config):
    """Run the code of all pages, and add the figures that it drew to the site."""
    global _folder
    _folder = _folder or tempfile.TemporaryDirectory(prefix="amsbq-docs-")
    pages = {file.src_uri: Path(file.abs_src_path) for file in files.documentation_pages() if file.abs_src_path}
    texts = {uri: path.read_text(encoding="utf-8") for uri, path in pages.items()}
    files.append(File.generated(config, "notebook.md", content=notebook.as_markdown()))
    files.append(File.generated(config, notebook.NOTEBOOK.name, abs_src_path=str(notebook.NOTEBOOK)))
    for name in gallery.EXAMPLES:
        files.append(File.generated(config, f"gallery/{name}.md", content=gallery.as_markdown(name)))
    with_code = [uri for uri in pages if execute.has_code(texts[uri])]
    if os.environ.get("AMSBQ_DOCS_RUN", "1") != "0":
        common = _digest_of_the_code()
        digests = {uri: hashlib.sha256(common + uri.encode() + texts[uri].encode()).hexdigest() for uri in with_code}
        with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
            found = pool.map(lambda uri: _cached(uri, pages[uri], CACHE / digests[uri]), with_code)
            _outputs.update(zip(with_code, found, strict=True))
        for old in CACHE.iterdir():
            if old.name not in digests.values():
                shutil.rmtree(old)
    for uri in with_code:
        for name in execute.figures(texts[uri]):
            drawn = Path(_folder.name, uri, name)
            target = (Path(uri).parent / name).as_posix()
            if files.get_file_from_path(target) is not None:
                raise PluginError(f"{uri} draws {name}, but another page in the same folder draws it too")
            content = drawn.read_text(encoding="utf-8") if uri in _outputs else EMPTY_FIGURE
            files.append(File.generated(config, target, content=content))
    return files


def _digest_of_the_code() -> bytes:
    """Return the digest of what all pages depend on: the library, what runs them, and the packages below."""
    root = Path(__file__).parent.parent
    code = [*sorted((root / "src").rglob("*.py")), Path(execute.__file__)]
    versions = [sys.version, *(version(name) for name in ("numpy", "scipy", "matplotlib"))]
    return hashlib.sha256(b"\0".join([*(file.read_bytes() for file in code), *map(str.encode, versions)])).digest()


def _cached(uri: str, page: Path, cache: Path) -> list[str]:
    """Return what each block of a page printed, from the cache or by running it; its figures are in its folder."""
    folder = Path(_folder.name, uri)
    if (cache / execute.OUTPUTS).exists():
        shutil.copytree(cache, folder, dirs_exist_ok=True)
        return json.loads((folder / execute.OUTPUTS).read_text(encoding="utf-8"))
    outputs = _run(uri, page)
    cache.mkdir(parents=True, exist_ok=True)
    for name in [*execute.figures(page.read_text(encoding="utf-8")), execute.OUTPUTS]:  # the last one completes it
        shutil.copyfile(folder / name, cache / name)
    return outputs


def _run(uri: str, page: Path) -> list[str]:
    """Run the code of one page in a process of its own, and return what each block printed."""
    folder = Path(_folder.name, uri)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():  # a journal of an earlier build would be resumed
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
    """Insert the output of each block below it and the command-line help, and remove comments that name tests."""
    pieces, done = [], 0
    for block, output in zip(execute.blocks(markdown), _outputs.get(page.file.src_uri, []), strict=False):
        if output.strip():
            pieces += [markdown[done : block.end], f"\n\n``` {{.text .output .no-copy}}\n{output.rstrip()}\n```\n"]
            done = block.end
    text = TESTS.sub("", "".join([*pieces, markdown[done:]]))
    for placeholder, shown in ((CARDS_PLACEHOLDER, gallery.cards), (TRUTHS_PLACEHOLDER, gallery.truths)):
        text = text.replace(placeholder, shown()) if placeholder in text else text
    return text.replace(HELP_PLACEHOLDER, _help()) if HELP_PLACEHOLDER in text else text


def on_page_content(html, **_):
    """Convert TeX to MathML, and remove the dashes before empty descriptions."""
    return TEX.sub(_mathml, EMPTY_DESCRIPTION.sub("", html))


def _mathml(match: re.Match) -> str:
    tex = html.unescape(match[2]).strip()
    number = EQUATION_NUMBER.search(tex)
    display = "block" if match[1] == "div" else "inline"
    mathml = convert(EQUATION_NUMBER.sub("", tex), display=display)
    if "\\" in re.sub(r'alttext="[^"]*"', "", mathml):
        raise PluginError(f"latex2mathml does not know a command in: {tex}")
    for old, new in MATHML_FIXES.items():
        mathml = mathml.replace(old, new)
    mathml = OPERATOR_NAME.sub(r"<mi>\1</mi><mo>&#x2061;</mo>", mathml)
    if display == "inline":
        return f"<span data-search-exclude>{mathml}</span>"
    label = f'<span class="number">({number[1]})</span>' if number else ""
    return f'<div class="equation" data-search-exclude><div class="formula">{mathml}</div>{label}</div>'


def _help() -> str:
    """Return the help of the command line and of each command, as Markdown."""
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1"}
    from amsbq.cli.parser import build_parsers

    return "\n".join(
        f"## {name}\n\n```text\n{parser.format_help().rstrip()}\n```\n" for name, parser in build_parsers().items()
    )
