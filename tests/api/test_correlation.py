"""Correlations between models, and between models and human ratings."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import program
from acceptability import Scores, Sentence, Suite
from acceptability.api.comparison import correlate
from acceptability.errors import MeasureError
from acceptability.types import make_contrast

GENERATOR = np.random.default_rng(5)
SENTENCES = [Sentence(str(i), f"s{i}", rating=float(GENERATOR.normal())) for i in range(30)]
SUITE = Suite("made", tuple(SENTENCES), tuple(make_contrast(SENTENCES[i], SENTENCES[i + 1]) for i in range(0, 30, 2)))
ONE = Scores({sentence.id: sentence.rating + float(GENERATOR.normal()) for sentence in SENTENCES}, "one")
TWO = Scores({sentence.id: float(GENERATOR.normal()) for sentence in SENTENCES}, "two")
REFERENCE = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.mark.parametrize("kind", REFERENCE)
@pytest.mark.parametrize("of", ["scores", "gaps"])
def test_correlations_equal_those_of_scipy(of: str, kind: str) -> None:
    columns = {
        "people": np.array([sentence.rating for sentence in SENTENCES]),
        "one": np.array(list(ONE.values.values())),
        "two": np.array(list(TWO.values.values())),
    }
    if of == "gaps":
        columns = {name: values[::2] - values[1::2] for name, values in columns.items()}
    results = correlate(SUITE, [ONE, TWO], of=of, kind=kind)
    assert [(result.first, result.second) for result in results] == [
        ("people", "one"),
        ("people", "two"),
        ("one", "two"),
    ]
    for result in results:
        r, p = REFERENCE[kind](columns[result.first], columns[result.second])
        assert result.r == pytest.approx(r, abs=1e-9)
        assert result.n == len(columns["one"])
        assert result.holm + 1e-12 > result.benjamini_hochberg > result.p - 1e-12
        if kind != "kendall":  # whose p SciPy counts exactly for few rows
            assert result.p == pytest.approx(p, abs=1e-9)


def test_without_ratings_models_are_correlated_with_each_other() -> None:
    bare = Suite("bare", tuple(Sentence(sentence.id, sentence.text) for sentence in SENTENCES))
    (result,) = correlate(bare, [ONE, TWO])
    assert (result.first, result.second) == ("one", "two")
    with pytest.raises(MeasureError, match="no contrasts"):
        correlate(bare, [ONE, TWO], of="gaps")


def test_an_undefined_correlation_has_a_reason() -> None:
    flat = Scores({sentence.id: 1.0 for sentence in SENTENCES}, "flat")
    people, models, _ = correlate(SUITE, [flat, TWO])
    assert people.r is None
    assert people.reason
    assert models.p is not None


def test_repeated_names_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(MeasureError, match="called 'one'"):
        correlate(SUITE, [ONE, ONE])
    with pytest.raises(MeasureError, match="called 'people'"):
        correlate(SUITE, [Scores(ONE.values, "people")])
    with pytest.raises(MeasureError, match="not of 'deltas'"):
        correlate(SUITE, [ONE, TWO], of="deltas")
    with pytest.raises(MeasureError, match="kind"):
        correlate(SUITE, [ONE, TWO], kind="tau")


@pytest.fixture
def run_program(tmp_path: Path, own_home: Path):
    rows = [
        f"{sentence.id},{sentence.text} is a sentence number {'very ' * (i % 5)}{i}.,{sentence.rating}"
        for i, sentence in enumerate(SENTENCES)
    ]
    (tmp_path / "suite.csv").write_text("\n".join(["id,text,rating", *rows]))
    (tmp_path / "one.csv").write_text("\n".join(["sentence_id,score", *(f"{k},{v}" for k, v in ONE.values.items())]))

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "ACCEPTABILITY_HOME": str(own_home), "COLUMNS": "200"}
        done = program.typed([*arguments], tmp_path, env)
        assert done.returncode == code, done.stderr
        return done

    return run


def test_the_command_correlates_models_files_and_ratings(run_program) -> None:
    results = json.loads(run_program("correlate", "suite.csv", "--scores", "one.csv", "-m", "uniform", "--json").stdout)
    assert [(result["first"], result["second"]) for result in results] == [
        ("people", "uniform lp()"),
        ("people", "one"),
        ("uniform lp()", "one"),
    ]
    assert results[1]["r"] == pytest.approx(correlate(SUITE, [ONE])[0].r)
    assert "Pearson's r of scores" in run_program("correlate", "suite.csv", "--scores", "one.csv").stdout
    assert "nothing to correlate" in run_program("correlate", "suite.csv", code=1).stderr


def test_the_command_link_fits_the_constants(run_program, data: Path) -> None:
    command = ("link", "li_adger", "-m", "sphinx-trigram", "--unigrams", "wordfreq:en", "--by", "type")
    (result,) = json.loads(run_program(*command, "--json").stdout)
    assert result["morcela"] > result["slor"] > result["lp"], "people's judgements depend less on length and frequency"
    assert result["reduction"] == f"morcela(unigrams='wordfreq:en', beta={result['beta']}, gamma={result['gamma']})"
    assert "score other suites with" in run_program(*command).stderr


def test_the_error_about_a_missing_table_names_it(run_program) -> None:
    missing = run_program("link", "suite.csv", "-m", "uniform", "--unigrams", "counts.tsv", code=1).stderr
    assert "counts.tsv" in missing


def test_unrated_sentences_are_noted() -> None:
    some = Suite("some", (*(SENTENCES), Sentence("unrated", "This is unrated.")))
    (result,) = correlate(some, [Scores({**ONE.values, "unrated": 0.0}, "one", notes=("note of the scores",))])
    assert result.n == len(SENTENCES)
    assert result.notes == (f"1 of {len(SENTENCES) + 1} unrated left out", "note of the scores")
    assert result.row()["notes"] == "; ".join(result.notes)
    bare = Suite("bare", tuple(Sentence(sentence.id, sentence.text) for sentence in SENTENCES))
    with pytest.raises(MeasureError, match="suite 'bare' has no ratings, so a correlation needs the scores of two"):
        correlate(bare, [ONE])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--of", "gaps"), "has no contrasts, and so no gaps"),
        (("--kind", "tau"), "kind is 'tau'"),
        (("--score-columns", "id=a,score=b"), "--score-columns describes the columns of a file of scores"),
    ],
)
def test_invalid_options_are_refused_before_a_model_runs(run_program, options: tuple[str, ...], message: str) -> None:
    stderr = run_program("correlate", "suite.csv", "-m", "uniform", *options, code=1).stderr
    assert message in stderr
    assert "queries" not in stderr


def test_a_reduction_of_files_is_refused(run_program) -> None:
    stderr = run_program("correlate", "suite.csv", "--scores", "one.csv", "--reduce", "slor", code=1).stderr
    assert "--reduce is for models" in stderr
