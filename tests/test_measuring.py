from __future__ import annotations

import pytest

from acceptability import PairAccuracy, Scores, Sentence, Suite, compare, evaluate, load_suite, measure, score
from acceptability.errors import MeasureError, SpellingError, SuiteError, UnknownName
from acceptability.measuring import evaluate_all
from acceptability.models import uniform
from acceptability.signature import parse
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import contrast


def test_groups_macro_and_micro() -> None:
    suite = load_suite("starter")
    results = measure(suite, score(suite, "uniform"), ["PairAccuracy(ties=0.5)"], by="phenomenon")
    overall, *groups, macro = results
    assert overall.group is None
    assert macro.group == "macro(phenomenon)"
    assert {each.group for each in groups} == {f"phenomenon={each.tags['phenomenon']}" for each in suite.contrasts}
    assert overall.value == pytest.approx(sum(each.value * each.n for each in groups) / overall.n)
    assert macro.value == pytest.approx(sum(each.value for each in groups) / len(groups))
    assert macro.low <= macro.value <= macro.high


def test_an_undefined_value_is_null_with_a_reason() -> None:
    sentences = [Sentence(str(i), f"s {i}", label=int(i > 2), tags={"g": "ab"[i > 1]}) for i in range(5)]
    suite = Suite("s", tuple(sentences))
    scores = Scores({str(i): float(i) for i in range(5)}, "m")
    overall, a, b, macro = measure(suite, scores, ["PBC"], by="g")
    assert overall.value is not None
    assert (a.value, a.reason) == (None, "all 2 sentences have the label 0")
    assert b.value is not None
    assert (macro.value, macro.reason) == (None, "undefined for g=a")
    assert a.row()["value"] is None


def test_rows_without_the_tag_are_in_no_group_and_a_note_says_so() -> None:
    tagged = [Sentence(str(i), f"s {i}", tags={"g": "a"} if i < 4 else {}) for i in range(6)]
    suite = Suite("s", tuple(tagged), tuple(contrast(tagged[i], tagged[i + 1]) for i in (0, 2, 4)))
    scores = Scores({"0": 2.0, "1": 1.0, "2": 0.0, "3": 1.0, "4": 2.0, "5": 1.0}, "m")
    overall, group, macro = measure(suite, scores, ["PairAccuracy"], by="g")
    assert (overall.n, group.group, group.n, macro.n) == (3, "g=a", 2, 2)
    assert macro.value == group.value == 0.5
    assert macro.notes == ("1 rows without the tag 'g' are in no group",)


def test_what_cannot_be_measured_is_said_before_anything_is_scored(monkeypatch) -> None:
    monkeypatch.setattr("acceptability.measuring.scored", lambda *_, **__: pytest.fail("a model was asked"))
    with pytest.raises(MeasureError, match="nothing for ADC"):
        evaluate("starter", ["uniform"], measures=["ADC"])


@pytest.mark.parametrize("name", ["measures", "reductions"])
def test_one_text_where_several_are_meant(name: str) -> None:
    with pytest.raises(SpellingError, match=f"{name} is the text 'lp'; expected a list"):
        evaluate("starter", ["uniform"], **{name: "lp"})


def test_too_few_rows_to_draw_give_no_interval_and_a_note() -> None:
    sentences = [Sentence(str(i), f"s {i}", tags={"g": "ab"[i > 1]}) for i in range(6)]
    suite = Suite("s", tuple(sentences), tuple(contrast(sentences[i], sentences[i + 1]) for i in (0, 2, 4)))
    scores = Scores({str(i): float(-i) for i in range(6)}, "m")
    overall, a, b, macro = measure(suite, scores, ["PairAccuracy"], by="g")
    assert (a.n, a.low, a.high) == (1, None, None)
    assert "no interval" in a.notes[0]
    assert b.low is not None
    assert (macro.value, macro.low) == (1.0, None)
    assert "no interval" in macro.notes[0]
    clustered = measure(suite, scores, ["PairAccuracy"], bootstrap=Bootstrap(by="g"))
    assert clustered[0].low is not None
    assert overall.low is not None


