"""Names that users typed in the version before: accepted for one release, and reported with the present name."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acceptability import Judgement, compare, evaluate, judge, load_model, measure, people, registry, score, stats
from acceptability.cli import replace_old_options
from acceptability.errors import SpecError, TrainError
from acceptability.papers.cola.restart_groups import read_trained_classifier
from acceptability.papers.npi.npi_training import PLAN_FILE, PlanFolder, PlannedModel, read_plan_folder
from acceptability.protocols import EncodedQuery, Model
from acceptability.specs import parse_signature
from acceptability.store.scores import ScoreStore
from acceptability.train import train
from acceptability.train.aggregate_markov_em import AggregateMarkovRecipe
from acceptability.train.checkpoint import CheckpointManager
from acceptability.train.classifiers.finetuning import FineTuningRecipe
from acceptability.train.recipe import make_recipe, read_options
from acceptability.types import Contrast, LabelScores, ModelOutput, Query, Sentence, Suite, Units

PAIR = Suite("pair", (Sentence("good", "Cats sleep."), Sentence("bad", "Cats sleeps.")), (Contrast("good", "bad"),))


RENAMED_OPTIONS = [
    (kind, former, present)
    for kind in registry.names("recipe")
    for former, present in getattr(registry.find("recipe", kind), "renamed_options", {}).items()
]


@pytest.fixture(autouse=True)
def notices(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    registry.report_former_name.cache_clear()
    caplog.set_level(logging.WARNING, "acceptability")
    return caplog


def test_a_former_model_kind_opens_the_same_model_and_says_its_name(notices: pytest.LogCaptureFixture) -> None:
    former, present = load_model("asking:uniform(method='which')"), load_model("prompted:uniform(method='which')")
    assert former.signature == present.signature
    assert former.signature.startswith("prompted:uniform")
    assert [record.getMessage() for record in notices.records] == [
        "the model 'asking' is now called 'prompted'; the old name will be refused from the next release"
    ]


def test_a_present_name_is_not_reported(notices: pytest.LogCaptureFixture) -> None:
    load_model("prompted:uniform(method='which')")
    assert replace_old_options(["ratings", "--min-responses", "3"]) == ["ratings", "--min-responses", "3"]
    assert notices.records == []


@pytest.mark.parametrize(
    ("former", "present"),
    [
        (["ratings", "x.csv", "--least-responses", "3"], ["ratings", "x.csv", "--min-responses", "3"]),
        (["ratings", "x.csv", "--least-catch=.8"], ["ratings", "x.csv", "--min-catch=.8"]),
        (["serve", "--most-megabytes", "5"], ["serve", "--max-megabytes", "5"]),
        (["serve", "--most-sentences=5"], ["serve", "--max-sentences=5"]),
    ],
)
def test_a_former_option_becomes_the_present_one(
    former: list[str], present: list[str], notices: pytest.LogCaptureFixture
) -> None:
    assert replace_old_options(former) == present
    (notice,) = notices.records
    assert "is now called" in notice.getMessage()


def test_options_of_other_commands_are_left_alone(notices: pytest.LogCaptureFixture) -> None:
    assert replace_old_options(["evaluate", "--most-sentences"]) == ["evaluate", "--most-sentences"]
    assert replace_old_options([]) == []
    assert notices.records == []


def test_a_signature_made_before_reads_as_one_made_now() -> None:
    (result,) = evaluate(PAIR, ["prompted:uniform(method='which')"], measure=["PairAccuracy(ties=0.5)"])
    former = result.signature.replace("model:prompted:", "model:asking:")
    assert former != result.signature
    assert parse_signature(former) == parse_signature(result.signature)


def test_outputs_that_were_stored_under_the_former_name_are_found(own_home: Path) -> None:
    model = load_model("prompted:uniform(method='yes_no')")
    scores = score(PAIR, model.signature)
    with sqlite3.connect(own_home / "scores.sqlite") as database:
        stored = [signature for (signature,) in database.execute("SELECT signature FROM model")]
    database.close()
    # The name under which the version before looked for them, and under which it stored its own.
    assert any(signature.startswith("asking:uniform") for signature in stored)
    with ScoreStore() as store:
        assert model.signature in store.count_answers()
    assert dict(score(PAIR, _Silent(model)).values) == dict(scores.values)


@dataclass(frozen=True)
class _Silent(Model):
    """A model that must not be run, since every output is stored."""

    model: Model

    @property
    def signature(self) -> str:
        return self.model.signature

    def encode(self, queries: Sequence[Query]) -> Sequence[EncodedQuery]:
        return self.model.encode(queries)

    def run(self, batch: Sequence[EncodedQuery]) -> Sequence[ModelOutput]:
        raise AssertionError("an output that was stored is computed again")


@pytest.mark.parametrize(("kind", "former", "present"), RENAMED_OPTIONS)
def test_a_former_option_of_a_recipe_is_the_present_one(
    kind: str, former: str, present: str, notices: pytest.LogCaptureFixture
) -> None:
    recipe = registry.find("recipe", kind)
    names = {option.name: option.default for option in fields(recipe)}
    assert former not in names
    value = names[present]
    assert recipe(**{former: value}) == recipe() == read_options(recipe, [f"{former}={value}"] if value != "" else [])
    assert make_recipe(kind, {former: value}) == recipe()
    assert [record.getMessage() for record in notices.records] == [
        f"the {kind} option {former!r} is now called {present!r}; the old name will be refused from the next release"
    ]


def test_a_former_and_a_present_name_of_an_option_exclude_each_other() -> None:
    with pytest.raises(SpecError, match="transformer: learning_rate is given twice, once by a former name"):
        FineTuningRecipe(rate=1e-4, learning_rate=1e-4)  # type: ignore[call-arg]
    with pytest.raises(SpecError, match="--set learning_rate is given twice"):
        read_options(registry.find("recipe", "transformer"), ["learning_rate=1e-4", "rate=1e-4"])


FORMER_FACTS = {"iterations": "passes", "distinct bigrams": "different pairs"}


def rewrite_as_before(recipe: Any, folder: Path) -> None:
    """Give the options and facts in a folder's ``recipe.json`` the names that the version before wrote."""
    former_options = {present: former for former, present in recipe.renamed_options.items()}
    metadata = json.loads((folder / "recipe.json").read_text())
    metadata["recipe"] = {former_options.get(name, name): value for name, value in metadata["recipe"].items()}
    metadata["facts"] = {FORMER_FACTS.get(name, name): value for name, value in metadata["facts"].items()}
    (folder / "recipe.json").write_text(json.dumps(metadata))


