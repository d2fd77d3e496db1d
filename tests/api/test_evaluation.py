from __future__ import annotations

import numpy as np
import pytest

from acceptability import MCC, PairAccuracy, Scores, Sentence, Suite, compare, evaluate, load_suite, measure, score
from acceptability.api.evaluation import evaluate_suites
from acceptability.errors import MeasureError, SuiteError, UnknownName
from acceptability.models.ngram import model
from acceptability.specs import parse_signature
from acceptability.stats.bootstrap import Bootstrap
from acceptability.types import Result, make_contrast


def test_groups_and_their_macro_mean() -> None:
    suite = load_suite("starter")
    results = measure(suite, score(suite, "uniform"), ["PairAccuracy(ties=0.5)"], by="phenomenon")
    overall, *groups, macro = results
    assert overall.group is None
    assert macro.group == "macro(phenomenon)"
    assert {result.group for result in groups} == {
        f"phenomenon={contrast.tags['phenomenon']}" for contrast in suite.contrasts
    }
    assert overall.value == pytest.approx(sum(result.value * result.n for result in groups) / overall.n)
    assert macro.value == pytest.approx(sum(result.value for result in groups) / len(groups))
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
    suite = Suite("s", tuple(tagged), tuple(make_contrast(tagged[i], tagged[i + 1]) for i in (0, 2, 4)))
    scores = Scores({"0": 2.0, "1": 1.0, "2": 0.0, "3": 1.0, "4": 2.0, "5": 1.0}, "m")
    overall, group, macro = measure(suite, scores, ["PairAccuracy"], by="g")
    assert (overall.n, group.group, group.n, macro.n) == (3, "g=a", 2, 2)
    assert macro.value == group.value == 0.5
    assert macro.notes == ("1 rows without the tag 'g' are in no group",)


def test_an_inapplicable_measure_is_refused_before_anything_is_scored(monkeypatch) -> None:
    monkeypatch.setattr("acceptability.api.evaluation.score_reductions", lambda *_, **__: pytest.fail("a model ran"))
    with pytest.raises(MeasureError, match="nothing for ADC"):
        evaluate("starter", ["uniform"], measure=["ADC"])


def test_too_few_rows_to_resample_give_a_note_instead_of_an_interval() -> None:
    sentences = [Sentence(str(i), f"s {i}", tags={"g": "ab"[i > 1]}) for i in range(6)]
    suite = Suite("s", tuple(sentences), tuple(make_contrast(sentences[i], sentences[i + 1]) for i in (0, 2, 4)))
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
    monkeypatch.setattr("acceptability.api.evaluation.score_reductions", lambda *_, **__: pytest.fail("a model ran"))
    with pytest.raises(UnknownName):
        evaluate("starter", ["uniform", "uniforn"])
    with pytest.raises(SuiteError, match="Did you mean 'item'"):
        evaluate("starter", ["uniform"], bootstrap=Bootstrap(by="itm"))
    sentences = (Sentence("a", "x", tags={"mark": "g"}), Sentence("b", "y", tags={"mark": "*", "type": "t"}))
    suite = Suite("s", sentences, (make_contrast(*sentences),))
    with pytest.raises(SuiteError, match="the contrasts of suite 's' have no tag 'type'"):
        evaluate(suite, ["uniform"], measure=["PairAccuracy"], by="type")


def test_the_error_about_a_misspelt_tag_suggests_the_closest() -> None:
    with pytest.raises(SuiteError, match="Did you mean 'phenomenon'"):
        evaluate("starter", ["uniform"], by="phenomenom")


def test_results_come_in_the_requested_order() -> None:
    requested = ["PBC()", "PairAccuracy(ties=0.5)", "PairAccuracy(ties=0.0)"]
    results = evaluate("starter", ["uniform"], measure=requested, reduce=["mean_lp", "lp"])
    assert [(result.reduction, result.measure) for result in results] == [
        (reduction, name) for reduction in ("mean_lp()", "lp()") for name in requested
    ]


