"""What holds for every suite of the catalog, plug-ins included."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.suites import catalog, load_suite
from acceptability.suites.catalog import Entry
from acceptability.suites.fetch import verify
from acceptability.suites.tables import read_table, write_jsonl


@pytest.mark.parametrize("entry", catalog(), ids=lambda entry: entry.id)
class TestEverySuite:
    def test_it_is_whole_and_has_the_counts_of_the_catalog(self, entry: Entry, request, tmp_path: Path) -> None:
        if entry.folder:
            request.getfixturevalue("data")
        assert set(verify(entry)) == set(entry.files)
        suite = load_suite(entry.id)
        assert (len(suite.sentences), len(suite.contrasts)) == (entry.sentences, entry.contrasts)
        if len(suite.sentences) < 20_000:
            write_jsonl(suite, tmp_path / "suite.jsonl")
            assert read_table(tmp_path / "suite.jsonl", columns={}).hash == suite.hash

    def test_the_catalog_says_where_it_comes_from(self, entry: Entry) -> None:
        assert entry.title
        assert entry.citation
        assert entry.licence
        assert all(len(sha) == 64 for sha in entry.files.values())
        assert set(entry.upstream) <= set(entry.files)
        if entry.folder:
            assert entry.source.startswith("https://raw.githubusercontent.com/")
            assert len(entry.source.rsplit("/", 1)[1]) == 40, "the source must stand at a fixed commit"


def test_ids_are_unique() -> None:
    ids = [entry.id for entry in catalog()]
    assert len(set(ids)) == len(ids)
