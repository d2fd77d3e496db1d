from __future__ import annotations

import gzip
import io
import json
import logging
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from acceptability import suites
from acceptability.errors import MissingExtra, SuiteError, UnknownName
from acceptability.suites import is_catalog_name, load_suite
from acceptability.text import containers, spreadsheets

from .sheets import write_ods, write_xlsx

FILES = {
    "set/agreement.csv": "good,bad,item\nA b.,B a.,1\nC d.,D c.,2\n",
    "set/order.jsonl": json.dumps({"good": "E f.", "bad": "F e.", "item": "1"}),
    "set/README.md": "about\n",
    "set/.hidden.csv": "nothing\n",
    "__MACOSX/set/agreement.csv": "nothing\n",
}


def write_folder(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return tmp_path / "mine"


def write_zip(tmp_path: Path) -> Path:
    with zipfile.ZipFile(tmp_path / "mine.zip", "w") as archive:
        for name, content in FILES.items():
            archive.writestr(name, content)
    return tmp_path / "mine.zip"


def write_tar(tmp_path: Path, mode: str = "gz") -> Path:
    path = tmp_path / f"mine.tar{'.gz' if mode else ''}"
    with tarfile.open(path, f"w:{mode}") as archive:
        for name, content in FILES.items():
            add_member(archive, name, content.encode())
    return path


def add_member(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    archive.addfile(member, io.BytesIO(content))


@pytest.mark.parametrize("write", [write_folder, write_zip, write_tar, lambda path: write_tar(path, "")])
def test_all_tables_in_it_are_one_suite(tmp_path: Path, write) -> None:
    suite = load_suite(str(write(tmp_path)))
    assert suite.ids == (
        "agreement/1/good", "agreement/1/bad", "agreement/2/good", "agreement/2/bad", "order/1/good", "order/1/bad",
    )  # fmt: skip
    assert [one.tags["file"] for one in suite.contrasts] == ["agreement", "agreement", "order"]
    # Items are numbered anew in each file, and are those of their file.
    assert [one.tags[suite.unit] for one in suite.contrasts] == ["agreement/1", "agreement/2", "order/1"]
    assert (suite.name, suite.unit, suite.derived_tags) == ("mine", "set", ("set",))
    # A zip archive made on a Mac has shadows of its files, which are hidden like those that begin with a dot.
    assert suite.notes == ("2 tables, told apart by the tag 'file'", "left out, since no table: set/README.md")


def test_rows_are_paired_within_their_file(tmp_path: Path) -> None:
    for name in ("x", "y"):
        (tmp_path / f"{name}.csv").write_text(f"item,text,label\n1,{name} good,1\n1,{name} bad,0\n")
    suite = load_suite(str(tmp_path), pair_by="item")
    assert [(one.better, one.worse) for one in suite.contrasts] == [("x/1", "x/2"), ("y/1", "y/2")]
    assert suite.notes[-1] == "2 contrasts by item"
    assert {one.tags[suite.unit] for one in suite.contrasts} == {"x/1", "y/1"}


def test_a_name_of_the_catalog_is_no_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "starter").mkdir()
    assert len(load_suite("starter")) == 838
    assert is_catalog_name("starter")
    assert not is_catalog_name("./starter")
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteError, match="empty has no tables; their names end in .csv"):
        load_suite("empty")
    with pytest.raises(UnknownName):
        load_suite("nothing")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    (folder / "set" / "odd.csv").write_text("x,y\n1,2\n")
    with pytest.raises(SuiteError, match=r"set/odd\.csv has no column of sentences"):
        load_suite(str(folder))
    (folder / "set" / "odd.csv").write_text("good,bad,file\nA,B,x\n")
    with pytest.raises(SuiteError, match="'odd' has a column 'file' of its own: rename it"):
        load_suite(str(folder))
    (folder / "set" / "odd.csv").rename(folder / "set" / "agreement.tsv")
    (folder / "set" / "agreement.tsv").write_text("good\tbad\nA\tB\n")
    with pytest.raises(SuiteError, match="has two tables named 'agreement'"):
        load_suite(str(folder))


@pytest.mark.parametrize("name", ["../evil.csv", "/etc/evil.csv", "a/../../evil.csv", "..\\evil.csv", "C:/evil.csv"])
def test_a_name_that_leads_out_of_an_archive_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("x", "")
        archive.filelist[0].filename = name
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        add_member(archive, name, b"text\nA b.\n")
    for path in (tmp_path / "a.zip", tmp_path / "a.tar"):
        with pytest.raises(SuiteError, match="leads out of the archive"):
            load_suite(str(path))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tar", "a.zip"]


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        member = tarfile.TarInfo("mine.csv")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    with pytest.raises(SuiteError, match=r"'mine\.csv' in it is a link"):
        load_suite(str(tmp_path / "a.tar"))


