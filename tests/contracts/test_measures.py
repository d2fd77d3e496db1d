"""Contracts of every registered measure, plug-ins included."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from acceptability import registry
from acceptability.api.evaluation import measure as compute_results
from acceptability.measures import load_measure
from acceptability.measures.target_contrast import combine_scores
from acceptability.protocols import Measure, complete_measure
from acceptability.specs import parse_signature
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import Scores, Sentence, Suite, Units, make_contrast

GENERATOR = random.Random(3)
CLASSES = ("ungrammatical", "baseline", "ungrammatical", "distractor")
SENTENCES = [
    Sentence(
        f"s{i}",
        f"Sentence {i}.",
        label=i % 2,
        rating=GENERATOR.gauss(i % 2, 1),
        regions={"1": (0, 8)},
        tags={
            # Four sentences make a set, and a kind is made of whole sets.
            "kind": "xyz"[i // 4 % 3],
            "set": str(i // 4),
            "class": CLASSES[i % 4],
            "condition": "badc"[i % 4],
            "prediction": "(1;%a%) < (1;%b%)",
        },
    )
    for i in range(60)
]
SUITE = Suite("made", tuple(SENTENCES), tuple(make_contrast(SENTENCES[i + 1], SENTENCES[i]) for i in range(0, 60, 2)))
GIVEN = {sentence.id: GENERATOR.gauss(sentence.label, 1) for sentence in SENTENCES}
SCORES = Scores({**GIVEN, **{f"{name}#1": value for name, value in GIVEN.items()}}, "made")
OTHERS = {
    # A classifier, whose threshold is 0; log-probabilities; and several judges.
    "AbsolutePair": Scores(SCORES.values, "made", "log_odds()"),
    "Repulsion": Scores({key: value - 9 for key, value in SCORES.values.items()}, "made"),
    "Intensity": combine_scores(
        [SCORES, Scores({sentence.id: GENERATOR.gauss(0, 1) for sentence in SENTENCES}, "other")]
    ),
}
VARIANTS = [
    "ADC(delta=2, tie='literal')",
    "ADCArea(limit=2, tie='literal')",
    "AbsolutePair(threshold=0.5)",
    "Accuracy(threshold='class-midpoint')",
    "Accuracy(threshold='cv', folds=5, seed=1)",
    "DeltaCorrelation(kind='kendall')",
    "DeltaCorrelation(kind='spearman')",
    "MCC(threshold='cv')",
    "MCC(threshold='cv', seeds=3)",
    "MCC(threshold=0.0)",
    "MCC(threshold='pooled-mean')",
    "PBC(per='set')",
    "PBC(per='set', over='median', at_least=4, scale='exp')",
    "PBC(per='set', over='q1')",
    "PBC(scale='exp')",
    "PairCorrelation(kind='kendall')",
    "SetAccuracy(against='distractor')",
]


@pytest.mark.parametrize("name", [*registry.names("measure"), *VARIANTS])
class TestEveryMeasure:
    def test_its_repr_parses_back(self, name: str) -> None:
        assert load_measure(repr(load_measure(name))) == load_measure(name)

    def test_row_order_is_irrelevant(self, name: str) -> None:
        measure = load_measure(name)
        order = random.Random(1).sample(SENTENCES, k=60)
        reordered = Suite("made", tuple(order), SUITE.contrasts[::-1])
        given = OTHERS.get(name, SCORES)
        first, second = measure.units(SUITE, given), measure.units(reordered, given)
        assert measure.value(first) == pytest.approx(measure.value(second), abs=1e-12)
        shuffled = np.random.default_rng(0).permutation(len(first))
        assert measure.value(first.take(shuffled)) == pytest.approx(measure.value(first), abs=1e-12)

    def test_it_has_an_interval_groups_and_a_signature(self, name: str) -> None:
        given = OTHERS.get(name, SCORES)
        results = compute_results(SUITE, given, [name], by="kind", bootstrap=Bootstrap(200))
        overall = results[0]
        assert overall.low < overall.value < overall.high
        fields = parse_signature(overall.signature)
        assert load_measure(fields["measure"]) == load_measure(name).resolve([given], "")
        assert fields["n"] == str(overall.n)
        assert SUITE.hash in fields["suite"]

    def test_columns_are_as_long_as_the_rows(self, name: str) -> None:
        units = load_measure(name).units(SUITE, OTHERS.get(name, SCORES))
        assert {len(column) for column in units.columns.values()} == {len(units)} == {len(units.tags)}

    def test_mean_of_names_a_column_whose_mean_is_the_value(self, name: str) -> None:
        measure = load_measure(name)
        units = measure.units(SUITE, OTHERS.get(name, SCORES))
        means = [column for column, values in units.columns.items() if values.mean() == measure.value(units)]
        assert measure.mean_of in (means or [None])

    def test_a_macro_mean_is_that_of_the_groups(self, name: str) -> None:
        _, *groups, macro = compute_results(SUITE, OTHERS.get(name, SCORES), [name], by="kind", bootstrap=Bootstrap(0))
        assert [result.group for result in groups] == ["kind=x", "kind=y", "kind=z"]
        assert macro.value == pytest.approx(np.mean([result.value for result in groups]))

    def test_the_suite_and_the_scores_are_not_modified(self, name: str) -> None:
        given = OTHERS.get(name, SCORES)
        before, scores = SUITE.hash, dict(given.values)
        load_measure(name).units(SUITE, given)
        assert replace(SUITE).hash == before
        assert dict(given.values) == scores


class Margin:
    """The mean score difference of a contrast, with the required attributes of a measure only."""

    needs = "contrasts"

    def __repr__(self) -> str:
        return "Margin()"

    def units(self, suite: Suite, scores: Scores) -> Units:
        rows = load_measure("PairAccuracy()").units(suite, scores)
        return Units(rows.ids, {"gap": rows["gap"]}, rows.tags)

    def value(self, units: Units) -> float:
        return float(units["gap"].mean())


class InheritedMargin(Margin, Measure):
    """The same measure, which inherits the defaults of the optional attributes."""


@pytest.mark.parametrize("measure", [Margin(), InheritedMargin()], ids=["structural", "inherits"])
def test_a_measure_without_optional_attributes_gets_an_interval(measure: Measure) -> None:
    (result,) = compute_results(SUITE, SCORES, [measure], bootstrap=Bootstrap(200))
    gaps = load_measure("PairAccuracy()").units(SUITE, SCORES)["gap"]
    assert result.value == pytest.approx(float(gaps.mean()))
    assert result.low < result.value < result.high
    assert parse_signature(result.signature)["measure"] == "Margin()"


def test_optional_attributes_of_a_measure_have_defaults() -> None:
    assert complete_measure(InheritedMargin()).mean_of is None
    assert complete_measure(InheritedMargin()).chance is complete_measure(Margin()).chance is None
    for measure in map(complete_measure, (InheritedMargin(), Margin())):
        assert measure.resolve([SCORES], "kind") is measure
    assert [complete_measure(Margin()).mean_of, complete_measure(Margin()).needs_tags] == [None, ()]
    assert complete_measure(Margin()).gathered_by == InheritedMargin().gathered_by == ""
    measure = load_measure("PairAccuracy()")
    assert complete_measure(measure) is measure
