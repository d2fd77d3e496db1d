"""Commands as functions: train, study, run_study, ratings and link take what their commands take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import acceptability
from acceptability import link, load_suite, ratings, run_study, study
from acceptability.errors import MeasureError, SpecError, SuiteError
from acceptability.train import train as train_recipe
from acceptability.train.recipe import train_from_options
from acceptability.types import Sentence, Suite

TEXT = "the cat sleeps\nthe dog sleeps\na cat and a dog sleep\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_the_package_of_training_is_called_like_the_command(corpus: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"order": 2}
    metadata = acceptability.train("ngram", tmp_path / "one", corpus=corpus, dev=corpus, options=options)
    listed = train_from_options("ngram", tmp_path / "two", corpus=[str(corpus)], dev=[corpus], options=["order=2"])
    assert metadata["recipe"] == listed["recipe"]
    assert metadata["recipe"]["order"] == 2
    assert metadata.spec == f"ngram:{tmp_path / 'one'}"
    assert json.loads(json.dumps(metadata)) == json.loads((tmp_path / "one" / "recipe.json").read_text())
    lines = repr(metadata).splitlines()
    assert lines[0] == metadata.spec
    assert ["words", str(metadata["words"])] in [line.split() for line in lines]
    facts = metadata.to_frame().set_index("fact")["value"]
    assert facts["dev: perplexity"] == metadata["results"]["dev"]["perplexity"]
    assert metadata._repr_html_().startswith("<table")
    assert acceptability.score(["the cat sleeps"], f"ngram:{tmp_path / 'one'}")["1"] < 0
    # It is still the package, which has modules of its own.
    assert acceptability.train.train is train_recipe  # type: ignore[attr-defined]
    with pytest.raises(SpecError, match=r"expected \{'order': 3\} or \['order=3'\]"):
        acceptability.train("ngram", tmp_path / "three", corpus=corpus, options="order=2")
    with pytest.raises(SpecError, match="ngram learns from text"):
        acceptability.train("ngram", tmp_path / "three", data="cola/train")


def test_a_study_of_ones_own_gives_results(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('suites = ["starter"]\nmodels = ["uniform"]\nmeasures = ["PairAccuracy"]\nresamples = 0\n')
    results = run_study(file)
    assert (results[0].model, results.suites[0].name) == ("uniform", "starter")
    assert results.best().model == "uniform"


def test_the_cells_of_a_paper_show_themselves(data: Path) -> None:
    cells = study("adc", table="Table 1")
    assert len(cells.to_frame()) == len(cells)
    assert "table" in repr(cells).splitlines()[0]
    assert cells._repr_html_().startswith("<table")
    with pytest.raises(SpecError, match="given by its spec"):
        study("adc", 3)  # type: ignore[arg-type]


def test_ratings_are_tables(tmp_path: Path) -> None:
    file = tmp_path / "responses.csv"
    rows = [f"p{person},{text},{(person + place) % 5 + 1}" for person in range(6) for place, text in enumerate("abcd")]
    file.write_text("\n".join(["participant,sentence,response", *rows]), encoding="utf-8")
    rated = ratings(file, "likert", splits=40)
    assert next(iter(rated.tables)) == "ratings"
    assert len(rated["ratings"].to_frame()) == 4
    assert repr(rated).startswith("RatingTables(ratings (4 rows)")
    assert rated._repr_html_().startswith("<table")
    with pytest.raises(MeasureError, match="there is no table 'rating'; there are ratings"):
        rated["rating"]
    assert rated.to_frame().equals(rated["ratings"].to_frame())
    # A filtered frame, as people have it, with an index that has gaps.
    frame = pd.read_csv(file)
    doubled = pd.concat([frame, frame.assign(participant=frame.participant + "x", response=1)])
    of_frame = ratings(doubled[~doubled.participant.str.endswith("x")], "likert", splits=40)
    assert of_frame.tables == rated.tables
    other = ratings(frame.assign(response=6 - frame.response), "likert", splits=40)
    assert other.signature.split("|")[1] != of_frame.signature.split("|")[1]
    assert of_frame.signature.split("|")[1].startswith("data:frame@")
    with pytest.raises(SuiteError, match="the data frame, line 2: "):
        ratings(pd.DataFrame({"participant": ["a", "a"], "sentence": "x", "response": [1, "bad"]}), "likert")


def test_choices_in_a_data_frame_are_ratings_too() -> None:
    frame = pd.DataFrame({"participant": list("abab"), "pair": ["1", "1", "2", "2"], "chosen": "good"})
    assert ratings(frame, "choice").to_frame()["share"].tolist() == [1.0, 1.0]


def test_link_takes_one_model_or_an_object() -> None:
    starter = load_suite("starter").sentences[:40]
    rated = Suite("rated", tuple(Sentence(s.id, s.text, rating=float(len(s.text))) for s in starter))
    options: dict[str, Any] = {"folds": 2, "resamples": 0, "draws": 0}
    fits = link(rated, "trigram", "wordfreq:en", **options)
    (by_name,) = fits.values()
    assert fits["trigram"] is by_name
    assert repr(fits).splitlines()[0].split()[:3] == ["model", "beta", "gamma"]
    assert "signature" not in repr(fits)
    assert fits.to_frame()["signature"].tolist() == [by_name.signature]
    assert fits._repr_html_().startswith("<table")
    (by_object,) = link(rated, acceptability.load_model("trigram"), "wordfreq:en", **options).values()
    assert by_name.reduction == by_object.reduction
    assert by_name.signature == by_object.signature
    assert len(repr(by_name).splitlines()) == 1
    with pytest.warns(DeprecationWarning, match="the argument group of link is now called by"):
        link(rated, "trigram", "wordfreq:en", group="row", **options)  # type: ignore[call-arg]
