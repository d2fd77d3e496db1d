"""Data sets as their authors publish them, read as a user's own files, without conversion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from acceptability.store.run_tables import read_run_table
from acceptability.suites import load_suite
from acceptability.suites.table_files import read_rows

RELATIVE = ", die die Wächter mögen ,"


@pytest.fixture
def published(data: Path) -> Path:
    folder = data / "more"
    if not folder.is_dir():
        pytest.skip("these data sets are not here")
    return folder


@pytest.mark.parametrize(
    ("name", "sentences", "good", "bad", "first"),
    [
        ("hucola/cola_train.json", 7274, 5702, 1572, "Az Angliáról való könyv tetszik."),
        ("hucola/cola_dev.json", 910, 714, 196, "A vonalon felül kell aláírni."),
        ("hucola/cola_test.json", 910, 0, 0, "Sokan tudták, hogy Aranka férjhez ment."),
        ("jcola/train.tsv", 6919, 5769, 1150, "ジョンはビルに本を買われた。"),
        ("jcola/dev.tsv", 865, 726, 139, "ここは寒すぎている。"),
        ("jcola/test.tsv", 685, 502, 183, "太郎のゴミの捨て方について話した。"),
        ("jcola", 8469, 6997, 1472, "ここは寒すぎている。"),
    ],
)
def test_labelled_sentences(published: Path, name: str, sentences: int, good: int, bad: int, first: str) -> None:
    suite = load_suite(str(published / name))
    labels = np.asarray(suite.labels)
    assert (len(suite), int((labels == 1).sum()), int((labels == 0).sum())) == (sentences, good, bad)
    assert suite.texts[0] == first


def test_blimp_nl_has_a_sentence_a_row(published: Path) -> None:
    suite = load_suite(str(published / "blimp_nl"), pair_by="Paradigm/Item")
    assert (len(suite), len(suite.contrasts)) == (16_800, 8400)
    assert len({one.tags[suite.unit] for one in suite.contrasts}) == 8400
    first = suite.contrasts[0]
    assert suite[first.better].text == "Ik bekijk de foto van mezelf in de kamer."
    assert suite[first.worse].text == "Wij bekijken de foto van mezelf in de kamer."
    # Cells that a second program quoted again have commas, and are whole.
    quoted = [text for text in suite.texts if text.startswith("Ik leer een nieuwe vaardigheid")]
    assert quoted == ["Ik leer een nieuwe vaardigheid voor mezelf, gewoon uit nieuwsgierigheid."]


@pytest.mark.parametrize(
    ("name", "sentences", "items", "first"),
    [
        (
            "de_evalset/obj_rel_across_anim.txt.gz",
            22_400,
            11_200,
            "die Schriftsteller , die die Wächter mögen , schwimmen",
        ),
        ("en_evalset/simple_npi_inanim.txt.gz", 252, 126, "no movies have ever been seen"),
        ("fr_evalset/simple_agrmt.txt.gz", 560, 280, "les auteurs sont vieux"),
        ("he_evalset/simple_agrmt.txt.gz", 280, 140, "ה מלצר רוקד"),
        ("ru_evalset/simple_agrmt.txt.gz", 560, 280, "авторы говорят"),
    ],
)
def test_clams_has_a_true_line_before_the_false_ones(
    published: Path, name: str, sentences: int, items: int, first: str
) -> None:
    suite = load_suite(str(published / "clams" / name))
    assert (len(suite), len(suite.contrasts)) == (sentences, sentences - items)
    assert len(suite.sentence_tag("item").values) == items
    assert suite.texts[0] == first


def test_zhoblimp_is_an_archive_of_paradigms(published: Path) -> None:
    suite = load_suite(str(published / "zhoblimp" / "ZhoBLiMP.tar.gz"))
    assert (len(suite), len(suite.contrasts)) == (70_800, 35_400)
    assert len(suite.contrast_tag("file").values) == 118
    assert suite.contrast_tag("file").values == suite.contrast_tag("UID").values
    assert len(suite.contrast_tag(suite.unit).values) == 35_400


def test_natural_stories_is_a_table_of_words(published: Path) -> None:
    table = read_run_table(str(published / "naturalstories" / "processed_wordinfo.tsv"))
    assert (len(table["word"]), len(table["meanItemRT"])) == (10_256, 10_256)
    assert table["word"][0] == "'Admiral"
    header, rows = read_rows(published / "naturalstories" / "all_stories.tok")
    rows = list(rows)
    assert (header, len(rows)) == (["word", "zone", "item"], 10_256)
    header, rows = read_rows(published / "naturalstories" / "all_stories_gpt3.csv.gz")
    assert header[:3] == ["token", "logprob", "offset"]
    assert dict(next(iter(rows))[1])["token"] == "If"