def test_every_name_is_looked_up_before_anything_is_scored(monkeypatch) -> None:
    monkeypatch.setattr("acceptability.measuring.scored", lambda *_, **__: pytest.fail("a model was asked"))
    with pytest.raises(UnknownName):
        evaluate("starter", ["uniform", "uniforn"])
    with pytest.raises(SuiteError, match="Did you mean 'item'"):
        evaluate("starter", ["uniform"], bootstrap=Bootstrap(by="itm"))
    sentences = (Sentence("a", "x", tags={"mark": "g"}), Sentence("b", "y", tags={"mark": "*", "type": "t"}))
    suite = Suite("s", sentences, (contrast(*sentences),))
    with pytest.raises(SuiteError, match="the contrasts of suite 's' have no tag 'type'"):
        evaluate(suite, ["uniform"], measures=["PairAccuracy"], by="type")


def test_a_wrong_tag_gets_a_suggestion() -> None:
    with pytest.raises(SuiteError, match="Did you mean 'phenomenon'"):
        evaluate("starter", ["uniform"], by="phenomenom")


def test_results_come_in_the_order_asked() -> None:
    asked = ["PBC()", "PairAccuracy(ties=0.5)", "PairAccuracy(ties=0.0)"]
    results = evaluate("starter", ["uniform"], measures=asked, reductions=["mean_lp", "lp"])
    assert [(each.reduction, each.measure) for each in results] == [
        (reduction, name) for reduction in ("mean_lp()", "lp()") for name in asked
    ]


def test_a_signature_says_what_can_change_the_number_and_nothing_else() -> None:
    (one,) = evaluate("starter", ["uniform"], measures=[PairAccuracy()], bootstrap=Bootstrap(50, seed=3))
    fields = parse(one.signature)
    assert fields["measure"] == "PairAccuracy(ties=0.0)"
    assert fields["suite"] == load_suite("starter").signature
    assert fields["model"] == "uniform(vocabulary=50000).lp()"
    assert fields["ci"] == "percentile(0.95,resamples=50,by=row,seed=3)"
    assert set(fields) == {"measure", "suite", "model", "n", "ci", "acceptability"}


def test_the_signature_says_whether_ratings_were_standardised() -> None:
    sentences = [Sentence(str(i), f"s {i}", rating=float(i * i)) for i in range(4)]
    suite = Suite("s", tuple(sentences), (contrast(sentences[3], sentences[0]),))
    (result,) = measure(suite, Scores({str(i): float(i) for i in range(4)}, "m"), ["ADC"])
    assert parse(result.signature)["ratings"] == "standardised(ddof=0)"


def test_a_model_is_opened_once_for_several_suites(monkeypatch) -> None:
    opened = []
    original = uniform.Uniform.encode

    def watched(self, queries):
        # A mark of its own for each object: ids may come again once an object is gone.
        opened.append(vars(self).setdefault("mark", object()))
        return original(self, queries)

    monkeypatch.setattr(uniform.Uniform, "encode", watched)
    suites = [load_suite(f"starter/{name}") for name in ("word_order", "filler_gap")]
    results = evaluate_all(suites, ["uniform", "uniform(vocabulary=9)"], measures=["PairAccuracy"])
    assert [(each.suite, each.model) for each in results] == [
        (suite.name, model) for suite in suites for model in ("uniform", "uniform(vocabulary=9)")
    ]
    assert len(opened) == 4
    assert opened[0] is opened[1]
    assert opened[2] is opened[3]


def test_a_comparison_is_paired() -> None:
    suite = load_suite("starter")
    short, long = score(suite, "uniform"), score(suite, "uniform", "mean_lp")
    (found,) = compare(suite, [short, long], ["PairAccuracy(ties=0.5)"])
    assert found.difference == pytest.approx(found.first_value - found.second_value)
    assert found.low <= found.difference <= found.high
    (same,) = compare(suite, [short, short], ["PairAccuracy"])
    assert (same.difference, same.low, same.high) == (0, 0, 0)
    with pytest.raises(MeasureError, match="there are 1"):
        compare(suite, [short])


def test_a_suite_without_anything_to_measure() -> None:
    with pytest.raises(MeasureError, match="neither contrasts"):
        evaluate(Suite("bare", (Sentence("a", "x"),)), ["uniform"])


def test_scores_without_z_scores_stop_no_other_measure() -> None:
    sentences = tuple(Sentence(str(i), f"s{i}", rating=float(i)) for i in range(4))
    suite = Suite("rated", sentences, (contrast(sentences[1], sentences[0]), contrast(sentences[3], sentences[2])))
    pairs, adc = measure(suite, Scores(dict.fromkeys("0123", 1.0), "constant"), ["PairAccuracy", "ADC"])
    assert pairs.value == 0
    assert (adc.value, adc.n) == (None, 0)
    assert "no z-scores" in adc.reason
