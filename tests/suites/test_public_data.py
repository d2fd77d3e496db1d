"""The page on public data sets: its commands read the published files, with the published counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.suites.catalog import find_entries
from pages import ROOT

_PAGE = ROOT / "docs" / "howto" / "public-data.md"
_ROW = re.compile(
    r"\| .* \| (?P<files>`.*) \| `acceptability (?P<command>[^`]+)` \| (?P<lines>\d+) \| (?P<counts>[^|]+\|[^|]+) \|"
)

# Words of stories with reading times, which are no suite of sentences.
_OTHERS = ("SOURCE.md", "naturalstories/*")


def rows() -> Iterator[re.Match[str]]:
    return (match for line in _PAGE.read_text(encoding="utf-8").splitlines() if (match := _ROW.fullmatch(line)))


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: row["command"])
def test_each_command_reads_what_the_table_says(row: re.Match[str], data: Path) -> None:
    done = CliRunner().invoke(app, [*row["command"].split(), "--json"])
    assert done.exit_code == 0, done.output
    (shown,) = json.loads(done.stdout)
    counts = tuple(int(cell.replace(",", "")) for cell in row["counts"].split("|"))
    assert (shown["sentences"], shown["contrasts"]) == counts
    assert row["lines"] == "1"


def test_every_published_file_is_in_the_table_and_in_the_catalog(data: Path) -> None:
    # The contracts of the catalog read each of its suites and compare the numbers of sentences and contrasts.
    names = [row["command"].rpartition(" ")[2] for row in rows()]
    listed = {
        f"{entry.folder.removeprefix('more/')}/{path}"
        for name in names
        for entry in find_entries(name)
        for path in entry.files
    }
    there = {str(path.relative_to(data / "more")) for path in (data / "more").rglob("*") if path.is_file()}
    there = {path for path in there if not any(fnmatch(path, other) for other in _OTHERS)}
    assert {path if path in listed else path.removesuffix(".gz") for path in there} == listed
    assert len(names) == 13
