from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.api.comparison import compare, correlate, find_discordant_contrasts
from acceptability.api.evaluation import measure_file
from acceptability.errors import ScoreError, SuiteError
from acceptability.measures.pairs import PairAccuracy
from acceptability.store.scorefile import read_scores
from acceptability.types import Contrast, Sentence, Suite

SUITE = Suite("s", (Sentence("a", "Cats sleep.", regions={"verb": (5, 10)}), Sentence("b", "Cats sleeps.")))


def written(tmp_path: Path, text: str | bytes, name: str = "scores.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_one_model_and_several(tmp_path: Path) -> None:
    (scores,) = read_scores(written(tmp_path, "sentence_id,score\na,-1.5\nb,2\n"), SUITE)
    assert (scores["a"], scores["b"], scores.model) == (-1.5, 2.0, "scores")
    first, second = read_scores(written(tmp_path, "model,sentence_id,score\nm,a,1\nn,a,2\n"), SUITE)
    assert (first.model, first["a"], second.model, second["a"]) == ("m", 1.0, "n", 2.0)


def test_json_lines_and_regions(tmp_path: Path) -> None:
    path = written(tmp_path, '{"sentence_id": "a#verb", "score": 1}\n', "s.jsonl")
    assert read_scores(path, SUITE)[0]["a#verb"] == 1.0


def test_published_columns_and_pairs(tmp_path: Path) -> None:
    path = written(tmp_path, "good_id,bad_id,good_z,bad_z\na,b,1,2\na,b,1,2\n")
    columns = [{"id": "good_id", "score": "good_z"}, {"id": "bad_id", "score": "bad_z"}]
    (scores,) = read_scores(path, SUITE, columns)
    assert dict(scores.values) == {"a": 1.0, "b": 2.0}
    (renamed,) = read_scores(path := written(tmp_path, "sentence_id,slor\na,1\n"), SUITE, [{"score": "slor"}])
    assert renamed.model == "slor"
    contradicting = written(tmp_path, "good_id,bad_id,good_z,bad_z\na,b,1,2\na,b,1,3\n")
    with pytest.raises(ScoreError, match=r"line 3: sentence 'b' has a score already in line 2, and another one"):
        read_scores(contradicting, SUITE, columns)


def test_an_empty_score_is_missing_and_noted(tmp_path: Path) -> None:
    (scores,) = read_scores(written(tmp_path, "sentence_id,score\na,1\nb,\n"), SUITE)
    assert scores.notes == ("1 rows of scores.csv have no score",)
    with pytest.raises(ScoreError, match="no score of 'scores' for sentence 'b'"):
        scores["b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sentence_id,score\na,nan\n", "line 2: score is 'nan'"),
        ("sentence_id,score\na,inf\n", "line 2: score is 'inf'"),
        ("sentence_id,score\na,high\n", "line 2: score is 'high'"),
        ("sentence_id,score\na,1_0\n", "line 2: score is '1_0'"),
        ("sentence_id,score\nz,1\n", "line 2: suite 's' has no sentence with the id 'z'"),
        ("sentence_id,score\na#noun,1\n", "no sentence with the id 'a#noun'"),
        ("sentence_id,score\na,1\na,1\n", "line 3: sentence 'a' has a score already in line 2"),
        ("id,score\na,1\n", "no column 'sentence_id'"),
        ("sentence_id,scores\na,1\n", "Did you mean 'scores'"),
        ("sentence_id,score\n", "no scores"),
        (b"sentence_id,score\na\xff,1\n", "not UTF-8"),
    ],
)
def test_bad_files(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(ScoreError, match=message):
        read_scores(written(tmp_path, text), SUITE)


def test_the_signature_names_file_content_and_column(tmp_path: Path) -> None:
    path = written(tmp_path, "sentence_id,x,y\na,1,2\n")
    one, other = (read_scores(path, SUITE, [{"score": name}])[0].signature for name in "xy")
    assert one != other
    swapped = written(tmp_path, "sentence_id,other,score\na,b,1\nb,a,2\n")
    first, second = (read_scores(swapped, SUITE, [named])[0].signature for named in ({}, {"id": "other"}))
    assert first != second
    assert one.startswith("file:scores.csv@")


FOUR = Suite(
    "four",
    tuple(
        Sentence(name, text, tags={"topic": topic})
        for name, text, topic in (
            ("w", "Cats sleep.", "cats"),
            ("x", "Cats sleeps.", "cats"),
            ("y", "Dogs bark.", "dogs"),
            ("z", "Dogs barks.", "dogs"),
        )
    ),
    (Contrast("w", "x"), Contrast("y", "z")),
)
NUMBERED = Suite("numbered", tuple(Sentence(str(n), s.text) for n, s in enumerate(FOUR.sentences, start=1)))
TWICE = Suite("twice", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleep."), Sentence("c", "Dogs bark.")))
SHUFFLED = [("Dogs barks.", 4.0), ("Cats sleep.", 1.0), ("Dogs bark.", 3.0), ("Cats sleeps.", 2.0)]


def table(header: str, rows: list[tuple[object, ...]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("suite", [NUMBERED, FOUR])
def test_row_numbers_in_another_order_are_joined_by_text(tmp_path: Path, suite: Suite, first: int) -> None:
    rows = [(number, *row) for number, row in enumerate(SHUFFLED, start=first)]
    (scores,) = read_scores(written(tmp_path, table("sentence_id,text,score", rows)), suite)
    assert scores.of(sentence.id for sentence in suite.sentences).tolist() == [1, 2, 3, 4]
    assert scores.notes == ("rows of scores.csv were joined by text, since its ids only number the rows",)


def test_rows_without_ids_are_joined_by_text_whatever_its_column_and_spaces(tmp_path: Path) -> None:
    for header, columns in (("sentence,score", {}), ("item,score", {"text": "item"})):
        path = written(tmp_path, table(header, [(f" {text} ", score) for text, score in SHUFFLED]))
        (scores,) = read_scores(path, FOUR, [columns])
        assert dict(scores.values) == {"w": 1, "x": 2, "y": 3, "z": 4}
    path = written(tmp_path, table("model,text,score", [(m, *row) for m in "mn" for row in SHUFFLED]))
    assert [scores["z"] for scores in read_scores(path, FOUR)] == [4, 4]


def test_ids_whose_texts_contradict_the_suite_are_refused(tmp_path: Path) -> None:
    rows = [("w", "Cats sleep.", 1), ("x", "Dogs bark.", 2), ("y", "Cats sleeps.", 3)]
    message = (
        r"2 of 3 rows have another text than suite 'four' has under their id; the first is line 3, 'x': "
        r"'Dogs bark.' in the file, 'Cats sleeps.' in the suite"
    )
    with pytest.raises(ScoreError, match=message):
        read_scores(written(tmp_path, table("sentence_id,text,score", rows)), FOUR)
    path = written(tmp_path, table("sentence_id,words,score", rows))
    with pytest.raises(ScoreError, match=message):
        read_scores(path, FOUR, [{"text": "words"}])


def test_the_texts_of_regions_and_of_members_of_pairs_are_checked(tmp_path: Path) -> None:
    for text in ("sleep", "Cats sleep."):
        path = written(tmp_path, f"sentence_id,text,score\na#verb,{text},1\n")
        assert read_scores(path, SUITE)[0]["a#verb"] == 1
    with pytest.raises(ScoreError, match="1 of 1 rows have another text"):
        read_scores(written(tmp_path, "sentence_id,text,score\na#verb,bark,1\n"), SUITE)
    pairs = written(tmp_path, "good,good_text,bad,g,b,text\na,Cats sleep.,b,1,2,what is this\n")
    good, bad = {"id": "good", "score": "g"}, {"id": "bad", "score": "b"}
    assert dict(read_scores(pairs, SUITE, [good | {"text": "good_text"}, bad])[0].values) == {"a": 1, "b": 2}
    with pytest.raises(ScoreError, match="'b': 'Cats sleep.' in the file, 'Cats sleeps.' in the suite"):
        read_scores(pairs, SUITE, [good, bad | {"text": "good_text"}])


def test_an_ambiguous_text_is_refused_if_its_scores_differ(tmp_path: Path) -> None:
    same = table("text,score", [("Dogs bark.", 3), ("Cats sleep.", 1), ("Cats sleep.", "1.0")])
    assert dict(read_scores(written(tmp_path, same), TWICE)[0].values) == {"a": 1, "b": 1, "c": 3}
    differing = table("text,score", [("Dogs bark.", 3), ("Cats sleep.", 1), ("Cats sleep.", 2)])
    message = (
        r"line 4: 2 sentences of suite 'twice' have the text 'Cats sleep.' \(a, b\), and their scores differ: 1 in"
    )
    with pytest.raises(ScoreError, match=message):
        read_scores(written(tmp_path, differing), TWICE)
    by_id = table("sentence_id,text,score", [("b", "Cats sleep.", 1), ("a", "Cats sleep.", 2)])
    assert dict(read_scores(written(tmp_path, by_id), TWICE)[0].values) == {"b": 1, "a": 2}


def test_a_text_that_the_suite_lacks_is_refused(tmp_path: Path) -> None:
    rows = [(1, "Dogs bark.", 3), (2, "Birds sing.", 1)]
    with pytest.raises(ScoreError, match=r"1 of 2 rows have a text that no sentence .* line 3: 'Birds sing.'"):
        read_scores(written(tmp_path, table("sentence_id,text,score", rows)), FOUR)
    with pytest.raises(ScoreError, match=r"no sentence with the id 'mine-7'\. To join the rows by their text, remove"):
        read_scores(written(tmp_path, "sentence_id,text,score\nmine-7,Dogs bark.,1\n"), FOUR)


def test_row_numbers_without_texts_are_joined_by_position_only_if_there_are_as_many(tmp_path: Path) -> None:
    for first in (0, 1):
        path = written(tmp_path, table("sentence_id,score", [(n + first, float(n)) for n in (2, 0, 3, 1)]))
        (scores,) = read_scores(path, FOUR)
        assert dict(scores.values) == {"w": 0, "x": 1, "y": 2, "z": 3}
        assert scores.notes == (
            "rows of scores.csv were joined by position: its ids only number the rows, and whether their order is that "
            "of suite 'four' cannot be checked, since the file has no texts",
        )
    with pytest.raises(ScoreError, match="3 rows cannot be joined by position to 4 sentences"):
        read_scores(written(tmp_path, "sentence_id,score\n1,1\n2,2\n3,3\n"), FOUR, partial=True)


def test_numbers_that_are_ids_of_the_suite_are_taken_at_their_word_with_a_note(tmp_path: Path) -> None:
    """Without texts, a file whose rows are numbered in another order looks the same, for the whole suite or a part."""
    for count, partial in ((4, False), (3, True)):
        path = written(tmp_path, table("sentence_id,score", [(n, n) for n in range(1, count + 1)]))
        (scores,) = read_scores(path, NUMBERED, partial=partial)
        assert scores.values["3"] == 3
        assert scores.notes[0] == (
            "rows of scores.csv were joined by their numbers: whether these are those of the sentences of suite "
            f"'numbered' cannot be checked, since {count} of {count} rows have no text"
        )
    rows = [(n, sentence.text if n > 1 else "", n) for n, sentence in enumerate(NUMBERED.sentences, start=1)]
    (scores,) = read_scores(written(tmp_path, table("sentence_id,text,score", rows)), NUMBERED)
    assert "1 of 4 rows have no text" in scores.notes[0]
    (scores,) = read_scores(written(tmp_path, "sentence_id,score\nw,1\n"), FOUR)
    assert scores.notes == ()


@pytest.mark.parametrize(
    ("in_suite", "in_file"),
    [
        ("Le caf\u00e9 est cher.", "Le cafe\u0301 est cher."),
        ("Le caf\u00e9 est cher.", "  Le\u00a0caf\u00e9  est cher. "),
        ("Cats sleep.", "Cats\tsleep."),
        ("Cats sleep.", '"Cats\nsleep."'),
    ],
)
def test_texts_that_differ_in_spaces_or_composition_are_the_same(tmp_path: Path, in_suite: str, in_file: str) -> None:
    suite = Suite("s", (Sentence("a", in_suite), Sentence("b", "Dogs bark.")))
    for header, names in (("sentence_id,text,score", ("a,", "b,")), ("text,score", ("", ""))):
        content = f"{header}\n{names[1]}Dogs bark.,2\n{names[0]}{in_file},1\n"
        assert dict(read_scores(written(tmp_path, content), suite)[0].values) == {"a": 1, "b": 2}


def test_texts_that_differ_in_a_letter_are_refused(tmp_path: Path) -> None:
    for text in ("cats sleep.", "Cats sleep", "Cats sleep\u200b.", "*Cats sleep."):
        with pytest.raises(ScoreError, match="have another text"):
            read_scores(written(tmp_path, f"sentence_id,text,score\na,{text},1\nb,Cats sleeps.,2\n"), SUITE)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["s.csv", "s.tsv"])
def test_byte_order_marks_and_ends_of_lines_change_nothing(tmp_path: Path, mark: bytes, end: str, name: str) -> None:
    content = table("sentence_id,text,score", [(n, *row) for n, row in enumerate(SHUFFLED, start=1)])
    content = content.replace(",", "\t" if name == "s.tsv" else ",").replace("\n", end)
    (scores,) = read_scores(written(tmp_path, mark + content.encode(), name), FOUR)
    assert dict(scores.values) == {"w": 1, "x": 2, "y": 3, "z": 4}


def test_a_file_with_more_rows_than_the_suite_is_refused_however_it_is_joined(tmp_path: Path) -> None:
    rows = [*SHUFFLED, ("Birds sing.", 5.0)]
    numbers = [(n, *row) for n, row in enumerate(rows, start=1)]
    for content, message in (
        (table("sentence_id,text,score", numbers), "1 of 5 rows have a text that no sentence"),
        (table("text,score", rows), "1 of 5 rows have a text that no sentence"),
        (table("sentence_id,score", [(n, score) for n, _, score in numbers]), "5 rows cannot be joined by position"),
        ("sentence_id,score\nw,1\nx,1\ny,1\nz,1\nv,1\n", "no sentence with the id 'v'"),
    ):
        for partial in (False, True):
            with pytest.raises(ScoreError, match=message):
                read_scores(written(tmp_path, content), FOUR, partial=partial)


def test_a_part_of_the_suite_is_joined_by_text_with_row_numbers_in_another_order(tmp_path: Path) -> None:
    rows = [(n, *row) for n, row in enumerate(SHUFFLED[:3], start=1)]
    path = written(tmp_path, table("sentence_id,text,score", rows))
    (result,) = measure_file(FOUR, path, ["PairAccuracy"], partial=True)
    assert (result.value, result.n) == (0.0, 1)
    assert [note.partition(" ")[0] for note in result.notes[:2]] == ["rows", "partial:"]
    (result,) = measure_file(FOUR, path, ["PairAccuracy"], where={"topic": "dogs"})
    assert (result.value, result.n) == (0.0, 1)
    with pytest.raises(ScoreError, match="none for 1 of the suite"):
        measure_file(FOUR, path, ["PairAccuracy"])


def test_a_partial_file_is_an_error_that_counts_and_names_both_options(tmp_path: Path) -> None:
    path = written(tmp_path, "sentence_id,score\nw,1\nx,2\ny,3\n")
    with pytest.raises(ScoreError, match=r"none for 1 of the suite: .*--partial.*--where TAG=VALUE"):
        measure_file(FOUR, path, ["PairAccuracy"])
    (result,) = measure_file(FOUR, path, ["PairAccuracy"], partial=True)
    assert (result.value, result.n) == (0.0, 1)
    assert result.notes[:1] == (
        "partial: 1 of 4 sentences have no score of 'scores' in scores.csv; 1 sentences and 1 of 2 contrasts left out",
    )
    (whole,) = measure_file(FOUR, written(tmp_path, table("text,score", SHUFFLED)), ["PairAccuracy"], partial=True)
    assert (whole.n, "(partial)" in result.signature, "partial" in "".join(whole.notes)) == (2, True, False)


def test_a_part_of_the_suite_needs_only_its_own_scores(tmp_path: Path) -> None:
    path = written(tmp_path, "sentence_id,score\nw,2\nx,1\ny,3\n")
    (result,) = measure_file(FOUR, path, ["PairAccuracy"], where={"topic": "cats"})
    assert (result.value, result.n, result.suite) == (1.0, 1, "four[topic=cats]")
    assert result.notes[:1] == ("four[topic=cats]: 2 of 4 sentences and 1 of 2 contrasts of suite 'four'",)
    with pytest.raises(ScoreError, match="none for 1 of the suite"):
        measure_file(FOUR, path, ["PairAccuracy"], where={"topic": "dogs"})
    for where, message in (
        ({"topik": "cats"}, "has no tag 'topik'.*Did you mean 'topic'"),
        ({"topic": "cat"}, "nothing in suite 'four' has topic=cat; the values of topic are cats, dogs"),
    ):
        with pytest.raises(SuiteError, match=message):
            measure_file(FOUR, path, where=where)
    numbers = written(tmp_path, "sentence_id,score\n1,2\n2,1\n")
    (by_position,) = read_scores(numbers, FOUR, where={"topic": "dogs"})
    assert dict(by_position.values) == {"y": 2, "z": 1}


def test_partial_files_with_different_gaps_are_compared_on_the_same_rows(tmp_path: Path) -> None:
    first = read_scores(written(tmp_path, "sentence_id,score\nw,2\nx,1\ny,3\nz,1\n", "one.csv"), FOUR, partial=True)
    second = read_scores(written(tmp_path, "sentence_id,score\nw,1\nx,2\ny,3\n", "two.csv"), FOUR, partial=True)
    (comparison,) = compare(FOUR, [*first, *second], measure=["PairAccuracy"])
    assert (comparison.n, comparison.first_value, comparison.second_value) == (1, 1.0, 0.0)
    assert [note.split(": ")[:2] for note in comparison.notes if "two.csv" in note] == [["two", "partial"]]
    assert [pair.contrast for pair in find_discordant_contrasts(FOUR, PairAccuracy(), *first, *second)] == ["w > x"]
    (correlation,) = correlate(FOUR, [*first, *second])
    assert correlation.n == 3


def test_an_item_with_predictions_is_left_out_as_a_whole(tmp_path: Path) -> None:
    sentences = [
        Sentence(f"{item}/{name}", "Cats sleep.", regions={"1": (5, 11)}, tags={
            "item": item, "condition": name, "prediction": "(1;%a%) < (1;%b%)"})
        for item in "12" for name in "ab"
    ]  # fmt: skip
    path = written(tmp_path, "sentence_id,score\n1/a#1,-1\n1/b#1,-2\n2/a#1,-1\n")
    (result,) = measure_file(Suite("items", tuple(sentences)), path, ["Predictions"], partial=True)
    assert (result.n, result.value) == (1, 1.0)
    assert "1 of 4 sentences have no score" in result.notes[0]
    assert "2 sentences and 0 of 0 contrasts left out" in result.notes[0]
