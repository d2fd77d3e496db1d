"""Contracts of every suite of the catalog, plug-ins included."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from acceptability import suites
from acceptability.suites import load_catalog, load_suite
from acceptability.suites.catalog import CatalogEntry, verify_files
from acceptability.suites.tables import read_table, write_jsonl
from acceptability.types import Suite

# Large suites beside others that the same readers read in every run. The hashes of their files are always verified.
READ_WHEN_SLOW = ("marvin_linzen2018/current", "clams/en", "clams/de", "clams/fr")


@pytest.mark.parametrize("entry", load_catalog(), ids=lambda entry: entry.id)
class TestEverySuite:
    def test_it_is_complete_and_has_the_counts_of_the_catalog(
        self, entry: CatalogEntry, request, tmp_path: Path
    ) -> None:
        if entry.in_tables:
            pytest.skip("a data set of the Hub: tests/suites/test_hub_suites.py reads copies of its layout")
        if entry.folder:
            request.getfixturevalue("data")
        assert set(verify_files(entry)) == set(entry.files)
        if entry.id in READ_WHEN_SLOW and not request.config.getoption("--slow"):
            pytest.skip("needs --slow")
        # The largest two are read as they are loaded, but not hashed and kept for tests that would all be slow.
        suite = load_suite(entry.id) if entry.sentences < 200_000 else suites._parse_entry(entry)
        assert (len(suite.sentences), len(suite.contrasts)) == (entry.sentences, entry.contrasts)
        if len(suite.sentences) < 20_000:
            write_jsonl(suite, tmp_path / "suite.jsonl")
            again = read_table(tmp_path / "suite.jsonl", columns={})
            assert (again.hash, again.unit) == (suite.hash, suite.unit)
            # The contrasts stand with their better sentences, and so perhaps in another order.
            assert sorted(map(repr, again.contrasts)) == sorted(map(repr, suite.contrasts))
        check_sampling_unit(entry, suite)

    def test_the_catalog_declares_the_sampling_unit(self, entry: CatalogEntry) -> None:
        assert entry.unit, "the catalog has to say what was sampled: a tag, or row"
        assert len(entry.unit_reason) > 20, "and why"

    def test_the_catalog_has_its_source(self, entry: CatalogEntry) -> None:
        assert entry.title
        assert entry.citation
        assert entry.licence
        assert all(len(sha) == 64 for sha in entry.files.values())
        assert set(entry.upstream) <= set(entry.files)
        assert re.fullmatch(r"[a-z]{2,3}(?:-[A-Za-z0-9]+)*", entry.language), "a code of BCP 47"
        if entry.in_tables:
            assert entry.source.startswith(("https://huggingface.co/datasets/", "https://github.com/"))
            assert not entry.files
        elif entry.folder:
            assert entry.source.startswith("https://raw.githubusercontent.com/")
            # An abbreviation will do: what is downloaded is compared with the hashes.
            commit = entry.source.rsplit("/", 1)[1]
            assert re.fullmatch("[0-9a-f]{8,40}", commit), "the source must be at a fixed commit"


def check_sampling_unit(entry: CatalogEntry, suite: Suite) -> None:
    """The unit is a tag of all rows, and of all suites that are loaded together."""
    assert suite.unit == ("" if entry.unit == "row" else entry.unit)
    for tag in suite.unit_tags:
        of_sentences, of_contrasts = suite.sentence_tag(tag), suite.contrast_tag(tag)
        for column in (of_sentences, of_contrasts):
            assert (column.codes >= 0).all(), f"rows without {tag}"
            assert all(column.values)
        # A tag with one value would leave nothing to resample; one that every sentence has for itself, no pairs.
        assert len({*of_sentences.values, *of_contrasts.values}) > 1 or entry.id == "syntaxgym/nn-nv-rpl"
        if suite.contrasts:
            assert len(of_sentences.values) < len(suite.sentences)


def test_suites_that_are_loaded_together_have_one_sampling_unit() -> None:
    groups: dict[str, set[str]] = {}
    for entry in load_catalog():
        groups.setdefault(entry.id.partition("/")[0], set()).add(entry.unit)
    assert {name: units for name, units in groups.items() if len(units) > 1} == {}


def test_ids_are_unique() -> None:
    ids = [entry.id for entry in load_catalog()]
    assert len(set(ids)) == len(ids)
