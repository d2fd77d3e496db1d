"""`annotate`, `complete`, and the entropies of `score`, as they are typed."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.errors import AcceptabilityError
from acceptability.models.ngram.trained import TrainedNGram
from acceptability.text.words import find_word_spans

TABLE = "word\tzone\titem\tRT\nThe\t1\t1\t310\ncats\t2\t1\t295\nsleep.\t3\t1\t340\n"


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.tok").write_text(TABLE, encoding="utf-8")
    (tmp_path / "mine.csv").write_text("text\nThe cats sleep.\nDogs bark.\n", encoding="utf-8")
    return tmp_path / "words.tok"


def typed(*arguments: str, **env: str) -> Any:
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "80", **env})
    assert done.exit_code == 0, f"{done.exception!r}\n{done.stderr}"
    return done


def refuse(message: str, *arguments: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, AcceptabilityError), done.stdout
    assert message in str(done.exception)


def test_annotate_writes_every_row_with_its_columns(table: Path) -> None:
    done = typed(
        *("annotate", "words.tok", "--model", "trigram", "--entropy", "--rank", "--top", "2", "--spillover", "1"),
        *("--out", "out.csv"),
    )
    assert "3 rows written to out.csv" in done.stderr
    with Path("out.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["RT"] for row in rows] == ["310", "295", "340"]
    assert list(rows[0]) == [
        *("word", "zone", "item", "RT", "surprisal_bits", "tokens", "unknown", "entropy_bits"),
        *("entropy_reduction_bits", "rank", "cumulative_probability", "top_1", "top_1_probability", "top_2"),
        *("top_2_probability", "surprisal_bits_previous1"),
    ]
    assert rows[1]["surprisal_bits_previous1"] == rows[0]["surprisal_bits"]
    printed = typed("annotate", "words.tok", "-m", "trigram").stdout
    assert printed.splitlines()[0].split("\t") == ["word", "zone", "item", "RT", "surprisal_bits", "tokens", "unknown"]
    (first, *_) = json.loads(typed("annotate", "words.tok", "-m", "trigram", "--json").stdout)
    assert float(rows[0]["surprisal_bits"]) == first["surprisal_bits"]


def test_what_annotate_cannot_do_is_one_line(table: Path) -> None:
    refuse("give a model or published scores", "annotate", "words.tok")
    refuse("has no column 'word'", "annotate", "mine.csv", "-m", "trigram")
    refuse(
        "a model of the kind 'ngram' has no option stride", "annotate", "words.tok", "-m", "trigram", "--stride", "8"
    )
    refuse("are options of a model", "annotate", "words.tok", "--scores", "x.csv", "--stride", "8")
    refuse("has a word a row", "score", "words.tok", "--words", "-m", "trigram")


def test_scores_of_words_get_entropies_without_the_model_the_second_time(table: Path, monkeypatch) -> None:
    options = ("score", "mine.csv", "--words", "-m", "trigram")
    first = json.loads(typed(*options, "--entropy", "--json").stdout)
    assert {"entropy_bits", "entropy_reduction_bits", "tokens"} <= first[0].keys()
    monkeypatch.setattr(TrainedNGram, "run", None)
    again = json.loads(typed(*options, "--entropy", "--rank", "--top", "3", "--json").stdout)
    assert [row["entropy_bits"] for row in again] == [row["entropy_bits"] for row in first]
    assert all(row["top_1_probability"] >= row["top_3_probability"] for row in again)
    # Every word has one row, with or without.
    assert len(again) == len(find_word_spans("The cats sleep. Dogs bark.", "spaces"))


def test_scores_of_sentences_have_no_entropies(table: Path) -> None:
    refuse("add --tokens, --words or --regions", "score", "mine.csv", "-m", "trigram", "--entropy")
    refuse("offers no distribution over the next token", "score", "mine.csv", "-m", "uniform", "--words", "--rank")


def test_complete_lists_words_in_eighty_columns(table: Path) -> None:
    done = typed("complete", "The keys to the", "-m", "trigram", "--top", "3")
    assert done.stdout.splitlines()[0] == "The keys to the …"
    assert done.stdout.splitlines()[1].split() == ["word", "probability", "surprisal_bits"]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "of the probability of a new word" in done.stderr
    content = json.loads(
        typed("complete", "The keys to the", "-m", "trigram", "--candidates", "house,car", "--json").stdout
    )
    assert sum(row["share"] for row in content["completions"]) == pytest.approx(1)
    assert content["masses"]["new word"] < 1
    typed("complete", "The keys to the", "-m", "trigram", "--tokens", "--out", "tokens.csv")
    assert len(Path("tokens.csv").read_text(encoding="utf-8").splitlines()) == 11
    refuse("--candidates has no words", "complete", "The keys", "-m", "trigram", "--candidates", ",")