def test_what_expands_too_far_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(containers, "MAX_BYTES", 1000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"text\n" + b"a" * 2000))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", "text\n" + "a" * 600)
        archive.writestr("b.csv", "text\n" + "a" * 600)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        add_member(archive, "a.csv", b"text\n" + b"a" * 2000)
    for name in ("a.csv.gz", "a.zip", "a.tar.gz"):
        with pytest.raises(SuiteError, match="expands to more than 1,000 bytes"):
            load_suite(str(tmp_path / name))


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    for name in ("a.zip", "a.tar.gz", "a.tgz", "a.tar", "a.csv.gz"):
        (tmp_path / name).write_bytes(b"PK\x03\x04 nonsense")
        with pytest.raises(SuiteError, match="cannot be read"):
            load_suite(str(tmp_path / name))


def test_spreadsheets_that_would_fill_the_memory_are_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(spreadsheets, "_MAX_CELLS", 50)
    rows = [["text"], *([None] for _ in range(60)), ["A b."]]
    with pytest.raises(SuiteError, match="a sheet has 62 cells, .*; at most 50 are read"):
        load_suite(str(write_xlsx(tmp_path / "a.xlsx", {"A": rows})))
    tail = (
        '<table:table-row table:number-rows-repeated="9"><table:table-cell table:number-columns-repeated="9" '
        'office:value-type="string"/></table:table-row>'
    )
    with pytest.raises(SuiteError, match="a sheet has 83 cells"):
        load_suite(str(write_ods(tmp_path / "a.ods", {"A": [["text"], ["A b."]]}, tail)))
    monkeypatch.setattr(spreadsheets, "_MAX_BYTES", 100)
    with pytest.raises(SuiteError, match="expands to .* at most 100 are read"):
        load_suite(str(write_xlsx(tmp_path / "b.xlsx", {"A": [["text"], ["A b."]]})))


def test_spreadsheets_need_the_extra(tmp_path: Path, monkeypatch) -> None:
    path = write_xlsx(tmp_path / "a.xlsx", {"A": [["text"], ["A b."]]})
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(MissingExtra, match=r"acceptability\[data\]"):
        load_suite(str(path))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    folder = tmp_path / "large"
    folder.mkdir()
    for name in ("x", "y"):
        rows = "".join(f"This is sentence {name}{number:06}.;{number % 2};{number // 2}\n" for number in range(6000))
        (folder / f"{name}.csv").write_text(f"text;label;item\n{rows}")
    return folder


def test_a_folder_is_parsed_once_for_each_way_of_reading_it(large: Path, monkeypatch, caplog) -> None:
    plain, flipped = load_suite(str(large)), load_suite(str(large), labels={"1": 0, "0": 1})
    assert plain.hash != flipped.hash
    assert (plain.sentences[1].label, flipped.sentences[1].label) == (1, 0)
    paired = load_suite(str(large), pair_by="item")
    assert len(paired.contrasts) == 6000
    with monkeypatch.context() as patched, caplog.at_level(logging.INFO):
        patched.setattr(suites, "parse_files", None)
        for suite, options in ((plain, {}), (flipped, {"labels": {"1": 0, "0": 1}}), (paired, {"pair_by": "item"})):
            again = load_suite(str(large), **options)
            assert (again.hash, again.notes, again.unit) == (suite.hash, suite.notes, suite.unit)
        assert "separated by semicolons" in caplog.text
    path = large / "y.csv"
    path.write_text(path.read_text().replace("sentence y000000", "sentence z000000"))
    assert load_suite(str(large)).hash != plain.hash
    path.rename(large / "z.csv")
    assert load_suite(str(large)).sentences[-1].id == "z/6000"


def test_the_ending_of_an_archive_is_not_looked_for_within_its_name(tmp_path: Path) -> None:
    path = write_zip(tmp_path).rename(tmp_path / "my.targets.zip")
    assert load_suite(str(path)).name == "my.targets"


def test_tables_with_different_sampling_units_are_resampled_by_rows(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.csv").write_text("item,text,label\n1,A b.,1\n1,B a.,0\n")
    (folder / "b.csv").write_text("text,label\nC d.,1\nD c.,0\n")
    said = "the tables have different sampling units, or some have none, so that single rows are resampled"
    suite = load_suite(str(folder))
    assert suite.unit == ""
    assert said in suite.notes
    (folder / "b.csv").write_text("Item,text,label\n1,C d.,1\n1,D c.,0\n")
    assert said in load_suite(str(folder)).notes
    (folder / "b.csv").write_text("item,text,label\n1,C d.,1\n1,D c.,0\n")
    assert said not in load_suite(str(folder)).notes