def test_a_model_that_was_trained_before_is_not_trained_again(
    tmp_path: Path, notices: pytest.LogCaptureFixture
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("the cat sleeps\nthe dog sleeps\na cat and a dog sleep\n")
    recipe = AggregateMarkovRecipe(classes=2, vocabulary=0, max_iterations=3)
    metadata = train(recipe, [text], tmp_path / "model")
    rewrite_as_before(recipe, tmp_path / "model")
    stored = (tmp_path / "model" / "recipe.json").read_bytes()
    assert b'"passes": 3' in stored
    assert train(recipe, [text], tmp_path / "model") == metadata
    assert (tmp_path / "model" / "recipe.json").read_bytes() == stored
    assert notices.records == [], "nobody typed the names in the file"
    with pytest.raises(TrainError, match="holds another model: its recipe differ"):
        train(AggregateMarkovRecipe(classes=2, vocabulary=0, max_iterations=4), [text], tmp_path / "model")


def test_a_checkpoint_that_was_saved_before_is_resumed(tmp_path: Path) -> None:
    recipe = AggregateMarkovRecipe()
    former = {"kind": recipe.kind, "recipe": {"passes": 200, "classes": 16}}
    CheckpointManager(tmp_path / "run", former).save(7, {})
    present = {"kind": recipe.kind, "recipe": {"max_iterations": 200, "classes": 16}}
    state = CheckpointManager(tmp_path / "run", present, recipe.renamed_options).latest()  # type: ignore[attr-defined]
    assert state is not None
    assert state.step == 7
    with pytest.raises(TrainError, match="unfinished run with another recipe"):
        CheckpointManager(tmp_path / "run", present).latest()


def test_a_classifier_that_was_trained_before_has_present_options_and_facts(tmp_path: Path) -> None:
    recipe = {"vectors": "", "rate": 0.01, "least": 2, "top": 5}
    facts = {"numbers of a word": 100, "share of running words known": 0.978}
    (tmp_path / "recipe.json").write_text(json.dumps({"kind": "pooling", "recipe": recipe, "facts": facts}))
    classifier = read_trained_classifier(tmp_path)
    assert classifier.options == {"vectors": "", "learning_rate": 0.01, "min_count": 2, "head_hidden": 5}
    assert classifier.input_description == "word vectors of 100 dimensions, token coverage 97.8%"


def test_a_plan_that_was_written_before_has_present_options(tmp_path: Path) -> None:
    model = PlannedModel("tiny", "transformer", {"batch": 8, "rate": 1e-4}, {"one": {"looks": 1}})
    (tmp_path / PLAN_FILE).write_text(json.dumps({"suite": "", "restarts": 1, "models": [asdict(model)]}))
    present = PlannedModel(
        "tiny", "transformer", {"batch_size": 8, "learning_rate": 1e-4}, {"one": {"evaluations_per_epoch": 1}}
    )
    assert read_plan_folder(tmp_path) == PlanFolder(tmp_path.resolve(), "", 1, (present,))


def test_former_attributes_of_queries_and_judgements_warn() -> None:
    query = Query("late.", context="The boys were")
    with pytest.warns(DeprecationWarning, match="Query.full is now called full_text"):
        assert query.full == "The boys were late."
    with pytest.warns(DeprecationWarning, match="Query.start is now called text_start"):
        assert query.start == len("The boys were ")
    output = LabelScores("late", (0.0, 1.0))
    with pytest.warns(DeprecationWarning, match="Judgement.said is now called output"):
        assert Judgement("late", -1.0, output).said is output


def test_the_former_name_of_resampled_columns_warns() -> None:
    units = Units(("a", "b"), {"correct": np.array([0.0, 1.0])}, ({}, {}))
    with pytest.warns(DeprecationWarning, match="Units.drawn is now called take_columns"):
        drawn = units.drawn(np.array([1, 1]))
    assert drawn.columns["correct"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("interval", "bootstrap_interval"),
        ("macro_interval", "bootstrap_macro_interval"),
        ("difference", "bootstrap_difference"),
        ("dependent", "williams_steiger_test"),
        ("critical", "critical_count"),
    ],
)
def test_a_former_function_of_statistics_is_the_present_one(former: str, present: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"acceptability.stats.{former} is now called {present}") as warned:
        assert getattr(stats, former) is getattr(stats, present)
    assert warned[0].filename == __file__, "the warning names the line that uses the former name"


