"""Parsed suites on disk: the same suites as from their files, never from a damaged file, and none needed to read."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acceptability import suites
from acceptability.errors import SuiteError
from acceptability.suites import load_catalog, load_contents, load_suite, suite_cache, summarise_contents
from acceptability.suites.catalog import CatalogEntry, find_entries
from acceptability.suites.tables import read_table
from acceptability.types import SentenceColumns, Suite

from .test_columns import check_same, describe

# Larger suites take longer than all others together: --slow. Every reader but one has a smaller one.
LARGE = 20_000
SMALL = "niu_penn2020"
LONG_AGO = 1_500_000_000 * 10**9


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


@pytest.fixture(autouse=True)
def own_cache(own_home: Path) -> None:
    """Other tests share a folder of parsed suites; each of these begins with none."""
    (own_home / "parsed").unlink()


def forbid(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in names:
        monkeypatch.setattr(suites, name, lambda *_, name=name, **__: pytest.fail(f"{name} was called"))


def parse(entry: CatalogEntry) -> Suite:
    """The suite as its reader builds it."""
    return suites._parse_entry(entry)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(entry, id=entry.id, marks=[pytest.mark.slow] if entry.sentences > LARGE else [])
        for entry in load_catalog()
        # Tables without hashes are read anew each time.
        if not entry.in_tables
    ],
)
def test_every_suite_is_the_same_with_and_without_the_cache(
    entry: CatalogEntry, request, monkeypatch: pytest.MonkeyPatch
) -> None:
    if entry.folder:
        request.getfixturevalue("data")
    plain = describe(parse(entry))
    cold = load_suite(entry.id)
    assert describe(cold) == plain
    assert isinstance(cold.sentences, SentenceColumns) == bool(entry.folder)
    if entry.folder:
        # Neither read nor hashed again.
        forbid(monkeypatch, "read_contents", "verify_file")
    warm = load_suite(entry.id)
    # Looked at one by one, some before the whole suite is built.
    for position in range(0, len(warm.sentences), len(warm.sentences) // 50 + 1):
        assert repr(warm.sentences[position]) == repr(cold.sentences[position])
    assert describe(warm) == plain
    assert summarise_contents(warm) == load_contents(entry), (
        "suites/contents.json is out of date; `python -m bench.reading --write-contents` writes it again"
    )


def test_groups_and_parts_are_the_same_with_and_without_the_cache(data: Path, log, monkeypatch) -> None:
    def load(name: str) -> tuple[Suite, list[str]]:
        log.clear()
        return load_suite(name), [record.getMessage() for record in log.records]

    names = ("lau2017_smog", "syntaxgym", "cola/in_domain_dev/17")
    cold = {name: load(name) for name in names}
    assert any("suites together" in remark for remark in cold["lau2017_smog"][1])
    forbid(monkeypatch, "read_contents", "verify_file", "_merge_suites")
    for name in names:
        suite, remarks = load(name)
        check_same(suite, cold[name][0])
        # What the log says about a group is said again; what it said about its members, once.
        assert remarks == cold[name][1]
    assert len(load("cola/in_domain_dev/17")[0].sentences) == 1


@pytest.fixture
def own_data(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a small suite's only file, which tests may change."""
    (path,) = find_entries(SMALL)[0].files
    copied = tmp_path / "data" / SMALL / path
    copied.parent.mkdir(parents=True)
    copied.write_bytes((data / SMALL / path).read_bytes())
    os.utime(copied, ns=(LONG_AGO, LONG_AGO))
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path / "data"))
    return copied


def find_kept(home: Path) -> Path:
    (kept,) = home.glob("parsed/*/*.suite")
    return kept


DAMAGES = {
    "empty": lambda content: b"",
    "cut in the magic line": lambda content: content[:10],
    "cut in the header": lambda content: content[:100],
    "cut in the arrays": lambda content: content[:-100],
    "longer": lambda content: content + bytes(64),
    "another file": lambda content: b"PK" + content,
    "a bit of the header": lambda content: flip(content, 60),
    "the length of the header": lambda content: flip(content, 26),
    "a bit of the arrays": lambda content: flip(content, -3_000),
    "the last bit": lambda content: flip(content, -1),
}


