"""Files of answers: long and wide, named columns, and errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from acceptability.errors import SuiteError
from acceptability.people import read_responses
from acceptability.suites import load_suite
from acceptability.types import Sentence, Suite


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


LONG = "participant,sentence,response\np1,A b.,1\np1,B a.,7\np2,A b.,2\np2,B a.,\n"


def test_long_form_counts_what_is_missing(tmp_path: Path) -> None:
    result = read_responses(written(tmp_path, "a.csv", LONG), kind="likert")
    assert result.participants == ("p1", "p2")
    assert [(sentence.id, sentence.text) for sentence in result.sentences] == [("1", "A b."), ("2", "B a.")]
    np.testing.assert_array_equal(result.values, [[1, 7], [2, np.nan]])
    assert result.notes == ("1 of 4 answers are missing",)


def test_wide_form_with_patterns_and_labels(tmp_path: Path) -> None:
    path = written(tmp_path, "a.tsv", "sentence\tgold\tr1\tr2\tgenre\nA b.\t1\tyes\tno\tx\nB a.\t0\tNA\tNo\ty\n")
    result = read_responses(path, kind="yes-no", raters="r*")
    np.testing.assert_array_equal(result.values, [[1, np.nan], [0, 0]])
    assert [sentence.label for sentence in result.sentences] == [1, 0]
    assert [dict(sentence.tags) for sentence in result.sentences] == [{"genre": "x"}, {"genre": "y"}]
    np.testing.assert_array_equal(result.labels, [1, 0])


def test_json_lines_with_named_columns(tmp_path: Path) -> None:
    rows = [{"who": name, "what": text, "how": value} for name, text, value in [("x", "A.", 10), ("y", "A.", 2.5)]]
    path = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    result = read_responses(
        path, kind="magnitude", columns={"participant": "who", "sentence": "what", "response": "how"}
    )
    np.testing.assert_array_equal(result.values, [[10], [2.5]])


def test_a_column_that_differs_within_a_sentence_is_no_tag(tmp_path: Path) -> None:
    text = "participant,sentence,response,condition,rt\na,S.,1,x,10\nb,S.,2,x,20\n"
    result = read_responses(written(tmp_path, "a.csv", text), kind="likert")
    assert dict(result.sentences[0].tags) == {"condition": "x"}
    assert "no tags: rt" in result.notes[0]


@pytest.mark.parametrize("header", ["sentence", "sentence_id"])
def test_sentences_of_a_suite_by_id(tmp_path: Path, header: str) -> None:
    suite = Suite("s", (Sentence("one", "A b.", 1), Sentence("two", "B a.", 0)))
    path = written(tmp_path, "a.csv", f"participant,{header},response\np,two,1\np,one,5\n")
    result = read_responses(path, kind="likert", suite=suite)
    assert [(sentence.id, sentence.text, sentence.label) for sentence in result.sentences] == [
        ("two", "B a.", 0),
        ("one", "A b.", 1),
    ]


def test_ids_of_a_suite_with_the_texts_of_other_sentences_are_refused(tmp_path: Path) -> None:
    """Ids that number the rows would give each sentence the answers to another one."""
    suite = Suite("s", (Sentence("1", "Cats sleep."), Sentence("2", "Dogs bark.")))
    rows = ["p,1,Cats sleep.,3", "p,2,Dogs  bark.,4", "q,2,Dogs bark.,5", "q,1,Cats sleep.,6"]
    right = "\n".join(["participant,id,sentence,response", *rows])
    assert read_responses(written(tmp_path, "a.csv", right), kind="likert", suite=suite).values.tolist() == [
        [3, 4],
        [6, 5],
    ]
    for line, row in ((2, "p,1,Dogs bark.,3"), (5, "q,1,Dogs bark.,6")):
        wrong = "\n".join([row if number == line else given for number, given in enumerate(right.split("\n"), start=1)])
        with pytest.raises(SuiteError, match=f"line {line}: the text is 'Dogs bark.', but suite 's' has 'Cats sleep.'"):
            read_responses(written(tmp_path, "a.csv", wrong), kind="likert", suite=suite)
    by_text = "participant,sentence,response\np,Dogs bark.,3\n"
    found = read_responses(written(tmp_path, "a.csv", by_text), kind="likert", suite=suite)
    assert [sentence.id for sentence in found.sentences] == ["2"]


def test_sentences_of_a_suite_by_text(tmp_path: Path) -> None:
    suite = Suite("s", (Sentence("one", "A b."),))
    result = read_responses(written(tmp_path, "a.csv", "rater,text,answer\np,A b.,3\n"), kind="likert", suite=suite)
    assert result.sentences[0].id == "one"


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        (
            "likert",
            "participant,sentence,response\np,A.,often\n",
            "a.csv, line 2: response is 'often'; expected a number",
        ),
        ("likert", "participant,sentence,response\np,A.,nan\n", "line 2: response is 'nan'"),
        ("magnitude", "participant,sentence,response\np,A.,5\np,B.,0\n", "line 3: response is '0'; magnitude"),
        ("yes-no", "participant,sentence,response\np,A.,2\n", "line 2: response is '2'; expected 1 or 0"),
        ("likert", "participant,sentence,response\np,A.,1\np,A.,2\n", "line 3: 'p' answered 'A.' already in line 2"),
        ("likert", "participant,sentence,response\n,A.,1\n", "line 2: the participant has no name"),
        ("likert", "participant,sentence,response\np,A.,\n", "has no answers"),
        ("likert", "sentence,response\nA.,1\n", "no column of participants"),
        ("likert", "participant,id,response\np,1,1\n", "--suite NAME"),
        ("likert", "participant,sentence\np,A.\n", "no column of responses"),
        (
            "likert",
            "participant,id,sentence,response\np,1,A.,1\nq,1,B.,1\n",
            "line 3: sentence '1' has a different text",
        ),
        ("likert", "participant,sentence,response,label\np,A.,1,maybe\n", "label is 'maybe'"),
        (
            "likert",
            "participant,sentence,response,catch\np,A.,1,1\nq,A.,1,0\n",
            "line 3: sentence '1' has a different catch",
        ),
        ("stars", LONG, "no kind of response is named 'stars'"),
    ],
)
def test_bad_input_is_an_error_with_its_line(tmp_path: Path, kind: str, text: str, message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        read_responses(written(tmp_path, "a.csv", text), kind=kind)
    assert message in str(caught.value)


def test_missing_columns_are_errors(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", LONG)
    with pytest.raises(SuiteError, match="no column 'respons'; .*Did you mean 'response'"):
        read_responses(path, kind="likert", columns={"response": "respons"})
    with pytest.raises(SuiteError, match="no column has the meaning 'answer'"):
        read_responses(path, kind="likert", columns={"answer": "response"})
    with pytest.raises(SuiteError, match="has no column 'rater_"):
        read_responses(path, kind="likert", raters="rater_*")
    with pytest.raises(SuiteError, match="no sentence with the id or text 'A b.'"):
        read_responses(path, kind="likert", suite=Suite("s", (Sentence("one", "Other."),)))
    with pytest.raises(SuiteError, match="other is 'maybe'"):
        read_responses(path, kind="yes-no", other="maybe")


@pytest.mark.parametrize(("other", "expected"), [("no", 0.0), ("missing", np.nan)])
def test_an_answer_neither_yes_nor_no_follows_the_option(tmp_path: Path, other: str, expected: float) -> None:
    path = written(tmp_path, "a.csv", "sentence,r1,r2\nA.,1,0\nB.,2,1\n")
    result = read_responses(path, kind="yes-no", raters="r1,r2", other=other)
    np.testing.assert_array_equal(result.values, [[1, expected], [0, 1]])
    assert "'2' in line 3" in result.notes[0]


def test_the_published_judgements_of_cola_as_a_file_and_as_a_suite(data: Path) -> None:
    file = data / "cola" / "human_eval" / "human_judgements_200.tsv"
    wide = read_responses(file, kind="yes-no", raters="annotator_*", other="no", columns={"id": "order"})
    suite = read_responses("cola/human", kind="yes-no", raters="annotator_*", other="no")
    np.testing.assert_array_equal(wide.values, suite.values)
    assert wide.values.shape == (5, 200)
    assert [sentence.text for sentence in wide.sentences] == [
        sentence.text for sentence in load_suite("cola/human").sentences
    ]
    with pytest.raises(SuiteError, match=r"human_judgements_200.tsv, line 47: response is '2'"):
        read_responses(file, kind="yes-no", raters="annotator_*")
