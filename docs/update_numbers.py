"""Compute every number of README and docs again, and write it where it stands: ``make numbers``.

    python docs/update_numbers.py README.md docs/why/ties.md
    python docs/update_numbers.py --slow

Three things on a page are brought up to date:

- ``console`` blocks: each command runs, and what it prints replaces the lines below it;
- ``python`` blocks: each example runs, and what it prints replaces what it printed before;
- numbers within sentences and tables: ``<!-- number: card('trigram', 'BLiMP', 'all') -->0.5395<!-- / -->``. The
  comment, which readers do not see, names the source; the functions of ``SOURCES`` below find the number there.

Notebooks (``notebooks/*.ipynb``) run from the first cell to the last, and their outputs are stored.

Blocks that are marked as slow run with ``--slow`` only, and blocks that are marked as not run never do.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import doctest
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# The blocks of a page are found as the tests find them, so that both agree on what a block and a mark is.
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "docs")]

import notebook_pages  # noqa: E402

import pages  # noqa: E402
from acceptability.specs import parse_spec  # noqa: E402

_NUMBER = re.compile(r"<!-- number: (.+?) -->(.*?)<!-- / -->")
_EMBEDDED = ROOT / "src" / "acceptability" / "embedded"


def find_card_value(model: str, section: str, row: str, form: str = "{:.4f}") -> str:
    """Return a value from the card of a model that comes with the package.

    Cells are decimals and not floats: half of the last digit is rounded as in the card, not as a binary fraction falls.

    Args:
        model: The model's name.
        section: The bold word that begins the section, such as ``BLiMP``.
        row: The first cell of the row.
        form: How the value is printed.
    """
    return form.format(Decimal(_find_card_row(model, section, row)[1]))


def find_card_interval(model: str, section: str, row: str, form: str = "{:.3f}") -> str:
    """Return an interval from the card of a model, as ``[low, high]``."""
    return (
        "["
        + ", ".join(form.format(Decimal(bound)) for bound in _find_card_row(model, section, row)[2].split(" to "))
        + "]"
    )


def _find_card_row(model: str, section: str, row: str) -> list[str]:
    card = (_EMBEDDED / model / "README.md").read_text(encoding="utf-8")
    table = card.partition(f"**{section}**")[2].partition("\n**")[0]
    for line in table.splitlines():
        cells = [cell.strip().strip("`") for cell in line.split("|")[1:-1]]
        if cells and cells[0] == row:
            return cells
    raise SystemExit(f"the card of {model} has no row {row!r} below {section}")


def measure_size(model: str) -> str:
    """Return the size of an embedded model's files in MB."""
    return f"{sum(path.stat().st_size for path in (_EMBEDDED / model).rglob('*') if path.is_file()) / 1e6:.0f}"


def count_entries(kind: str) -> str:
    """Return how many suites the catalog has, or how many models, measures, reductions or recipes are registered."""
    from acceptability import registry
    from acceptability.suites import load_catalog

    return f"{len(load_catalog()) if kind == 'suite' else len(registry.names(kind)):,}"


def find_cell(file: str, row: str, column: str, form: str = "{}") -> str:
    """Return a cell of a CSV file in the repository.

    Args:
        file: The file, as seen from the repository's root.
        row: The first cell of the row.
        column: The name of the column.
        form: How the cell is printed; a number if the form asks for one, as in ``{:.2f}``.
    """
    with (ROOT / file).open(encoding="utf-8", newline="") as lines:
        for cells in csv.DictReader(lines):
            if next(iter(cells.values())) == row:
                return form.format(Decimal(cells[column]) if ":" in form else cells[column])
    raise SystemExit(f"{file} has no row {row!r}")


def find_speed_ratio(model: str) -> str:
    """Return how many times as long as ours the other tool takes, from the table of measurements on two CPU cores.

    Args:
        model: The first cell of the rows, such as ``gpt2, as minicons``.
    """
    text = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8").partition("## Two CPU cores")[2]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    columns = next(row for row in rows if "ratio" in row)
    for row in rows:
        if row[:3] == [model, "ours", "float32"]:
            # "3.56 (3.24–3.73)": the median, and the range over rounds.
            return f"{Decimal(row[columns.index('ratio')].split()[0]):.1f}"
    raise SystemExit(f"bench/RESULTS.md has no row of ours in float32 for {model!r}")


def find_result(command: str, field: str, form: str = "{:.4f}", **row: str) -> str:
    """Return a field of what a command prints with ``--json``.

    Args:
        command: The command, without ``--json``.
        field: The field.
        form: How the value is printed.
        row: Fields that tell the row, such as ``model='trigram'``.
    """
    found = [each for each in _run_for_json(command) if all(str(each.get(key)) == value for key, value in row.items())]
    if len(found) != 1:
        raise SystemExit(f"{len(found)} rows of `{command}` have {row}")
    return form.format(found[0][field])