def flip(content: bytes, position: int) -> bytes:
    changed = bytearray(content)
    changed[position] ^= 1
    return bytes(changed)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_built_again(own_data: Path, own_home: Path, log, damage: str) -> None:
    plain = load_suite(SMALL)
    kept = find_kept(own_home)
    whole = kept.read_bytes()
    # Written beside it, since the suite above is mapped from the file.
    kept.unlink()
    kept.write_bytes(DAMAGES[damage](whole))
    log.clear()
    check_same(load_suite(SMALL), plain)
    assert f"{kept} is damaged" in log.text
    assert kept.read_bytes() == whole
    log.clear()
    load_suite(SMALL)
    assert not log.records


def test_a_file_of_another_version_is_ignored(own_data: Path, own_home: Path, log, monkeypatch) -> None:
    plain = load_suite(SMALL)
    kept = find_kept(own_home)
    current = kept.read_bytes()
    monkeypatch.setattr(suite_cache, "_hash_code", lambda: "other readers")
    check_same(load_suite(SMALL), plain)
    assert kept.read_bytes() != current
    monkeypatch.setattr(suite_cache, "_MAGIC", b"acceptability suite 9\n")
    load_suite(SMALL)
    monkeypatch.undo()
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(own_data.parents[1]))
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(own_home))
    check_same(load_suite(SMALL), plain)
    assert kept.read_bytes() == current
    assert not log.records


def test_a_changed_file_is_found_by_its_hash(own_data: Path, monkeypatch) -> None:
    suite = load_suite(SMALL)
    content = own_data.read_bytes()
    # Touched, and replaced by a copy with the same times: hashed again, but not parsed.
    checked = []
    verify = suites.verify_file
    monkeypatch.setattr(suites, "verify_file", lambda *where: (checked.append(where), verify(*where)))
    forbid(monkeypatch, "read_contents")
    os.utime(own_data, ns=(LONG_AGO + 1, LONG_AGO + 1))
    check_same(load_suite(SMALL), suite)
    assert len(checked) == 1
    copied = own_data.with_name("copy")
    copied.write_bytes(content)
    os.utime(copied, ns=(LONG_AGO + 1, LONG_AGO + 1))
    copied.replace(own_data)
    check_same(load_suite(SMALL), suite)
    assert len(checked) == 2
    # Once hashed, it is remembered again.
    check_same(load_suite(SMALL), suite)
    assert len(checked) == 2
    # Another content of the same size.
    own_data.write_bytes(content.replace(b"a", b"b", 1))
    with pytest.raises(SuiteError, match="is not the published file"):
        load_suite(SMALL)
    own_data.unlink()
    with pytest.raises(SuiteError, match="cannot be downloaded|could not download"):
        load_suite(SMALL)


def test_a_file_changed_within_the_resolution_of_its_time_is_hashed_again(own_data: Path, monkeypatch) -> None:
    # As recent as the reading itself: a change right after it may leave the same time.
    os.utime(own_data)
    modified = own_data.stat().st_mtime_ns
    load_suite(SMALL)
    own_data.write_bytes(own_data.read_bytes().replace(b"a", b"b", 1))
    os.utime(own_data, ns=(modified, modified))
    with pytest.raises(SuiteError, match="is not the published file"):
        load_suite(SMALL)


@pytest.mark.parametrize("memory", ["", "[]", "{", '{"%s": 1}', '{"%s": ["x", 1]}'])
def test_a_damaged_memory_of_hashes_is_no_memory(own_data: Path, own_home: Path, memory: str) -> None:
    suite = load_suite(SMALL)
    (remembered,) = own_home.glob("parsed/*/*.files.json")
    whole = remembered.read_text(encoding="utf-8")
    remembered.write_text(memory.replace("%s", str(own_data)), encoding="utf-8")
    check_same(load_suite(SMALL), suite)
    assert remembered.read_text(encoding="utf-8")[:-30] == whole[:-30]


def test_without_a_place_to_write_suites_are_read_from_their_files(own_data: Path, own_home: Path, log) -> None:
    # A file where the folder would be; the tests may run as root, who may write anywhere.
    (own_home / "parsed").write_text("not a folder", encoding="utf-8")
    for _ in range(2):
        log.clear()
        check_same(load_suite(SMALL), parse(find_entries(SMALL)[0]))
        assert "cannot keep the parsed suite" in log.text


