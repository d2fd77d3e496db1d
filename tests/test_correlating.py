"""Every two among models and people."""

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
from acceptability.correlating import correlate_all
from acceptability.errors import MeasureError
from acceptability.types import contrast

GENERATOR = np.random.default_rng(5)
SENTENCES = [Sentence(str(i), f"s{i}", rating=float(GENERATOR.normal())) for i in range(30)]
SUITE = Suite("made", tuple(SENTENCES), tuple(contrast(SENTENCES[i], SENTENCES[i + 1]) for i in range(0, 30, 2)))
ONE = Scores({each.id: each.rating + float(GENERATOR.normal()) for each in SENTENCES}, "one")
TWO = Scores({each.id: float(GENERATOR.normal()) for each in SENTENCES}, "two")
REFERENCE = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}


@pytest.mark.parametrize("kind", REFERENCE)
@pytest.mark.parametrize("of", ["scores", "gaps"])
def test_every_two_are_correlated_as_scipy_does(of: str, kind: str) -> None:
    columns = {
        "people": np.array([each.rating for each in SENTENCES]),
        "one": np.array(list(ONE.values.values())),
        "two": np.array(list(TWO.values.values())),
    }
    if of == "gaps":
        columns = {name: values[::2] - values[1::2] for name, values in columns.items()}
    found = correlate_all(SUITE, [ONE, TWO], of=of, kind=kind)
    assert [(each.first, each.second) for each in found] == [("people", "one"), ("people", "two"), ("one", "two")]
    for each in found:
        r, p = REFERENCE[kind](columns[each.first], columns[each.second])
        assert each.r == pytest.approx(r, abs=1e-9)
        assert each.n == len(columns["one"])
        assert each.holm + 1e-12 > each.benjamini_hochberg > each.p - 1e-12
        if kind != "kendall":  # whose p SciPy counts exactly for few rows
            assert each.p == pytest.approx(p, abs=1e-9)


def test_without_ratings_models_stand_against_each_other() -> None:
    bare = Suite("bare", tuple(Sentence(each.id, each.text) for each in SENTENCES))
    (found,) = correlate_all(bare, [ONE, TWO])
    assert (found.first, found.second) == ("one", "two")
    with pytest.raises(MeasureError, match="no contrasts"):
        correlate_all(bare, [ONE, TWO], of="gaps")


def test_what_is_undefined_says_why() -> None:
    flat = Scores({each.id: 1.0 for each in SENTENCES}, "flat")
    people, models, _ = correlate_all(SUITE, [flat, TWO])
    assert people.r is None
    assert people.reason
    assert models.p is not None


def test_two_columns_of_one_name_and_unknown_kinds_are_refused() -> None:
    with pytest.raises(MeasureError, match="called 'one'"):
        correlate_all(SUITE, [ONE, ONE])
    with pytest.raises(MeasureError, match="called 'people'"):
        correlate_all(SUITE, [Scores(ONE.values, "people")])
    with pytest.raises(MeasureError, match="not of 'deltas'"):
        correlate_all(SUITE, [ONE, TWO], of="deltas")
    with pytest.raises(MeasureError, match="kind"):
        correlate_all(SUITE, [ONE, TWO], kind="tau")


@pytest.fixture
def typed(tmp_path: Path, own_home: Path):
    rows = [
        f"{each.id},{each.text} is a sentence number {'very ' * (i % 5)}{i}.,{each.rating}"
        for i, each in enumerate(SENTENCES)
    ]
    (tmp_path / "suite.csv").write_text("\n".join(["id,text,rating", *rows]))
    (tmp_path / "one.csv").write_text("\n".join(["sentence_id,score", *(f"{k},{v}" for k, v in ONE.values.items())]))

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "ACCEPTABILITY_HOME": str(own_home), "COLUMNS": "200"}
        done = program.typed([*arguments], tmp_path, env)
        assert done.returncode == code, done.stderr
        return done

    return run


def test_models_files_and_people_are_correlated_by_command(typed) -> None:
    found = json.loads(typed("correlate", "suite.csv", "--scores", "one.csv", "-m", "uniform", "--json").stdout)
    assert [(each["first"], each["second"]) for each in found] == [
        ("people", "uniform lp()"),
        ("people", "one"),
        ("uniform lp()", "one"),
    ]
    assert found[1]["r"] == pytest.approx(correlate_all(SUITE, [ONE])[0].r)
    assert "pearson of scores" in typed("correlate", "suite.csv", "--scores", "one.csv").stdout
    assert "whose scores?" in typed("correlate", "suite.csv", code=1).stderr


def test_constants_are_fitted_by_command(typed, data: Path) -> None:
    asked = ("link", "li_adger", "-m", "sphinx-trigram", "--unigrams", "wordfreq:en", "--by", "type")
    (found,) = json.loads(typed(*asked, "--json").stdout)
    assert found["morcela"] > found["slor"] > found["lp"], "people's judgements depend less on length and frequency"
    assert found["reduction"] == f"morcela(unigrams='wordfreq:en', beta={found['beta']}, gamma={found['gamma']})"
    assert "score other suites with" in typed(*asked).stderr


def test_what_cannot_be_fitted_says_why(typed) -> None:
    missing = typed("link", "suite.csv", "-m", "uniform", "--unigrams", "counts.tsv", code=1).stderr
    assert "counts.tsv" in missing


def test_what_nobody_rated_is_told() -> None:
    some = Suite("some", (*(SENTENCES), Sentence("unrated", "Nobody rated this.")))
    (found,) = correlate_all(some, [Scores({**ONE.values, "unrated": 0.0}, "one", notes=("said of the scores",))])
    assert found.n == len(SENTENCES)
    assert found.notes == (f"1 of {len(SENTENCES) + 1} that nobody rated left out", "said of the scores")
    assert found.row()["notes"] == "; ".join(found.notes)
    bare = Suite("bare", tuple(Sentence(each.id, each.text) for each in SENTENCES))
    with pytest.raises(MeasureError, match="nobody rated suite 'bare', so a correlation needs the scores of two"):
        correlate_all(bare, [ONE])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--of", "gaps"), "has no contrasts, and so no gaps"),
        (("--kind", "tau"), "kind is 'tau'"),
        (("--score-columns", "id=a,score=b"), "--score-columns tells how a file of scores is to be read"),
    ],
)
def test_bad_questions_are_refused_before_a_model_is_asked(typed, options: tuple[str, ...], message: str) -> None:
    said = typed("correlate", "suite.csv", "-m", "uniform", *options, code=1).stderr
    assert message in said
    assert "queries" not in said


def test_a_reduction_of_files_is_refused(typed) -> None:
    said = typed("correlate", "suite.csv", "--scores", "one.csv", "--reduce", "slor", code=1).stderr
    assert "--reduce is for models" in said