def test_the_former_rules_for_ratings_are_the_present_ones() -> None:
    with pytest.warns(DeprecationWarning, match="acceptability.people.Rules is now called RatingRules"):
        rules = people.Rules(scale="z", least_responses=3, least_catch=0.5)
    assert rules == people.RatingRules(scale="z", min_responses=3, min_catch=0.5)


def test_former_arguments_of_the_python_interface_warn_and_work() -> None:
    present = [result.row() for result in evaluate(PAIR, "uniform", reduce="mean_lp", measure="PairAccuracy")]
    with pytest.warns(
        DeprecationWarning, match="the argument (measures|reductions) of evaluate is now called"
    ) as warned:
        former = evaluate(PAIR, ["uniform"], reductions=["mean_lp"], measures=["PairAccuracy"])  # type: ignore[arg-type]
    assert [result.row() for result in former] == present
    assert {warning.filename for warning in warned} == {__file__}
    scores = score(PAIR, "uniform")
    with pytest.warns(DeprecationWarning, match="the argument measures of measure is now called measure"):
        assert len(measure(PAIR, scores, measures=["PairAccuracy"])) == 1  # type: ignore[call-arg]
    with pytest.raises(SpecError, match="measure is given twice"):
        evaluate(PAIR, "uniform", measure="PairAccuracy", measures=["PairAccuracy"])  # type: ignore[arg-type]


def test_judge_and_compare_take_their_former_positions() -> None:
    texts = ["Cats sleep.", "Cats sleep well."]
    with pytest.warns(DeprecationWarning, match=r"now judge\(\*sentences, model=…, reduce=…\)") as warned:
        former = judge(texts, "uniform", "mean_lp")
    assert [one.row() for one in former] == [one.row() for one in judge(*texts, model="uniform", reduce="mean_lp")]
    assert former.model == "uniform"
    scores = [score(PAIR, "uniform"), score(PAIR, "trigram")]
    with pytest.warns(DeprecationWarning, match=r"now compare\(suite, \*models, measure=…\)") as compared:
        (difference,) = compare(PAIR, scores, ["PairAccuracy"], draws=0)
    (present,) = compare(PAIR, *scores, measure="PairAccuracy", draws=0)
    assert difference.row() == present.row()
    assert [warning.filename for warning in (*warned, *compared)] == [__file__] * 2
    with pytest.warns(DeprecationWarning, match="the argument measures of compare is now called measure"):
        compare(PAIR, scores, measures=["PairAccuracy"], draws=0)
