from __future__ import annotations

import csv
import random
from datetime import date
from pathlib import Path

import pytest

from acceptability.errors import MissingExtra, SuiteError
from acceptability.suites import load_suite

pyarrow = pytest.importorskip("pyarrow")
datasets = pytest.importorskip("datasets")

ROWS = [
    {
        "text": f"Sentence {number}, with “quotes” and ümläuts.",
        "label": number % 2,
        "rating": number / 4,
        "topic": "ab"[number % 2],
    }
    for number in range(50)
]


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    path = tmp_path / "plain.csv"
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, list(ROWS[0]))
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def test_parquet_is_the_same_suite_as_its_plain_twin(plain: Path, tmp_path: Path) -> None:
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist(ROWS), tmp_path / "rows.parquet")
    assert load_suite(str(tmp_path / "rows.parquet")).hash == load_suite(str(plain)).hash


def test_a_data_set_on_disk_is_the_same_suite_as_its_plain_twin(plain: Path, tmp_path: Path, caplog) -> None:
    renamed = [{"sentence": row["text"], **{key: row[key] for key in row if key != "text"}} for row in ROWS]
    datasets.Dataset.from_list(renamed).save_to_disk(tmp_path / "saved")
    with caplog.at_level("INFO"):
        suite = load_suite(f"hf:{tmp_path / 'saved'}")
    assert suite.hash == load_suite(str(plain)).hash
    assert "text is 'sentence'" in caplog.text


def test_splits_of_a_data_set_become_tags(tmp_path: Path) -> None:
    parts = {name: datasets.Dataset.from_list(ROWS[:3]) for name in ("train", "test")}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    suite = load_suite(f"hf:{tmp_path / 'saved'}")
    assert [sentence.tags["split"] for sentence in suite.sentences] == ["train"] * 3 + ["test"] * 3


def test_a_folder_of_files_is_read_by_the_library(plain: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "train.csv").write_bytes(plain.read_bytes())
    assert [sentence.text for sentence in load_suite(f"hf:{folder}").sentences] == [row["text"] for row in ROWS]


def test_a_folder_in_the_layout_of_the_hub_has_a_folder_for_each_language(tmp_path: Path, monkeypatch) -> None:
    from pyarrow import Table, parquet

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for language, good, bad in (("deu", "Katzen schlafen.", "Katzen schläft."), ("eng", "Cats sleep.", "Cats sleeps.")):
        folder = tmp_path / "multi" / language
        folder.mkdir(parents=True)
        parquet.write_table(Table.from_pylist([{"sen": good, "wrong_sen": bad, "verb": "x"}]), folder / "train.parquet")
    suite = load_suite(f"hf:{tmp_path / 'multi'}:deu")
    assert (suite.name, suite.texts) == ("multi_deu", ("Katzen schlafen.", "Katzen schläft."))
    assert "good is 'sen', bad is 'wrong_sen'" in suite.notes
    with pytest.raises(SuiteError, match="no labelled sentences with the tag 'verbs'; its tags: item, verb"):
        load_suite(f"hf:{tmp_path / 'multi'}:deu", pair_by="verbs")


def test_a_byte_order_mark_and_mixed_newlines(plain: Path, tmp_path: Path) -> None:
    rows = plain.read_bytes().replace(b"\r\n", b"\n").split(b"\n")
    mixed = b"\xef\xbb\xbf" + b"".join(row + (b"\r\n" if index % 2 else b"\n") for index, row in enumerate(rows) if row)
    (tmp_path / "mixed.csv").write_bytes(mixed)
    assert load_suite(str(tmp_path / "mixed.csv")).hash == load_suite(str(plain)).hash


@pytest.mark.slow
def test_a_large_file_is_read_whole(tmp_path: Path) -> None:
    generator = random.Random(0)
    rows = [(f"w{generator.random()} number {number}", number % 2) for number in range(200_000)]
    with (tmp_path / "large.csv").open("w", newline="") as out:
        csv.writer(out).writerows([("text", "label"), *rows])
    with (tmp_path / "large.tsv").open("w", newline="") as out:
        csv.writer(out, delimiter="\t").writerows([("text", "label"), *rows])
    suite = load_suite(str(tmp_path / "large.csv"))
    assert [(sentence.text, sentence.label) for sentence in suite.sentences] == rows
    assert load_suite(str(tmp_path / "large.tsv")).hash == suite.hash


