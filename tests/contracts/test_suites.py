"""Contracts of every suite of the catalog, plug-ins included."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.suites import load_catalog, load_suite
from acceptability.suites.catalog import CatalogEntry, verify_files
from acceptability.suites.tables import read_table, write_jsonl


@pytest.mark.parametrize("entry", load_catalog(), ids=lambda entry: entry.id)
class TestEverySuite:
    def test_it_is_complete_and_has_the_counts_of_the_catalog(
        self, entry: CatalogEntry, request, tmp_path: Path
    ) -> None:
        if entry.folder:
            request.getfixturevalue("data")
        assert set(verify_files(entry)) == set(entry.files)
        suite = load_suite(entry.id)
        assert (len(suite.sentences), len(suite.contrasts)) == (entry.sentences, entry.contrasts)
        if len(suite.sentences) < 20_000:
            write_jsonl(suite, tmp_path / "suite.jsonl")
            assert read_table(tmp_path / "suite.jsonl", columns={}).hash == suite.hash

    def test_the_catalog_has_its_source(self, entry: CatalogEntry) -> None:
        assert entry.title
        assert entry.citation
        assert entry.licence
        assert all(len(sha) == 64 for sha in entry.files.values())
        assert set(entry.upstream) <= set(entry.files)
        if entry.folder:
            assert entry.source.startswith("https://raw.githubusercontent.com/")
            assert len(entry.source.rsplit("/", 1)[1]) == 40, "the source must be at a fixed commit"


def test_ids_are_unique() -> None:
    ids = [entry.id for entry in load_catalog()]
    assert len(set(ids)) == len(ids)
