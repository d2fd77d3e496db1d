from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import SuiteError
from acceptability.suites import load_suite
from acceptability.suites.tables import read_table, write_jsonl
from acceptability.types import Sentence, Suite, make_contrast


def written(tmp_path: Path, name: str, text: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_labelled_and_rated_sentences(tmp_path: Path) -> None:
    path = written(
        tmp_path, "mine.csv", 'text,label,rating,source\n"Cats, too, sleep.",1,4.5,me\nCats sleeps.,0,,you\n'
    )
    suite = load_suite(str(path))
    first, second = suite.sentences
    assert (first.text, first.label, first.rating, dict(first.tags)) == ("Cats, too, sleep.", 1, 4.5, {"source": "me"})
    assert (second.label, second.rating, suite.name) == (0, None, "mine")


@pytest.mark.parametrize("header", ["good\tbad", "sentence_good\tsentence_bad"])
def test_pairs(tmp_path: Path, header: str) -> None:
    path = written(tmp_path, "pairs.tsv", f"{header}\tphenomenon\nA b.\tB a.\torder\n")
    suite = load_suite(str(path))
    assert [(sentence.text, sentence.label) for sentence in suite.sentences] == [("A b.", 1), ("B a.", 0)]
    assert dict(suite.contrasts[0].tags)["phenomenon"] == "order"


def test_pairs_may_be_rated(tmp_path: Path) -> None:
    path = written(tmp_path, "rated.csv", "good,bad,rating_good,rating_bad\nA b.,B a.,6.5,2\nC d.,D c.,,1\n")
    assert [sentence.rating for sentence in load_suite(str(path)).sentences] == [6.5, 2.0, None, 1.0]


def test_columns_are_named_by_the_user(tmp_path: Path) -> None:
    path = written(tmp_path, "odd.csv", "Sentence,OK,Nr\nA b.,1,x1\n")
    suite = load_suite(str(path), columns={"text": "Sentence", "label": "OK", "id": "Nr"})
    assert (suite.sentences[0].id, suite.sentences[0].label, suite.sentences[0].text) == ("x1", 1, "A b.")


def test_blimp_like_json_lines(tmp_path: Path) -> None:
    row = {"sentence_good": "A b.", "sentence_bad": "B a.", "UID": "x", "pairID": "7", "lexically_identical": True}
    suite = load_suite(str(written(tmp_path, "b.jsonl", json.dumps(row) + "\n")))
    assert suite.contrasts[0].better == "1/good"
    tags = suite.sentences[0].tags
    assert (tags["lexically_identical"], tags["UID"], tags["pairID"]) == ("true", "x", "7")


def test_paradigms_of_blimp_in_one_file_have_the_same_pair_numbers(tmp_path: Path) -> None:
    rows = [
        {"sentence_good": f"A {n}.", "sentence_bad": f"{n} a.", "UID": uid, "pairID": str(n)}
        for uid in "xy"
        for n in (0, 1)
    ]
    suite = load_suite(str(written(tmp_path, "all.jsonl", "\n".join(map(json.dumps, rows)))))
    assert len(suite.contrasts) == 4


def test_a_column_that_means_nothing_for_pairs_is_a_tag(tmp_path: Path) -> None:
    suite = load_suite(str(written(tmp_path, "a.csv", "id,good,bad,label,rating\np1,A b.,B a.,strong,3\n")))
    first = suite.sentences[0]
    assert (first.id, first.label, first.rating) == ("p1/good", 1, None)
    assert (first.tags["label"], first.tags["rating"]) == ("strong", "3")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "sentense\nx\n", "a.csv has no column of sentences; it has sentense"),
        ("a.csv", "good\nx\n", "no column 'bad'"),
        ("a.csv", "text,label\nA b.,maybe\n", "line 2: label is 'maybe'"),
        ("a.csv", "text,rating\nA b.,n/a\n", "line 2: rating is 'n/a'"),
        ("a.csv", "text,rating\nA b.,nan\n", "line 2: .*finite"),
        ("a.csv", "text,id\nA b.,1\nC d.,1\n", "line 3: the id '1' is already used in line 2"),
        ("a.csv", "text,id,better_than\nA b.,1,9\n", "line 2: '1' is better than '9'"),
        ("a.csv", "text\n  \n", "has no rows"),
        ("a.csv", "text,id\n  ,1\n", "line 2: sentence '1' is empty"),
        ("a.csv", "text,label\nA b.\n", "line 2: 1 columns; the header has 2"),
        ("a.csv", "text,text\nA,b\n", "two columns are named 'text'"),
        ("a.csv", 'text\n"A b.\n', "line 2"),
        ("a.csv", "text\n", "has no rows"),
        ("a.csv", "", "a.csv is empty"),
        ("a.csv", "right,wrong\nA b.,B a.\n", "or --columns good=NAME,bad=NAME"),
        ("a.xlsx", "PK", "cannot be read as a spreadsheet"),
        ("a.xls", "PK", "save it as .xlsx"),
        ("a.jsonl", '{"text": "A"}\n{"text"\n', "line 2: not a line of JSON"),
        ("a.jsonl", '["A"]\n', "object 1: expected a JSON object"),
        ("a.jsonl", '{"id": "1", "text": "A", "regions": {"t": [0]}}\n', "line 1: regions are"),
        ("a.jsonl", '{"id": "1", "text": "A", "tags": ["x"]}\n', "line 1: tags are"),
        ("a.jsonl", '{"id": "1", "text": "A", "better_than": ["2"]}\n', "no sentence of that id"),
        ("a.tsv", b"text\nA\xff.\n", "line 2: byte 6 is not UTF-8"),
        ("a.csv", "text,good,bad\nA,B,C\n", "Choose one"),
        ("a.csv", "text,rating\nA b.,1_0\n", "rating is '1_0'"),
        ("a.jsonl", '{"text": ["A"]}\n', "line 1: the text is"),
        ("a.jsonl", '{"text": "A \\ud800"}\n', "line 1: .*surrogate"),
        ("a.jsonl", '{"text": "A", "label": "maybe"}\n', "label is 'maybe'"),
        ("a.jsonl", '{"text": "A", "label": [1]}\n', r"label is \[1\]"),
        ("a.jsonl", '{"text": "A", "rating": 1' + "0" * 400 + "}\n", "line 1: rating is"),
        ("a.jsonl", '{"text": "A", "rating": 1' + "0" * 5000 + "}\n", "line 1: not a line of JSON"),
        ("a.jsonl", '{"text": "A", "regions": {"t": [0, 1e999]}}\n', "line 1: regions are"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        load_suite(str(written(tmp_path, name, text)))


def test_labels_in_json_may_be_numbers_or_truths(tmp_path: Path) -> None:
    rows = ['{"text": "A", "label": 1.0}', '{"text": "B", "label": false}', '{"text": "C", "label": "1"}']
    suite = load_suite(str(written(tmp_path, "a.jsonl", "\n".join(rows))))
    assert [sentence.label for sentence in suite.sentences] == [1, 0, 1]


def test_only_newlines_end_a_line(tmp_path: Path) -> None:
    suite = load_suite(str(written(tmp_path, "a.csv", "text\nA\u2028b.\nC\x0cd.\n")))
    assert [sentence.text for sentence in suite.sentences] == ["A\u2028b.", "C\x0cd."]


def test_named_pair_columns_win_over_a_text_column(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "text,good,bad\nnote,A b.,B a.\n")
    suite = load_suite(str(path), columns={"good": "good", "bad": "bad"})
    assert [sentence.text for sentence in suite.sentences] == ["A b.", "B a."]
    assert suite.sentences[0].tags["text"] == "note"
    assert len(load_suite(str(path), columns={"text": "text"}).sentences) == 1


def test_columns_are_for_tables_only() -> None:
    with pytest.raises(SuiteError, match="for tables only"):
        load_suite("starter", columns={"text": "good"})


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match="cannot read"):
        load_suite(str(tmp_path / "none.csv"))


