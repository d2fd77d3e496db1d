"""The Python interface as people type it: one where many are allowed, objects where texts are, values that show up."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import acceptability
from acceptability import (
    AcceptabilityError,
    Contrast,
    PairAccuracy,
    Results,
    Scores,
    Sentence,
    Suite,
    compare,
    correlate,
    evaluate,
    judge,
    list_measures,
    list_models,
    list_reductions,
    list_suites,
    load_model,
    load_suite,
    measure,
    score,
    slor,
    tokens,
    words,
)
from acceptability.errors import MeasureError, MissingExtra, ModelError, ReportError, ScoreError, SpecError, SuiteError
from acceptability.reductions import SLOR

PAIRS = pd.DataFrame(
    {"g": ["Cats sleep.", "Dogs bark well."], "b": ["Cats sleep a lot.", "Dogs bark."], "kind": ["x", "y"]}
)
SUITE = Suite(
    "four",
    (
        Sentence("a", "Cats sleep.", 1, 2.5, tags={"kind": "x"}),
        Sentence("b", "Cats sleep a lot.", 0, 1.0, tags={"kind": "x"}),
        Sentence("c", "Dogs bark.", 1, 3.0, tags={"kind": "y"}),
        Sentence("d", "Dogs bark very loudly.", 0, tags={"kind": "y"}),
    ),
    (Contrast("a", "b", {"kind": "x"}), Contrast("c", "d", {"kind": "y"})),
)


# --- arguments ---


def test_one_may_be_given_where_many_are_allowed() -> None:
    single = evaluate("starter", "uniform", measure="PairAccuracy", reduce="mean_lp", resamples=0)
    many = evaluate(["starter"], ["uniform"], measure=[PairAccuracy()], reduce=("mean_lp",), resamples=0)
    assert [result.row() for result in single] == [result.row() for result in many]


def test_a_data_frame_is_a_suite_whose_columns_may_have_other_names() -> None:
    first, second = (
        evaluate(PAIRS, "uniform", measure="PairAccuracy", resamples=0, **given)  # type: ignore[arg-type]
        for given in ({"good": "g", "bad": "b"}, {"columns": {"good": "g", "bad": "b"}})
    )
    # Fewer words are more probable: the first pair is right and the second wrong.
    assert first[0].value == second[0].value == 0.5
    assert [r.group for r in evaluate(PAIRS, "uniform", measure="PairAccuracy", by="kind", good="g", bad="b")[1:3]] == [
        "kind=x",
        "kind=y",
    ]


def test_a_list_of_suites_has_results_on_each(data: Path) -> None:
    results = evaluate(["starter", SUITE], "uniform", measure="PairAccuracy", resamples=0)
    assert [result.suite for result in results] == ["starter", "four"]
    assert [suite.name for suite in results.suites] == ["starter", "four"]


def test_a_paradigm_is_found_by_its_own_name(data: Path) -> None:
    (result,) = evaluate("wh_island", "uniform", measure="PairAccuracy", resamples=0)
    assert (result.suite, result.n) == ("blimp[paradigm=wh_island]", 1000)


def test_sentences_have_scores_under_their_numbers() -> None:
    texts = ["Cats sleep.", "Cats sleep a lot.", "Cats sleep."]
    scores = score(texts, "uniform")
    assert list(scores) == ["1", "2", "3"]
    assert scores["1"] == scores["3"] > scores["2"]
    assert dict(score(pd.Series(texts, index=[7, 7, 9]), "uniform")) == dict(scores)
    assert dict(score(pd.DataFrame({"text": texts}), "uniform")) == dict(scores)


def test_a_reduction_may_be_an_object_a_spec_or_a_class() -> None:
    spec = "slor(unigrams='wordfreq:en')"
    made = slor(unigrams="wordfreq:en")
    assert slor is SLOR
    assert repr(made) == spec
    assert eval(repr(made), {"slor": slor}) == made  # noqa: S307
    assert dict(score(SUITE, "trigram", made)) == dict(score(SUITE, "trigram", spec))
    assert score(SUITE, "trigram", acceptability.mean_lp).reduction == "mean_lp()"
    assert repr(acceptability.exp(acceptability.lp)) == "exp(of=lp())"  # type: ignore[arg-type]


def test_every_reduction_is_public_under_the_name_of_its_spec() -> None:
    for row in list_reductions():
        assert getattr(acceptability, row["name"]).name == row["name"]


def test_compare_takes_models_scores_and_lists_of_them() -> None:
    options: dict[str, Any] = {"measure": "PairAccuracy", "resamples": 0, "draws": 0}
    models = [load_model("uniform"), load_model("trigram")]
    by_name = compare(SUITE, "uniform", "trigram", **options)
    by_object = compare(SUITE, *models, **options)
    by_scores = compare(SUITE, score(SUITE, "uniform"), "trigram", **options)
    as_list = compare(SUITE, ["uniform", "trigram"], **options)
    by_reduction = compare(SUITE, "uniform", reduce=["lp", "mean_lp"], **options)
    assert by_name[0].difference == by_object[0].difference == by_scores[0].difference == as_list[0].difference
    assert (by_reduction[0].first, by_reduction[0].second) == ("uniform lp()", "uniform mean_lp()")
    with pytest.raises(MeasureError, match="a comparison needs the scores of two models; there are 1"):
        compare(SUITE, "uniform", **options)


def test_correlate_scores_models_itself() -> None:
    (direct,) = correlate(SUITE, "uniform")
    (given,) = correlate(SUITE, score(SUITE, "uniform"))
    assert direct.row() == given.row()


def test_sentences_are_judged_one_by_one_or_as_a_list() -> None:
    judged = judge("Cats sleep.", "Cats sleep a lot.", model="uniform")
    assert [one.row() for one in judge(["Cats sleep.", "Cats sleep a lot."], model="uniform")] == [
        one.row() for one in judged
    ]
    assert judged.best is judged[0]
    assert judge("Cats sleep.", "Dogs sleep.", model="uniform").best is None
    assert repr(judged).splitlines()[0] == "judged by uniform"
    assert repr(judged).splitlines()[-1] == "better: Cats sleep."


def test_the_default_model_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("acceptability.api.scoring.default_model", lambda: "trigram")
    assert judge("Cats sleep.").model == "trigram"


# --- contexts ---


def test_a_context_changes_scores_tokens_and_judgements_alike() -> None:
    sentence, context = "were late.", "The boys"
    plain, after = score([sentence], "trigram")["1"], score([sentence], "trigram", context=context)["1"]
    assert plain != after
    assert judge(sentence, model="trigram", context=context)[0].score == pytest.approx(after)
    rows = tokens(sentence, "trigram", context=context)
    assert sum(row["logprob"] for row in rows) == pytest.approx(after, rel=1e-6)
    assert [row["token"] for row in rows][:2] == ["were", "late"]
    assert score([sentence] * 2, "trigram", context=["", context]).values == {"1": plain, "2": after}


def test_contexts_must_match_the_sentences() -> None:
    with pytest.raises(SpecError, match="context has 1 texts, and there are 2 sentences"):
        score(["a b", "c d"], "uniform", context=["x"])
    own = Suite("own", (Sentence("a", "Cats sleep.", tags={"context": "Look!"}),))
    with pytest.raises(SuiteError, match="have contexts of their own"):
        score(own, "uniform", context="x")


# --- tokens and words ---


def test_tokens_have_clean_text_offsets_and_bits(causal_dir: Path) -> None:
    text = "The cats sleep."
    rows = tokens(text, f"causal:{causal_dir}")
    assert not any(sign in row["token"] for row in rows for sign in "Ġ▁ ")
    assert all(text[row["start"] : row["end"]] == row["token"] for row in rows)
    assert all(row["surprisal_bits"] == pytest.approx(-row["logprob"] / math.log(2)) for row in rows)
    assert sum(row["logprob"] for row in rows) == pytest.approx(score([text], f"causal:{causal_dir}")["1"], rel=1e-6)


def test_words_sum_tokens_and_mark_what_is_unknown() -> None:
    rows = words(["The cats xyzzyx.", "Dogs sleep."], "trigram")
    assert [(row["sentence"], row["word"], row["unknown"]) for row in rows] == [
        ("1", "The", False),
        ("1", "cats", False),
        ("1", "xyzzyx.", True),
        ("2", "Dogs", False),
        ("2", "sleep.", False),
    ]
    frame = rows.to_frame()
    assert list(frame.columns) == ["sentence", "word", "start", "end", "logprob", "surprisal_bits", "unknown"]
    by_token = tokens("The cats xyzzyx.", "trigram").to_frame()
    assert frame.logprob[frame.sentence == "1"].sum() == pytest.approx(by_token.logprob.sum(), rel=1e-6)


def test_a_classifier_has_no_tokens(classifier_dir: Path) -> None:
    with pytest.raises(ModelError, match="has no scores of tokens or words"):
        tokens("Cats sleep.", f"classifier:{classifier_dir}")


# --- wrong types ---


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: evaluate(3, "uniform"), SuiteError, "expected a suite, its name"),
        (lambda: evaluate([], "uniform"), SuiteError, "no suite was given"),
        (lambda: evaluate(SUITE, 3), ModelError, "expected a model or its name, and this is of type int"),
        (lambda: evaluate(SUITE, []), ModelError, "no model was given"),
        (lambda: evaluate(SUITE, SUITE), ModelError, "expected a model"),
        (lambda: evaluate(SUITE, "uniform", measure=3), MeasureError, "expected a measure"),
        (lambda: evaluate(SUITE, "uniform", reduce=3), ScoreError, "expected a reduction"),
        (lambda: evaluate(SUITE, "uniform", reduce=len), ScoreError, "expected a reduction"),
        (lambda: evaluate(SUITE, "uniform", god="g"), SpecError, "no argument 'god'.*Did you mean 'good'"),
        (lambda: evaluate(SUITE, "uniform", good="g"), SuiteError, "columns can be named for tables"),
        (lambda: evaluate(SUITE, "uniform", seed=1, bootstrap=acceptability.Bootstrap()), SpecError, "not both"),
        (lambda: score(["Cats.", 3], "uniform"), SuiteError, "number 2 is of type int"),
        (lambda: score([], "uniform"), SuiteError, "the list is empty"),
        (lambda: tokens(__file__, "uniform"), SpecError, "is a file, and sentences are expected"),
        (lambda: judge("Cats sleep.", " ", model="uniform"), SuiteError, "sentence 2 is empty"),
        (lambda: score("The cats sleep.", "uniform"), SuiteError, "give it in a list"),
        (lambda: score(SUITE, "uniform", slor), ScoreError, "needs a table of unigram"),
        (lambda: measure(SUITE, {"a": 1.0}), ScoreError, "expected Scores"),
        (lambda: judge(), SpecError, "no sentence was given"),
        (lambda: judge("a", 3), SuiteError, "number 2 is of type int"),
        (lambda: judge(3), SpecError, "expected a list of texts"),
        (lambda: compare(SUITE, 3, 4), ModelError, "expected a model"),
        (lambda: Suite.from_frame([1]), SuiteError, "expected a pandas DataFrame"),
        (lambda: SUITE["e"], SuiteError, "has no sentence 'e'"),
        (lambda: SUITE[0], SuiteError, "Ids are texts"),
        (lambda: SUITE.sample(3), SuiteError, "give 1 to 2"),
        (lambda: SUITE.sample(0.5), SuiteError, "n is 0.5"),
    ],
)
def test_wrong_types_are_errors_of_ours(call: Any, error: type[AcceptabilityError], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_nothing_is_scored_before_the_last_argument_is_checked(own_home: Path) -> None:
    with pytest.raises(AcceptabilityError):
        evaluate(SUITE, ["uniform", "unifrom"])
    assert not (own_home / "scores.sqlite").exists()


# --- suites ---


def test_a_suite_is_a_collection_of_its_sentences() -> None:
    assert len(SUITE) == 4
    assert [sentence.id for sentence in SUITE] == list("abcd")
    assert SUITE["c"].text == "Dogs bark."
    assert "c" in SUITE
    assert "e" not in SUITE
    assert "Cats sleep a lot." in SUITE._repr_html_()


def test_a_sample_is_repeatable_and_keeps_pairs_whole() -> None:
    starter = load_suite("starter")
    part = starter.sample(50, seed=1)
    assert part.signature == starter.sample(50, seed=1).signature != starter.sample(50, seed=2).signature
    assert len(part.contrasts) == 50
    assert len(part) == 100
    assert [s.id for s in part] == [s.id for s in starter if s.id in part]
    singles = Suite("s", SUITE.sentences).sample(3)
    assert (len(singles), singles.contrasts) == (3, ())


def test_a_suite_survives_a_data_frame() -> None:
    frame = SUITE.to_frame()
    assert list(frame.columns) == ["id", "text", "label", "rating", "kind", "better_than"]
    again = Suite.from_frame(frame, "four")
    assert again.hash == SUITE.hash
    # The index says nothing: rows were removed, and the frame has been sorted since.
    shuffled = Suite.from_frame(frame.iloc[::-1], "four")
    assert shuffled.hash == SUITE.hash
    assert Suite.from_frame(frame, unit="kind").unit == "kind"


def test_missing_cells_of_pandas_are_no_tags_and_whole_numbers_stay_whole() -> None:
    frame = pd.DataFrame(
        {"text": ["a b", "c d"], "rating": [1.5, np.nan], "lists": [1.0, np.nan], "note": [pd.NA, "x"]}
    )
    first, second = Suite.from_frame(frame)
    assert (first.rating, second.rating) == (1.5, None)
    assert (dict(first.tags), dict(second.tags)) == ({"lists": "1"}, {"note": "x"})


# --- what comes back ---


@pytest.fixture
def results() -> Results:
    starter = load_suite("starter").sample(60)
    return evaluate(starter, ["uniform", "trigram"], measure="PairAccuracy", by="phenomenon", resamples=0)


def test_results_are_a_list_with_a_frame(results: Results) -> None:
    frame = results.to_frame()
    assert isinstance(results, list)
    assert len(frame) == len(results)
    assert frame.value.tolist() == [result.value for result in results]
    assert isinstance(results[:2], Results)
    assert results[:2].suites == results.suites


def test_the_pivot_has_models_in_columns(results: Results) -> None:
    table = results.pivot()
    assert list(table[0]) == ["phenomenon", "uniform", "trigram"]
    assert table[0]["phenomenon"] == "all"
    assert table[-1]["phenomenon"] == "macro mean"
    by_group = {(result.model, result.group): result.value for result in results}
    assert table[0]["trigram"] == by_group["trigram", None]
    row = table[1]
    assert row["trigram"] == by_group["trigram", f"phenomenon={row['phenomenon']}"]
    assert "trigram" in repr(table)
    assert [row["n"] for row in [results.pivot("measure", "n")[0] | {"n": 60}]] == [60]
    with pytest.raises(MeasureError, match="'modle' is none of"):
        results.pivot("modle")


def test_the_best_result_is_the_highest_over_all_rows(results: Results) -> None:
    overall = {result.model: result.value for result in results if result.group is None}
    assert results.best().value == max(filter(None, overall.values()))
    assert results.best().group is None
    both = evaluate(SUITE, "uniform", measure=["PairAccuracy", "AUC"], resamples=0)
    with pytest.raises(MeasureError, match="several values of measure"):
        both.best()
    assert both.best(measure="PairAccuracy").measure == "PairAccuracy(ties=0.0)"
    with pytest.raises(MeasureError, match="no result has the measure 'ADC'"):
        both.best(measure="ADC")


def test_results_are_drawn_reported_and_written_in_latex(results: Results, tmp_path: Path) -> None:
    figure = results.figure("by-group")
    assert figure.save(tmp_path / "figure.svg").read_text(encoding="utf-8").startswith("<svg")
    assert figure.save(tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in figure._repr_html_()
    with pytest.raises(ReportError, match="a figure is written as"):
        figure.save(tmp_path / "figure.doc")
    with pytest.raises(ReportError, match="there is no figure 'by-grop'.*Did you mean 'by-group'"):
        results.figure("by-grop")
    page = results.report(tmp_path / "report.html", title="Mine").read_text(encoding="utf-8")
    sentence = results.suites[0].sentences[0].text
    assert "<title>Mine" in page
    assert sentence in page
    assert results.to_latex().count(r"\begin{tabular}") >= 1
    assert "trigram" in results.to_latex()
    with pytest.raises(MeasureError, match="there are no results"):
        Results().to_latex()


def test_comparisons_and_correlations_are_drawn_too() -> None:
    comparisons = compare(SUITE, "uniform", "trigram", measure="PairAccuracy", resamples=0, draws=10)
    assert comparisons.to_frame().difference.tolist() == [comparisons[0].difference]
    assert r"\begin{tabular}" in comparisons.to_latex()
    assert comparisons.figure().name == "differences"
    assert correlate(SUITE, "uniform").to_frame().r.size == 1


def shown_values(results: Results) -> dict[str, Any]:
    judged = judge("Cats sleep.", "Dogs bark.", model="uniform")
    scores = score(SUITE, "uniform")
    return {
        "suite": SUITE,
        "scores": scores,
        "results": results,
        "result": results[0],
        "pivot": results.pivot(),
        "comparisons": compare(SUITE, "uniform", "trigram", measure="PairAccuracy", resamples=0, draws=0),
        "correlations": correlate(SUITE, "uniform"),
        "correlation": correlate(SUITE, "uniform")[0],
        "judgements": judged,
        "judgement": judged[0],
        "output": judged[0].output,
        "tokens": tokens("Cats sleep.", "uniform"),
        "suites": list_suites("en"),
        "models": list_models(),
        "measures": list_measures(),
        "reductions": list_reductions(),
    }


def test_every_value_shows_itself_in_a_few_lines_and_as_html(results: Results) -> None:
    for name, value in shown_values(results).items():
        lines = repr(value).splitlines()
        assert len(lines) <= 25, name
        assert max(map(len, lines)) <= 300, name
        assert value._repr_html_().startswith("<table"), name


def test_html_shows_markup_as_text() -> None:
    evil = Suite("evil", (Sentence("a", "<script>alert(1)</script>"),))
    for value in (evil, score(evil, "uniform"), tokens(evil, "uniform"), judge("<script>", model="uniform")):
        assert "<script" not in value._repr_html_()


def test_scores_have_a_length_and_a_frame_with_texts() -> None:
    scores = score(SUITE, "uniform")
    assert len(scores) == 4
    frame = scores.to_frame()
    assert frame.columns.tolist() == ["sentence_id", "text", "score"]
    assert frame.text.tolist() == [sentence.text for sentence in SUITE]
    assert Scores({"a": 1.0}, "m").to_frame().columns.tolist() == ["sentence_id", "score"]
    assert repr(Scores({}, "m")) == "Scores(of 'm', 0 scores)"


def test_without_pandas_a_frame_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(MissingExtra, match="'to_frame' needs the package pandas"):
        list_models().to_frame()


def test_lists_name_what_there_is() -> None:
    assert {"starter", "blimp"} <= {row["name"] for row in list_suites()}
    assert [row["name"] for row in list_suites("starter")] == ["starter"]
    assert "trigram" in [row["name"] for row in list_models()]
    assert dict(list_measures()[0])["needs"] == "contrasts"


def test_a_result_on_a_sample_is_computed_again_from_its_signature() -> None:
    part = load_suite("starter").filter(phenomenon="island_effects").sample(20, seed=4)
    (result,) = evaluate(part, "uniform", measure="PairAccuracy", resamples=0)
    (again,) = acceptability.reproduce(result.signature, expected={"value": result.value})
    assert again.status == "equal"