@cache
def _run_for_json(command: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads("\n".join(run_command([*shlex.split(command), "--json"])))
    return rows


SOURCES: dict[str, Callable[..., str]] = {
    "card": find_card_value,
    "interval": find_card_interval,
    "size": measure_size,
    "count": count_entries,
    "cell": find_cell,
    "result": find_result,
    "speed": find_speed_ratio,
}


def compute_number(source: str) -> str:
    """Return the number that a source names, as it is printed."""
    spec = parse_spec(source)
    if spec.name not in SOURCES:
        raise SystemExit(f"there is no source {spec.name!r} of numbers; there are {', '.join(SOURCES)}")
    return SOURCES[spec.name](*spec.args, **spec.options)


def update_inline_numbers(text: str, *, slow: bool) -> str:
    """Return a page with the numbers within its sentences and tables brought up to date.

    Args:
        text: The page.
        slow: Also those that a command gives; they are left as they are otherwise.
    """

    def replace(found: re.Match[str]) -> str:
        if found[1].startswith("result(") and not slow:
            return found[0]
        return f"<!-- number: {found[1]} -->{compute_number(found[1])}<!-- / -->"

    return _NUMBER.sub(replace, text)


def run_command(words: list[str]) -> list[str]:
    """Return the lines that a command prints: our own runs in this process, ``python FILE`` in one of its own."""
    if words[0] == "python":
        # The interpreter that runs this script, as in the tests: the shell may know another one, or none.
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{shlex.join(words)}: {done.stderr}")
        return [line.rstrip() for line in done.stdout.rstrip().splitlines()]
    from typer.testing import CliRunner

    from acceptability.cli import app

    result = CliRunner().invoke(app, words[1:] if words[0] == "acceptability" else words, env={"COLUMNS": None})
    if result.exit_code:
        raise SystemExit(f"{shlex.join(words)}: {result.exception!r}\n{result.stderr}")
    return [line.rstrip() for line in result.stdout.rstrip().splitlines()]


def update_console(body: str) -> str:
    """Return a console block in which each command is followed by what it prints now."""
    parts = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command = part.partition("\n")[0]
        parts.append("\n".join([f"$ {command}", *run_command(shlex.split(command))]))
    return "\n".join(parts) + "\n"


class _Recorder(doctest.OutputChecker):
    """Keeps what each example printed, in order, where that is not what the page says."""

    def __init__(self) -> None:
        self.outputs: list[str | None] = []

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        same = super().check_output(want, got, optionflags)
        self.outputs.append(None if same else got)
        return same


def update_python(body: str, names: dict[str, Any]) -> str:
    """Return a python block in which each example is followed by what it prints now.

    Args:
        body: The block.
        names: The names that earlier blocks of the page defined; those of this block are added.
    """
    test = doctest.DocTestParser().get_doctest(body, names, "block", "block", 0)
    recorder, messages = _Recorder(), io.StringIO()
    runner = doctest.DocTestRunner(checker=recorder, optionflags=doctest.ELLIPSIS, verbose=False)
    runner.run(test, out=messages.write, clear_globs=False)
    names.update(test.globs)
    if len(recorder.outputs) != len(test.examples):
        raise SystemExit(f"an example of the block raised an error:\n{messages.getvalue()}")
    lines = body.splitlines(keepends=True)
    # From the last example to the first: line numbers before it stay true.
    for example, output in reversed(list(zip(test.examples, recorder.outputs, strict=True))):
        if output is not None:
            start = example.lineno + example.source.count("\n")
            lines[start : start + example.want.count("\n")] = output.splitlines(keepends=True)
    return "".join(lines)


def update_page(page: Path, *, slow: bool) -> bool:
    """Bring the blocks and numbers of a page up to date; tell whether that changed the page."""
    old = page.read_text(encoding="utf-8")
    lines, names = old.splitlines(keepends=True), dict[str, Any]()
    edits: list[tuple[int, int, str]] = []
    in_order = page.parent.name == "learn"
    with _in_empty_folder(in_order):
        for block in pages.blocks(page):
            if in_order and block.title:
                Path(block.title).write_text(block.body, encoding="utf-8")
            elif block.mark == "not run" or (block.mark == "slow" and not slow):
                continue
            elif block.kind == "console":
                edits.append((block.line, block.body.count("\n"), update_console(block.body)))
            elif block.kind == "python" and not block.title:
                edits.append((block.line, block.body.count("\n"), update_python(block.body, names)))
            elif block.kind == "sh" and in_order:
                for words in pages.commands(block):
                    run_command(words)
        for start, count, body in reversed(edits):
            lines[start : start + count] = [body]
        new = update_inline_numbers("".join(lines), slow=slow)
    page.write_text(new, encoding="utf-8")
    return new != old


def update_notebook(path: Path) -> bool:
    """Run a notebook and store the outputs of its cells; tell whether that changed the file."""
    old = path.read_bytes()
    notebook_pages.write_notebook(path, notebook_pages.run_notebook(notebook_pages.read_notebook(path)))
    return path.read_bytes() != old


@contextlib.contextmanager
def _in_empty_folder(alone: bool) -> Iterator[None]:
    """Be in an empty folder; unless ``alone``, with the source in it, as at the root of a clone."""
    with tempfile.TemporaryDirectory() as folder:
        if not alone:
            (Path(folder) / "src").symlink_to(ROOT / "src")
        with contextlib.chdir(folder):
            yield


def main() -> None:
    """Bring the pages and notebooks up to date that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="by default README.md, all pages of docs and the notebooks")
    parser.add_argument("--slow", action="store_true", help="also what needs data sets, or takes long")
    given = parser.parse_args()
    # A home of its own: no number comes from what the user's store has kept.
    with tempfile.TemporaryDirectory() as home:
        os.environ["ACCEPTABILITY_HOME"] = home
        for page in [path.resolve() for path in given.pages] or [*pages.PAGES, *notebook_pages.list_notebooks()]:
            changed = update_notebook(page) if page.suffix == ".ipynb" else update_page(page, slow=given.slow)
            print(f"{pages.name_of(page)}: {'changed' if changed else 'up to date'}", flush=True)


if __name__ == "__main__":
    main()
