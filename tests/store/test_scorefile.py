from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.errors import ScoreError
from acceptability.store.scorefile import read_scores
from acceptability.types import Sentence, Suite

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