def test_a_named_column_that_is_missing_gets_a_suggestion(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "Sentence\nx\n")
    with pytest.raises(SuiteError, match="Did you mean 'Sentence'"):
        load_suite(str(path), columns={"text": "Sentense"})
    with pytest.raises(SuiteError, match="no column has the meaning 'texts'"):
        load_suite(str(path), columns={"texts": "Sentence"})


def test_a_byte_order_mark_and_other_newlines_change_nothing(tmp_path: Path) -> None:
    plain = load_suite(str(written(tmp_path, "a.csv", "text,label\nA b.,1\nC d.,0\n")))
    other = load_suite(str(written(tmp_path, "b.csv", b"\xef\xbb\xbftext,label\r\nA b.,1\r\nC d.,0\r\n")))
    assert plain.hash == other.hash


TEXTS = st.text(min_size=1, max_size=30).filter(lambda text: text.strip() and "\x00" not in text)
TAGS = st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=5), max_size=2)


@given(st.lists(st.tuples(TEXTS, st.sampled_from([0, 1, None]), TAGS), min_size=2, max_size=5), st.floats(-5, 5))
def test_a_suite_written_as_json_lines_reads_back(tmp_path_factory, rows, rating: float) -> None:
    sentences = [
        Sentence(f"s/{index}", text, label, rating if index else None, {"all": (0, len(text))}, tags)
        for index, (text, label, tags) in enumerate(rows)
    ]
    suite = Suite("s", tuple(sentences), (make_contrast(sentences[0], sentences[1]),))
    path = tmp_path_factory.mktemp("json") / "s.jsonl"
    write_jsonl(suite, path)
    again = read_table(path, columns={})
    assert again == suite
    assert again.hash == suite.hash