def test_a_signature_holds_what_can_change_the_value_and_nothing_else() -> None:
    (one,) = evaluate("starter", ["uniform"], measure=[PairAccuracy()], bootstrap=Bootstrap(50, seed=3))
    fields = parse_signature(one.signature)
    assert fields["measure"] == "PairAccuracy(ties=0.0)"
    assert fields["suite"] == load_suite("starter").signature
    assert fields["model"] == "uniform(vocabulary=50000).lp()"
    assert fields["ci"] == "wilson(0.95,by=item)"
    assert fields["units"] == "383"
    assert set(fields) == {"measure", "suite", "model", "n", "units", "ci", "acceptability"}


def test_the_signature_records_whether_ratings_were_standardised() -> None:
    sentences = [Sentence(str(i), f"s {i}", rating=float(i * i)) for i in range(4)]
    suite = Suite("s", tuple(sentences), (make_contrast(sentences[3], sentences[0]),))
    (result,) = measure(suite, Scores({str(i): float(i) for i in range(4)}, "m"), ["ADC"])
    assert parse_signature(result.signature)["ratings"] == "standardised(ddof=0)"


def test_a_model_is_loaded_once_for_several_suites(monkeypatch) -> None:
    opened = []
    original = model.Uniform.encode

    def recording_encode(self, queries):
        # A marker object, since Python reuses the id() of an object that was garbage-collected.
        opened.append(vars(self).setdefault("mark", object()))
        return original(self, queries)

    monkeypatch.setattr(model.Uniform, "encode", recording_encode)
    suites = [load_suite(f"starter/{name}") for name in ("word_order", "filler_gap")]
    results = evaluate_suites(suites, ["uniform", "uniform(vocabulary=9)"], measures=["PairAccuracy"])
    assert [(result.suite, result.model) for result in results] == [
        (suite.name, model) for suite in suites for model in ("uniform", "uniform(vocabulary=9)")
    ]
    assert len(opened) == 4
    assert opened[0] is opened[1]
    assert opened[2] is opened[3]


def test_a_comparison_is_paired() -> None:
    suite = load_suite("starter")
    short, long = score(suite, "uniform"), score(suite, "uniform", "mean_lp")
    (result,) = compare(suite, [short, long], measure=["PairAccuracy(ties=0.5)"])
    assert result.difference == pytest.approx(result.first_value - result.second_value)
    assert result.low <= result.difference <= result.high
    (same,) = compare(suite, [short, short], measure=["PairAccuracy"])
    assert (same.difference, same.low + same.high) == (0, 0)
    with pytest.raises(MeasureError, match="there are 1"):
        compare(suite, [short])


def test_a_suite_without_anything_to_measure() -> None:
    with pytest.raises(MeasureError, match="neither contrasts"):
        evaluate(Suite("bare", (Sentence("a", "x"),)), ["uniform"])


def test_a_measure_without_z_scores_stops_no_other_measure() -> None:
    sentences = tuple(Sentence(str(i), f"s{i}", rating=float(i)) for i in range(4))
    suite = Suite(
        "rated", sentences, (make_contrast(sentences[1], sentences[0]), make_contrast(sentences[3], sentences[2]))
    )
    pairs, adc = measure(suite, Scores(dict.fromkeys("0123", 1.0), "constant"), ["PairAccuracy", "ADC"])
    assert pairs.value == 0
    assert (adc.value, adc.n) == (None, 0)
    assert "no z-scores" in adc.reason


def make_labelled(n: int = 60) -> tuple[Suite, Scores]:
    """Labelled sentences in items of three, with log-probabilities that are a little higher for acceptable ones."""
    generator = np.random.default_rng(4)
    labels = generator.integers(0, 2, n).tolist()
    tags = [{"item": f"i{number // 3}", "g": "ab"[number % 2]} for number in range(n)]
    sentences = [
        Sentence(str(number), f"s {number}", label=label, tags=tag)
        for number, (label, tag) in enumerate(zip(labels, tags, strict=True))
    ]
    logs = generator.normal(-40, 5, n) + 5 * np.array(labels)
    return Suite("labelled", tuple(sentences)), Scores(
        {str(i): log for i, log in enumerate(logs.tolist())}, "m", "lp()"
    )


