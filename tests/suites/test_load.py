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
from acceptability.suites.catalog import (
    CatalogEntry,
    fetch_files,
    find_entries,
    load_catalog,
    read_contents,
    require_entries,
    verify_files,
)


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'blimp'"):
        load_suite("blmip")
    with pytest.raises(UnknownName, match="Did you mean 'starter'"):
        require_entries("startre")


def test_a_path_below_a_suite_is_a_part_of_it() -> None:
    whole, part = load_suite("starter"), load_suite("starter/npi_licensing")
    assert part.name == "starter/npi_licensing"
    assert {sentence.tags["phenomenon"] for sentence in part.sentences} == {"npi_licensing"}
    assert len(part.contrasts) == sum(contrast.tags["phenomenon"] == "npi_licensing" for contrast in whole.contrasts)
    with pytest.raises(UnknownName):
        load_suite("starter/nothing")


def test_a_path_below_a_suite_whose_ids_begin_with_its_name(data: Path) -> None:
    assert [sentence.id for sentence in load_suite("cola/train/17").sentences] == ["cola/train/17"]
    assert len(load_suite("npi/pairs/5").contrasts) == 1


def test_a_name_above_several_suites_means_all_of_them(data: Path, caplog) -> None:
    suite = load_suite("cola/targeted")
    assert len(suite.sentences) == sum(entry.sentences for entry in find_entries("cola/targeted")) == 2022
    assert {sentence.tags["suite"] for sentence in suite.sentences} == {
        entry.id for entry in find_entries("cola/targeted")
    }
    assert "cola/targeted means 5 suites together" in caplog.text


def test_the_starter_suite_is_large_and_clean() -> None:
    suite = load_suite("starter")
    phenomena = {contrast.tags["phenomenon"] for contrast in suite.contrasts}
    singles = [sentence for sentence in suite.sentences if sentence.id.endswith("/single")]
    assert len(suite.contrasts) >= 300
    assert len(phenomena) >= 10
    assert len(singles) >= 50
    assert {sentence.label for sentence in singles} == {0, 1}
    texts = [sentence.text for sentence in suite.sentences]
    assert len(set(texts)) == len(texts)
    assert all(text.isascii() and text == " ".join(text.split()) and text[-1] in ".?!" for text in texts)


def test_a_changed_byte_is_detected_and_the_file_named(data: Path, tmp_path: Path, monkeypatch) -> None:
    shutil.copytree(data / "li_adger" / "data", tmp_path / "li_adger" / "data")
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    (entry,) = find_entries("li_adger")
    verify_files(entry)
    path = tmp_path / "li_adger" / "data" / "li-adger_min_pairs.csv"
    path.chmod(0o644)
    content = bytearray(path.read_bytes())
    content[1000] ^= 1
    path.write_bytes(content)
    for check in (verify_files, read_contents):
        with pytest.raises(SuiteError, match="li-adger_min_pairs.csv is not the published file"):
            check(entry)


def test_the_error_about_a_missing_suite_says_how_to_get_it(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    (entry,) = find_entries("li_adger")
    with pytest.raises(SuiteError, match="suites fetch li_adger"):
        verify_files(entry)


def test_a_derived_file_cannot_be_downloaded(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    (entry,) = find_entries("cola/human")
    with pytest.raises(SuiteError, match="cannot be downloaded"):
        fetch_files(entry)


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
        thread = threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def _remote(address: str) -> CatalogEntry:
    def sha(text: str) -> str:
        return hashlib.sha256(text.encode()).hexdigest()

    files = {"a/plain.tsv": sha("plain\n"), "a/inner.tsv": sha("inner\n")}
    upstream = {"a/plain.tsv": "plain.tsv", "a/inner.tsv": "packed.zip!inner.tsv"}
    return replace(load_catalog()[0], id="remote", folder="remote", source=address, files=files, upstream=upstream)


def test_files_are_downloaded_checked_and_kept(server: str, own_home: Path, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    entry = _remote(server)
    assert read_contents(entry) == {"a/plain.tsv": b"plain\n", "a/inner.tsv": b"inner\n"}
    assert all(path.is_relative_to(own_home) for path in fetch_files(entry))


def test_a_local_copy_is_not_downloaded(data: Path) -> None:
    (entry,) = find_entries("li_adger")
    gone = replace(entry, source="http://127.0.0.1:9")
    assert all(path.is_relative_to(data) for path in fetch_files(gone))


def test_what_was_downloaded_once_is_kept(server: str, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    entry = _remote(server)
    fetch_files(entry)
    gone = replace(entry, source="http://127.0.0.1:9")
    assert read_contents(gone) == read_contents(entry)


def test_a_wrong_download_is_refused(server: str, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    entry = _remote(server)
    for path in entry.files:
        wrong = replace(entry, folder=f"wrong-{Path(path).stem}", files={path: "0" * 64})
        with pytest.raises(SuiteError, match=r"could not download|not the published file"):
            fetch_files(wrong)


def test_a_server_that_is_not_there_is_an_error_that_says_so(monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    with pytest.raises(SuiteError, match="could not download http://127.0.0.1:9/plain.tsv"):
        fetch_files(_remote("http://127.0.0.1:9"))


def test_a_damaged_gzip_file_is_named(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("ACCEPTABILITY_DATA", str(tmp_path))
    folder = tmp_path / "remote" / "a"
    folder.mkdir(parents=True)
    (folder / "plain.tsv.gz").write_bytes(gzip.compress(b"plain\n")[:-9])
    (folder / "inner.tsv.gz").write_bytes(gzip.compress(b"inner\n"))
    with pytest.raises(SuiteError, match="plain.tsv.gz cannot be read"):
        read_contents(_remote("http://127.0.0.1:9"))


@pytest.mark.network
@pytest.mark.parametrize("entry", [entry for entry in load_catalog() if entry.source], ids=lambda entry: entry.id)
def test_every_address_of_the_catalog_answers(entry: CatalogEntry, monkeypatch) -> None:
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    if not any(entry.upstream.get(path, path) for path in entry.files):
        pytest.skip("cannot be downloaded")
    assert fetch_files(entry)
