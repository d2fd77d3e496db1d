"""``acceptability ratings`` on the command line."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import program
from acceptability.suites import load_suite


def typed(folder: Path, *arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = program.typed(arguments, folder, {**os.environ, "COLUMNS": "200"})
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture
def likert(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    truth = generator.normal(4, 1.5, 12)
    rows = ["Worker,Sent,Score"]
    for person in range(6):
        answers = np.clip(np.round(truth + generator.normal(0, 1, 12)), 1, 7).astype(int)
        rows += [f"w{person},Sentence number {n}.,{answer}" for n, answer in enumerate(answers.tolist())]
    rows += [f"same,Sentence number {n}.,4" for n in range(12)]
    (tmp_path / "likert.csv").write_text("\n".join(rows), encoding="utf-8")
    scores = ["sentence_id,score"] + [f"{n + 1},{value}" for n, value in enumerate(truth.tolist())]
    (tmp_path / "scores.csv").write_text("\n".join(scores), encoding="utf-8")
    return tmp_path


COLUMNS = ("--kind", "likert", "--columns", "participant=Worker,sentence=Sent,response=Score", "--splits", "100")


def test_ratings_are_written_as_a_suite_and_evaluated(likert: Path) -> None:
    done = typed(likert, "ratings", "likert.csv", *COLUMNS, "--outliers", "sd(3)", "--out", "out.csv")
    assert "split-half, Spearman-Brown (splits=100, seed=0)" in done.stdout
    assert "12 ratings written to out.csv" in done.stderr
    assert "1 of 7 participants left out: same gave one and the same answer to everything" in done.stderr
    assert "z-scores within participants, over all their answers (ddof 1)" in done.stderr
    suite = load_suite(str(likert / "out.csv"))
    assert all(sentence.rating is not None and sentence.tags["rating_unit"] == "z" for sentence in suite.sentences)
    result = typed(likert, "evaluate", "out.csv", "--model", "uniform", "--measure", "Spearman", "--json").stdout
    assert json.loads(result)[0]["n"] == 12


def test_json_has_everything(likert: Path) -> None:
    done = typed(likert, "ratings", "likert.csv", *COLUMNS, "--scores", "scores.csv", "--json")
    result = json.loads(done.stdout)
    assert set(result) == {"ratings", "reliability", "agreement", "ceiling", "left_out", "notes", "signature"}
    assert set(result["ratings"][0]) == {"id", "text", "rating", "sd", "n", "low", "high", "rating_unit"}
    (row,) = result["ceiling"]
    assert row["share"] == pytest.approx(row["correlation"] / row["reliability"] ** 0.5, abs=1e-12)
    # Without ids and texts, both files are joined by the order of their sentences, which nothing shows to be the same.
    warning, *saved = done.stderr.splitlines()
    assert warning.startswith("rows of scores.csv were joined by their numbers: whether these are those")
    assert result["notes"][-1] == warning
    assert [line.split()[0] for line in saved] == ["run", "signature"]


def test_scores_are_joined_by_text_and_may_be_partial(likert: Path) -> None:
    def ceiling(name: str, *options: str, code: int = 0) -> tuple[dict[str, Any], str]:
        done = typed(likert, "ratings", "likert.csv", *COLUMNS, "--scores", name, *options, "--json", code=code)
        return (json.loads(done.stdout)["ceiling"][0] if code == 0 else {}), done.stderr

    values = [line.split(",")[1] for line in (likert / "scores.csv").read_text().splitlines()[1:]]
    rows = [f"Sentence number {n}.,{value}" for n, value in enumerate(values)][::-1]
    shuffled = [f"{n},{row}" for n, row in enumerate(rows, start=1)]
    (likert / "shuffled.csv").write_text("\n".join(["nr,words,value", *shuffled]), encoding="utf-8")
    columns = ("--score-columns", "id=nr,text=words,score=value")
    expected, _ = ceiling("scores.csv")
    row, stderr = ceiling("shuffled.csv", *columns)
    assert row["correlation"] == pytest.approx(expected["correlation"])
    assert "joined by text" in stderr
    (likert / "some.csv").write_text("\n".join(["text,score", *rows[:10]]), encoding="utf-8")
    assert "none for 2 of the suite: leave these out (--partial" in ceiling("some.csv", code=1)[1]
    row, stderr = ceiling("some.csv", "--partial")
    assert (row["n"], "2 of 12 sentences have no score" in stderr) == (10, True)
    refused = typed(likert, "ratings", "likert.csv", *COLUMNS, "--partial", code=1)
    assert "add --scores" in refused.stderr


def test_a_part_of_the_rated_sentences_is_compared(likert: Path) -> None:
    rows = [f"s{n},Sentence number {n}.,{'odd' if n % 2 else 'even'}" for n in range(12)]
    (likert / "suite.csv").write_text("\n".join(["id,text,parity", *rows]), encoding="utf-8")
    scores = [f"s{n},{n * n}" for n in range(0, 12, 2)]
    (likert / "even.csv").write_text("\n".join(["sentence_id,score", *scores]), encoding="utf-8")
    options = ("--suite", "suite.csv", "--scores", "even.csv", "--where", "parity=even", "--json")
    result = json.loads(typed(likert, "ratings", "likert.csv", *COLUMNS, *options).stdout)
    assert (len(result["ratings"]), result["ceiling"][0]["n"]) == (12, 6)
    assert any("6 of 12 sentences" in note for note in result["notes"])


def test_tables_are_printed(likert: Path) -> None:
    done = typed(likert, "ratings", "likert.csv", *COLUMNS, "--scores", "scores.csv")
    for part in ("Sentence number 11.", "Krippendorff's alpha (interval)", "ceiling"):
        assert part in done.stdout


def test_raters_against_labels(tmp_path: Path) -> None:
    (tmp_path / "wide.tsv").write_text("sentence\tgold\tr1\tr2\tr3\nA.\t1\t1\t1\t0\nB.\t0\t0\t2\t0\n", encoding="utf-8")
    arguments = ("ratings", "wide.tsv", "--kind", "yes-no", "--raters", "r*")
    failed = typed(tmp_path, *arguments, code=1)
    assert "wide.tsv, line 3: response is '2'" in failed.stderr
    assert failed.stdout == ""
    result = json.loads(typed(tmp_path, *arguments, "--other", "no", "--json").stdout)
    majority = next(row for row in result["agreement"] if row["who"] == "majority")
    assert (majority["accuracy"], majority["mcc"]) == (1.0, 1.0)
    assert "'2' in line 3" in result["notes"][0]


def test_forced_choices(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("participant,pair,good,bad,chosen\na,1,A b.,B a.,good\nb,1,A b.,B a.,bad\n")
    result = json.loads(typed(tmp_path, "ratings", "c.csv", "--kind", "choice", "--out", "o.csv", "--json").stdout)
    assert (result["pairs"][0]["share"], result["overall"][0]["pairs_tied"]) == (0.5, 1)
    assert len(load_suite(str(tmp_path / "o.csv")).contrasts) == 1
    refused = typed(tmp_path, "ratings", "c.csv", "--kind", "choice", "--outliers", "sd(3)", code=1)
    assert "--kind choice takes" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "stars"), "no kind of response is named 'stars'"),
        (("--kind", "likert", "--outliers", "iqr"), "no rule for outliers named 'iqr'"),
        (("--kind", "likert", "--out", "nowhere/out.csv"), "there is no folder nowhere"),
        (("--kind", "likert", "--columns", "response=Scroe"), "Did you mean 'Score'?"),
    ],
)
def test_wrong_options_are_one_line_on_stderr(likert: Path, arguments: tuple[str, ...], message: str) -> None:
    done = typed(likert, "ratings", "likert.csv", *arguments, code=1)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
