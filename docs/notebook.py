"""Execute the notebook of the examples and show it on the site.

    python docs/notebook.py              # execute examples/epidemic/epidemic.ipynb, and write its outputs into it

The site shows the outputs that are in the file; `tests/test_notebook.py` executes it anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parent.parent / "examples" / "epidemic" / "epidemic.ipynb"


def executed(path: Path = NOTEBOOK) -> Any:
    """Return a notebook after all of its cells were executed, in its own folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day, which would change each time
    return notebook


def as_markdown(path: Path = NOTEBOOK) -> str:
    """Return the cells of a notebook and their outputs as a Markdown page."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"``` {{.python}}\n{source}\n```", *(_shown(output) for output in cell["outputs"])]


def _shown(output: dict[str, Any]) -> str:
    """Return one output: the richest form that a page can show."""
    if output["output_type"] == "stream":
        return f"``` {{.text .output .no-copy}}\n{''.join(output['text']).rstrip()}\n```"
    data = output["data"]
    if "text/html" in data:
        html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))  # an empty line would end it
        return f'<div class="notebook-output">\n{html}\n</div>'
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        return f'<div class="notebook-output"><img alt="figure" src="data:image/png;base64,{png}"></div>'
    return f"``` {{.text .output .no-copy}}\n{''.join(data['text/plain'])}\n```"


if __name__ == "__main__":
    import nbformat

    nbformat.write(executed(), NOTEBOOK)
