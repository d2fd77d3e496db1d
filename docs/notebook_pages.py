"""Notebooks: run their cells, and show them with their outputs as pages of the site.

Cells run in this process, as Jupyter would run them, so that neither a kernel nor its packages are needed. What a cell
shows is stored as Jupyter stores it, but for figures: GitHub removes drawings from HTML, and shows them as SVG.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import html
import io
import json
import re
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"

Cell = dict[str, Any]
Notebook = dict[str, Any]


def list_notebooks() -> list[Path]:
    """Return the notebooks of the repository."""
    return sorted(FOLDER.glob("*.ipynb"))


def read_notebook(path: Path) -> Notebook:
    """Return a notebook as it is stored."""
    notebook: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def write_notebook(path: Path, notebook: Notebook) -> None:
    """Write a notebook as Jupyter does, with an indent of one."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def run_notebook(notebook: Notebook) -> Notebook:
    """Return the notebook with the outputs of its cells, which run in order in an empty folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    _show_frames_as_in_jupyter()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                count += 1
                outputs = run_cell("".join(cell["source"]), names, count)
                cell = {**cell, "execution_count": count, "outputs": outputs}
            cells.append(cell)
    return {**notebook, "cells": cells}


def _show_frames_as_in_jupyter() -> None:
    """Make pandas show as many columns as in Jupyter: in a program, that depends on the width of the terminal."""
    # Imported here: the site is built without pandas, from the outputs that are stored.
    with contextlib.suppress(ImportError):
        import pandas as pd

        pd.set_option("display.max_columns", 20)
        pd.set_option("display.width", 200)


def run_cell(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """Return the outputs of a cell: what it prints, and the value of its last line.

    Args:
        source: The cell. Lines that begin with ``%`` are Jupyter's own, such as ``%pip``, and do not run.
        names: The names that earlier cells defined; those of this cell are added.
        count: The number of the cell.
    """
    lines = [line for line in source.splitlines() if not line.startswith("%")]
    body = ast.parse("\n".join(lines)).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    # Bars of progress and warnings, which differ from run to run, go to stderr and are not kept.
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(ast.Module(body, []), f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)  # noqa: S307
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _split(printed.getvalue())})
    if value is not None:
        outputs.append(
            {"data": describe_value(value), "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def describe_value(value: object) -> dict[str, list[str]]:
    """Return what a value shows of itself, by media type."""
    shown = {"text/plain": _split(repr(value))}
    to_html = getattr(value, "_repr_html_", None)
    if to_html is None:
        return shown
    text = to_html()
    drawing = re.fullmatch(r"<figure>(<svg.*</svg>)</figure>", text, re.DOTALL)
    return {"image/svg+xml": _split(drawing[1]), **shown} if drawing else {"text/html": _split(text), **shown}


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def write_page(notebook: Notebook) -> str:
    """Return a notebook with its outputs as a page in Markdown."""
    return "\n\n".join(filter(None, map(_write_cell, notebook["cells"]))) + "\n"


def _write_cell(cell: Cell) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *map(_write_output, cell["outputs"])])


def _write_output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = {kind: "".join(text) for kind, text in output["data"].items()}
    if "image/svg+xml" in data:
        drawing = base64.b64encode(data["image/svg+xml"].encode()).decode()
        text = html.escape(data["text/plain"])
        return f'<figure class="picture"><img alt="{text}" src="data:image/svg+xml;base64,{drawing}"></figure>'
    if "text/html" in data:
        # An empty line would end the HTML, and styles of a notebook are not those of the site.
        table = re.sub(r"<style.*?</style>|\n\s*", "", data["text/html"], flags=re.DOTALL)
        return f'<div class="output">{table}</div>'
    return f"```text\n{data['text/plain']}\n```"