def measure_one(suite: Suite, scores: Scores, text: str, **options) -> Result:
    return measure(suite, scores, [text], **options)[0]


@pytest.mark.parametrize("name", ["MCC", "Accuracy"])
def test_the_threshold_of_log_probabilities_is_cross_validated_and_signed(name: str) -> None:
    suite, scores = make_labelled()
    result = measure_one(suite, scores, name, bootstrap=Bootstrap(100))
    assert parse_signature(result.signature)["measure"] == f"{name}(threshold='cv', folds=10, seeds=10)"
    assert parse_signature(result.signature)["refit"] == "threshold"
    assert result.low < result.value < result.high
    note = "; ".join(result.notes)
    assert "threshold by cross-validation, 10 splits into 10 folds; mean threshold -" in note
    assert "the splits give 0." in note
    again = measure_one(suite, scores, parse_signature(result.signature)["measure"], bootstrap=Bootstrap(100))
    assert again.row() == result.row()


def test_a_classifier_keeps_its_threshold() -> None:
    suite, scores = make_labelled()
    odds = Scores({key: value + 38 for key, value in scores.values.items()}, "c", "log_odds()")
    result = measure_one(suite, odds, "MCC")
    explicit = measure_one(suite, odds, "MCC(threshold=0)")
    assert result.row() == explicit.row()
    assert "refit" not in parse_signature(result.signature)


def test_a_threshold_of_0_is_used_on_request_and_its_vacuity_is_said() -> None:
    result = measure_one(*make_labelled(), "MCC(threshold=0)", bootstrap=Bootstrap(40))
    assert (result.value, result.measure) == (0.0, "MCC(threshold=0.0)")
    assert "every sentence is predicted to be unacceptable" in "; ".join(result.notes)


def test_folds_keep_what_the_bootstrap_draws_together() -> None:
    suite, scores = make_labelled()
    by_item = measure_one(suite, scores, "MCC", bootstrap=Bootstrap(40, by="item"))
    assert by_item.measure == "MCC(threshold='cv', folds=10, seeds=10, by='item')"
    assert by_item.value == MCC(by="item").value(MCC(by="item").units(suite, scores))
    explicit = measure_one(suite, scores, "MCC(threshold='cv')", bootstrap=Bootstrap(40, by="item"))
    assert explicit.measure == "MCC(threshold='cv', folds=10, seed=0, by='item')"
    rows = measure_one(suite, scores, "MCC(threshold='cv', by='row')", bootstrap=Bootstrap(40, by="item"))
    assert rows.measure == "MCC(threshold='cv', folds=10, seed=0, by='row')", "as it was typed"
    assert rows.value == MCC(threshold="cv").value(MCC(threshold="cv").units(suite, scores))


def test_groups_keep_the_thresholds_of_the_whole_suite() -> None:
    suite, scores = make_labelled()
    overall, first, second, macro = measure(suite, scores, ["Accuracy"], by="g", bootstrap=Bootstrap(40))
    assert overall.value == pytest.approx((first.value * first.n + second.value * second.n) / 60)
    assert "refit" in parse_signature(overall.signature)
    assert all("refit" not in parse_signature(result.signature) for result in (first, second, macro))
    assert macro.notes == ("groups have the thresholds of the whole suite, which their intervals do not fit again",)


def test_too_few_sentences_for_folds_are_an_error_that_says_what_to_do() -> None:
    suite, scores = make_labelled()
    few = [sentence for label in (0, 1) for sentence in suite.sentences if sentence.label == label]
    suite = Suite("few", (*few[:4], *few[-4:]))
    with pytest.raises(
        MeasureError, match=r"10 folds of 8 sentences.*; give fewer folds, or a number as the threshold"
    ):
        measure(suite, scores, ["MCC"])
    assert measure_one(suite, scores, "MCC(folds=3)", bootstrap=Bootstrap(0)).value is not None