def test_two_columns_without_a_header_are_pairs(tmp_path: Path, caplog) -> None:
    (tmp_path / "two.tsv").write_text("The cats sleep.\tThe cats sleeps.\nWho left?\tLeft who?\n")
    with caplog.at_level("INFO"):
        suite = load_suite(str(tmp_path / "two.tsv"))
    assert [sentence.text for sentence in suite.sentences][:2] == ["The cats sleep.", "The cats sleeps."]
    assert len(suite.contrasts) == 2
    assert "read as pairs" in caplog.text


def test_a_header_with_spaces_is_a_header(tmp_path: Path) -> None:
    path = tmp_path / "named.tsv"
    path.write_text("Good Sentence\tBad Sentence\nThe cats sleep.\tThe cats sleeps.\n")
    assert [sentence.text for sentence in load_suite(str(path)).sentences] == ["The cats sleep.", "The cats sleeps."]
    odd = tmp_path / "odd.tsv"
    odd.write_text("My fine ones\tMy poor ones\nThe cats sleep.\tThe cats sleeps.\n")
    suite = load_suite(str(odd), columns={"good": "My fine ones", "bad": "My poor ones"})
    assert len(suite.contrasts) == 1


def test_headerless_pairs_may_have_quotes_and_repeat(tmp_path: Path) -> None:
    path = tmp_path / "two.tsv"
    path.write_text('Same text here.\tSame text here.\n"Go," he said.\tHe said go.\n')
    assert [sentence.text for sentence in load_suite(str(path)).sentences][2] == '"Go," he said.'


def test_the_shapes_of_the_hub(tmp_path: Path) -> None:
    """An unlabelled test split is marked by -1, ids begin anew in every split, and cells have types of their own."""
    rows = [{"id": number, "sentence": f"A b {number}.", "label": number, "day": date(2026, 1, 2)} for number in (0, 1)]
    hidden = [{**row, "label": -1} for row in rows]
    parts = {"train": datasets.Dataset.from_list(rows), "test": datasets.Dataset.from_list(hidden)}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    suite = load_suite(f"hf:{tmp_path / 'saved'}")
    assert [(sentence.id, sentence.label) for sentence in suite.sentences] == [
        ("train/0", 0),
        ("train/1", 1),
        ("test/0", None),
        ("test/1", None),
    ]
    assert suite.sentences[0].tags["day"] == '"2026-01-02"'


def test_not_a_number_is_nothing(tmp_path: Path) -> None:
    from pyarrow import Table, parquet

    rows = [{"text": "A b.", "rating": float("nan")}, {"text": "C d.", "rating": 2.0}]
    parquet.write_table(Table.from_pylist(rows), tmp_path / "n.parquet")
    assert [sentence.rating for sentence in load_suite(str(tmp_path / "n.parquet")).sentences] == [None, 2.0]


@pytest.mark.parametrize("ending", ["txt", "jsonl", "csv"])
def test_newlines_of_every_kind_end_a_line(tmp_path: Path, ending: str) -> None:
    rows = {"txt": ["A b.", "C d.", "E f."], "jsonl": [f'{{"text": "{t}"}}' for t in ("A b.", "C d.", "E f.")]}
    rows["csv"] = ["text", "A b.", "C d.", "E f."]
    path = tmp_path / f"mixed.{ending}"
    ends = ["\r\n", "\n", "\r", "\n"]
    mixed = "".join(row + end for row, end in zip(rows[ending], ends, strict=False))
    path.write_bytes(b"\xef\xbb\xbf" + mixed.encode())
    suite = load_suite(str(path), marks="none" if ending == "txt" else None)
    assert [sentence.text for sentence in suite.sentences] == ["A b.", "C d.", "E f."]


def test_what_cannot_be_loaded(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(SuiteError, match="cannot be read as a Parquet file"):
        load_suite(str(tmp_path / "bad.parquet"))
    with pytest.raises(SuiteError, match="cannot be loaded"):
        load_suite(f"hf:{tmp_path / 'nothing'}")
    with pytest.raises(SuiteError, match="which data set"):
        load_suite("hf:")
    import sys

    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"acceptability\[data\]"):
        load_suite("hf:someone/something")