def test_a_full_disk_leaves_nothing_behind(own_data: Path, own_home: Path, log, monkeypatch) -> None:
    def fail(self: Path, target: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    check_same(load_suite(SMALL), parse(find_entries(SMALL)[0]))
    assert "No space left on device" in log.text
    assert [path for path in own_home.rglob("*") if path.is_file()] == []


def test_processes_that_read_at_the_same_time_get_whole_suites(own_data: Path, own_home: Path) -> None:
    code = f"from acceptability import load_suite\nfor _ in range(5): print(load_suite({SMALL!r}).hash)"
    programs = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    hashes = [line for program in programs for line in program.communicate()[0].split()]
    assert hashes == [parse(find_entries(SMALL)[0]).hash] * 15
    assert not list(own_home.rglob("*.part"))


# --- a user's tables ---


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    rows = (f"{number},This is sentence {number:06}.,{number % 2},{number // 7}" for number in range(8_000))
    path.write_text("\n".join(["id,words,label,item", *rows]), encoding="utf-8")
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return path


TEXT = {"text": "words"}


def test_a_table_is_parsed_once(table: Path, log, monkeypatch) -> None:
    first = load_suite(str(table), columns=TEXT)
    assert isinstance(first.sentences, SentenceColumns)
    remarks = [record.getMessage() for record in log.records]
    assert "text is 'words'" in remarks[0]
    plain = read_table(table, columns=TEXT)
    check_same(first, plain)
    log.clear()
    forbid(monkeypatch, "parse_files", "read_content")
    check_same(load_suite(str(table), columns=TEXT), plain)
    assert [record.getMessage() for record in log.records] == remarks
    assert load_suite(str(table), columns=TEXT, unit="row").unit == ""


def test_a_changed_table_is_parsed_again(table: Path) -> None:
    first = load_suite(str(table), columns=TEXT)
    content = table.read_text(encoding="utf-8")
    # The same size, in place.
    table.write_text(content.replace("sentence 000000", "sentence 999999"), encoding="utf-8")
    second = load_suite(str(table), columns=TEXT)
    assert second.sentences[0].text == "This is sentence 999999."
    assert second.hash != first.hash
    # What was opened before is what it was.
    assert first.sentences[0].text == "This is sentence 000000."
    table.write_text(content, encoding="utf-8")
    assert load_suite(str(table), columns=TEXT).hash == first.hash
    table.write_text(content + "\n1,x,1,1", encoding="utf-8")
    with pytest.raises(SuiteError, match="line 8002: the id '1' is already used"):
        load_suite(str(table), columns=TEXT)


def test_a_table_read_in_another_way_is_another_suite(table: Path) -> None:
    load_suite(str(table), columns=TEXT)
    assert "words" in load_suite(str(table), columns={"text": "item"}).tag_names
    copied = table.with_name("yours.csv")
    copied.write_bytes(table.read_bytes())
    assert load_suite(str(copied), columns=TEXT).name == "yours"
    assert load_suite(str(table), columns=TEXT).name == "mine"
    with pytest.raises(SuiteError, match="has no column of sentences"):
        load_suite(str(table))


def test_small_tables_and_those_in_the_home_are_not_kept(table: Path, own_home: Path) -> None:
    inside = own_home / "jobs" / "uploaded.csv"
    inside.parent.mkdir()
    inside.write_bytes(table.read_bytes())
    small = table.with_name("small.csv")
    small.write_text("text\nCats sleep.\n", encoding="utf-8")
    load_suite(str(inside), columns=TEXT)
    load_suite(str(small))
    assert not (own_home / "parsed").exists()


def test_the_oldest_tables_give_way(table: Path, own_home: Path, monkeypatch) -> None:
    monkeypatch.setattr(suite_cache, "_MAX_TABLE_BYTES", 1_000)
    load_suite(str(table), columns=TEXT)
    first = find_kept(own_home)
    load_suite(str(table), columns={"text": "item"})
    assert find_kept(own_home) != first
