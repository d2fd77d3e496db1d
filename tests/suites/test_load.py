from __future__ import annotations

import gzip
import hashlib
import shutil
import threading
import zipfile
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from acceptability.errors import SuiteError, UnknownName
from acceptability.suites import load_suite
from acceptability.suites.catalog import Entry, catalog, entries, known_entries
from acceptability.suites.fetch import contents, fetch, verify


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'blimp'"):
        load_suite("blmip")
    with pytest.raises(UnknownName, match="Did you mean 'starter'"):
        known_entries("startre")


def test_a_path_below_a_suite_is_a_part_of_it() -> None:
    whole, part = load_suite("starter"), load_suite("starter/npi_licensing")
    assert part.name == "starter/npi_licensing"
    assert {each.tags["phenomenon"] for each in part.sentences} == {"npi_licensing"}
    assert len(part.contrasts) == sum(each.tags["phenomenon"] == "npi_licensing" for each in whole.contrasts)
    with pytest.raises(UnknownName):
        load_suite("starter/nothing")


def test_a_path_below_a_suite_whose_ids_begin_with_its_name(data: Path) -> None:
    assert [each.id for each in load_suite("cola/train/17").sentences] == ["cola/train/17"]
    assert len(load_suite("npi/pairs/5").contrasts) == 1


def test_a_name_above_several_suites_means_all_of_them(data: Path, caplog) -> None:
    suite = load_suite("cola/targeted")
    assert len(suite.sentences) == sum(entry.sentences for entry in entries("cola/targeted")) == 2022
    assert {each.tags["suite"] for each in suite.sentences} == {entry.id for entry in entries("cola/targeted")}
    assert "cola/targeted means 5 suites together" in caplog.text


def test_the_starter_suite_is_large_and_clean() -> None:
    suite = load_suite("starter")
    phenomena = {each.tags["phenomenon"] for each in suite.contrasts}
    singles = [each for each in suite.sentences if each.id.endswith("/single")]
    assert len(suite.contrasts) >= 300
    assert len(phenomena) >= 10
    assert len(singles) >= 50
    assert {each.label for each in singles} == {0, 1}
    texts = [each.text for each in suite.sentences]
    assert len(set(texts)) == len(texts)
    assert all(text.isascii() and text == " ".join(text.split()) and text[-1] in ".?!" for text in texts)


def test_one_changed_byte_is_found_and_the_file_named(data: Path, tmp_path: Path, monkeypatch) -> None:
    shutil.copytree(data / "li_adger" / "data", tmp_path / "li_adger" / "data")
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    (entry,) = entries("li_adger")
    verify(entry)
    path = tmp_path / "li_adger" / "data" / "li-adger_min_pairs.csv"
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    for check in (verify, contents):
        with pytest.raises(SuiteError, match="li-adger_min_pairs.csv is not the published file"):
            check(entry)


def test_a_suite_that_is_nowhere_says_how_to_get_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    (entry,) = entries("li_adger")
    with pytest.raises(SuiteError, match="suites fetch li_adger"):
        verify(entry)


def test_a_derived_file_cannot_be_downloaded(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    (entry,) = entries("cola/human")
    with pytest.raises(SuiteError, match="cannot be downloaded"):
        fetch(entry)


@pytest.fixture
def server(tmp_path: Path):
    """A web server with two files: one plain, one inside an archive."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "plain.tsv").write_text("plain\n")
    with zipfile.ZipFile(site / "packed.zip", "w") as archive:
        archive.writestr("folder/inner.tsv", "inner\n")
    handler = partial(type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}), directory=site)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def _remote(address: str) -> Entry:
    def sha(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    files = {"a/plain.tsv": sha("plain\n"), "a/inner.tsv": sha("inner\n")}
    upstream = {"a/plain.tsv": "plain.tsv", "a/inner.tsv": "packed.zip!inner.tsv"}
    return replace(catalog()[0], id="remote", folder="remote", source=address, files=files, upstream=upstream)


def test_files_are_downloaded_checked_and_kept(server: str, own_home: Path, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    entry = _remote(server)
    assert contents(entry) == {"a/plain.tsv": b"plain\n", "a/inner.tsv": b"inner\n"}
    assert all(path.is_relative_to(own_home) for path in fetch(entry))


def test_a_local_copy_is_not_downloaded(data: Path) -> None:
    (entry,) = entries("li_adger")
    gone = replace(entry, source="http://127.0.0.1:9")
    assert all(path.is_relative_to(data) for path in fetch(gone))


def test_what_was_downloaded_once_is_kept(server: str, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    entry = _remote(server)
    fetch(entry)
    gone = replace(entry, source="http://127.0.0.1:9")
    assert contents(gone) == contents(entry)


def test_a_wrong_download_is_refused(server: str, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    entry = _remote(server)
    for path in entry.files:
        wrong = replace(entry, folder=f"wrong-{Path(path).stem}", files={path: "0" * 64})
        with pytest.raises(SuiteError, match=r"could not download|not the published file"):
            fetch(wrong)


def test_a_server_that_is_not_there_is_an_error_that_says_so(monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    with pytest.raises(SuiteError, match="could not download http://127.0.0.1:9/plain.tsv"):
        fetch(_remote("http://127.0.0.1:9"))


def test_a_damaged_gzip_file_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    folder = tmp_path / "remote" / "a"
    folder.mkdir(parents=True)
    (folder / "plain.tsv.gz").write_bytes(gzip.compress(b"plain\n")[:-9])
    (folder / "inner.tsv.gz").write_bytes(gzip.compress(b"inner\n"))
    with pytest.raises(SuiteError, match="plain.tsv.gz cannot be read"):
        contents(_remote("http://127.0.0.1:9"))


@pytest.mark.network
@pytest.mark.parametrize("entry", [entry for entry in catalog() if entry.source], ids=lambda entry: entry.id)
def test_every_address_of_the_catalog_answers(entry: Entry, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    if not any(entry.upstream.get(path, path) for path in entry.files):
        pytest.skip("cannot be downloaded")
    assert fetch(entry)
