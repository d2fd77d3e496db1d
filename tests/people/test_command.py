"""``acceptability ratings`` as a person types it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

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
    assert all(each.rating is not None and each.tags["rating_unit"] == "z" for each in suite.sentences)
    found = typed(likert, "evaluate", "out.csv", "--model", "uniform", "--measure", "Spearman", "--json").stdout
    assert json.loads(found)[0]["n"] == 12


def test_json_has_everything(likert: Path) -> None:
    done = typed(likert, "ratings", "likert.csv", *COLUMNS, "--scores", "scores.csv", "--json")
    found = json.loads(done.stdout)
    assert set(found) == {"ratings", "reliability", "agreement", "ceiling", "left_out", "notes"}
    assert set(found["ratings"][0]) == {"id", "text", "rating", "sd", "n", "low", "high", "rating_unit"}
    (row,) = found["ceiling"]
    assert row["share"] == pytest.approx(row["correlation"] / row["reliability"] ** 0.5, abs=1e-12)
    assert done.stderr == ""


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
    found = json.loads(typed(tmp_path, *arguments, "--other", "no", "--json").stdout)
    majority = next(row for row in found["agreement"] if row["who"] == "majority")
    assert (majority["accuracy"], majority["mcc"]) == (1.0, 1.0)
    assert "'2' in line 3" in found["notes"][0]


def test_forced_choices(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("participant,pair,good,bad,chosen\na,1,A b.,B a.,good\nb,1,A b.,B a.,bad\n")
    found = json.loads(typed(tmp_path, "ratings", "c.csv", "--kind", "choice", "--out", "o.csv", "--json").stdout)
    assert (found["pairs"][0]["share"], found["overall"][0]["pairs_tied"]) == (0.5, 1)
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
