"""The page on public data sets: its commands read the published files, with the published counts."""

from __future__ import annotations

import csv
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

_WORDS_ROW = re.compile(
    r"\| `naturalstories/(?P<file>[^`]+)`.* \| `acceptability (?P<command>[^`]+)` \| 1 \| (?P<words>[\d,]+) \| "
    r"(?P<values>[\d,]+) \|"
)

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


def test_the_tables_of_natural_stories_have_the_words_that_the_page_says(data: Path, tmp_path: Path) -> None:
    folder = data / "more" / "naturalstories"
    found = [match for line in _PAGE.read_text(encoding="utf-8").splitlines() if (match := _WORDS_ROW.fullmatch(line))]
    assert {match["file"] for match in found} == {path.name for path in folder.iterdir()}
    for match in found:
        words = [str(folder / word) if (folder / word).is_file() else word for word in match["command"].split()]
        out = tmp_path / f"{match['file']}.csv"
        done = CliRunner().invoke(app, [*words, "--out", str(out)])
        assert done.exit_code == 0, done.output
        with out.open(encoding="utf-8", newline="") as file:
            surprisals = [row["surprisal_bits"] for row in csv.DictReader(file)]
        assert f"{len(surprisals):,}" == match["words"]
        assert f"{sum(map(bool, surprisals)):,}" == match["values"]


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
