"""What holds for every registered measure, plug-ins included."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from acceptability import registry
from acceptability.measures import load_measure
from acceptability.measures.contrast import together
from acceptability.measuring import measure as measured
from acceptability.signature import parse
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import Scores, Sentence, Suite, contrast

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
SUITE = Suite("made", tuple(SENTENCES), tuple(contrast(SENTENCES[i + 1], SENTENCES[i]) for i in range(0, 60, 2)))
GIVEN = {each.id: GENERATOR.gauss(each.label, 1) for each in SENTENCES}
SCORES = Scores({**GIVEN, **{f"{name}#1": value for name, value in GIVEN.items()}}, "made")
OTHERS = {
    # Log-probabilities, and several judges.
    "Repulsion": Scores({key: value - 9 for key, value in SCORES.values.items()}, "made"),
    "Intensity": together([SCORES, Scores({each.id: GENERATOR.gauss(0, 1) for each in SENTENCES}, "other")]),
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
    def test_its_repr_reads_back(self, name: str) -> None:
        assert load_measure(repr(load_measure(name))) == load_measure(name)

    def test_row_order_is_irrelevant(self, name: str) -> None:
        measure = load_measure(name)
        order = random.Random(1).sample(SENTENCES, k=60)
        turned = Suite("made", tuple(order), SUITE.contrasts[::-1])
        given = OTHERS.get(name, SCORES)
        first, second = measure.units(SUITE, given), measure.units(turned, given)
        assert measure.value(first) == pytest.approx(measure.value(second), abs=1e-12)
        shuffled = np.random.default_rng(0).permutation(len(first))
        assert measure.value(first.take(shuffled)) == pytest.approx(measure.value(first), abs=1e-12)

    def test_it_has_an_interval_groups_and_a_signature(self, name: str) -> None:
        results = measured(SUITE, OTHERS.get(name, SCORES), [name], by="kind", bootstrap=Bootstrap(200))
        overall = results[0]
        assert overall.low < overall.value < overall.high
        fields = parse(overall.signature)
        assert load_measure(fields["measure"]) == load_measure(name)
        assert fields["n"] == str(overall.n)
        assert SUITE.hash in fields["suite"]

    def test_columns_are_as_long_as_the_rows(self, name: str) -> None:
        units = load_measure(name).units(SUITE, OTHERS.get(name, SCORES))
        assert {len(column) for column in units.columns.values()} == {len(units)} == {len(units.tags)}

    def test_one_that_is_the_mean_of_a_column_says_so(self, name: str) -> None:
        measure = load_measure(name)
        units = measure.units(SUITE, OTHERS.get(name, SCORES))
        means = [column for column, values in units.columns.items() if values.mean() == measure.value(units)]
        assert getattr(measure, "mean_of", None) in (means or [None])

    def test_a_macro_mean_is_that_of_the_groups(self, name: str) -> None:
        _, *groups, macro = measured(SUITE, OTHERS.get(name, SCORES), [name], by="kind", bootstrap=Bootstrap(0))
        assert [each.group for each in groups] == ["kind=x", "kind=y", "kind=z"]
        assert macro.value == pytest.approx(np.mean([each.value for each in groups]))

    def test_the_suite_and_the_scores_stay_as_they_were(self, name: str) -> None:
        given = OTHERS.get(name, SCORES)
        before, scores = SUITE.hash, dict(given.values)
        load_measure(name).units(SUITE, given)
        assert replace(SUITE).hash == before
        assert dict(given.values) == scores
