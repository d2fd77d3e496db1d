from __future__ import annotations

from pathlib import Path

import pytest

from acceptability import Contrast, Sentence, Suite, evaluate, judge, load_model, load_suite, score
from acceptability.errors import ModelError, ScoreError, SpecError, SuiteError
from acceptability.models.ngram import model
from acceptability.store.scores import ScoreStore
from tiny import TEXTS


def test_a_second_run_does_not_run_the_model(monkeypatch) -> None:
    batch_sizes = []
    original = model.Uniform.run
    monkeypatch.setattr(
        model.Uniform, "run", lambda self, batch: batch_sizes.append(len(batch)) or original(self, batch)
    )
    first = score("starter", "uniform")
    texts = {sentence.text for sentence in load_suite("starter").sentences}
    assert sum(batch_sizes) == len(texts)
    batch_sizes.clear()
    monkeypatch.setattr(model.Uniform, "encode", lambda *_: pytest.fail("the model was loaded"))
    assert dict(score("starter", "uniform").values) == dict(first.values)
    assert dict(score("starter", "uniform", "mean_lp").values).keys() == dict(first.values).keys()
    assert batch_sizes == []


def test_the_same_text_is_scored_once() -> None:
    suite = Suite("twice", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleep.")))
    scores = score(suite, "uniform")
    assert scores["a"] == scores["b"]
    with ScoreStore() as store:
        assert list(store.count_answers().values()) == [1]


def test_an_error_names_the_sentence(arpa: Path) -> None:
    suite = Suite("s", (Sentence("fine", "The cats sleep."), Sentence("odd/1", "qwx zzx")))
    with pytest.raises(ModelError, match=r"cannot score sentence 'odd/1' \('qwx zzx'\).*knows none of its words"):
        score(suite, f"ngram:{arpa}")


def test_regions_are_scored_alone(arpa: Path) -> None:
    suite = Suite("s", (Sentence("a", "The cats sleep.", regions={"target": (4, 8)}),))
    scores = score(suite, f"ngram:{arpa}", region="target")
    (whole,) = judge(["The cats sleep."], model=f"ngram:{arpa}")
    assert scores["a"] == pytest.approx(float(whole.output.logprobs[1]))
    assert scores.signature.endswith("lp()#target")
    with pytest.raises(SuiteError, match="its regions: target"):
        score(suite, f"ngram:{arpa}", region="verb")


def test_a_classifier_is_reduced_by_its_log_odds(classifier_dir: Path) -> None:
    suite = Suite("s", (Sentence("a", "The cats sleep.", label=1), Sentence("b", "cats the sleep.", label=0)))
    (pbc,) = evaluate(suite, [f"classifier:{classifier_dir}"], measure=["PBC"])
    assert pbc.reduction == "log_odds()"


@pytest.mark.parametrize("reduction", ["signed_confidence()", "log_odds()", "p_acceptable(temperature=1.7)"])
def test_a_classifier_is_measured_on_rated_contrasts_under_a_named_reduction(
    classifier_dir: Path, reduction: str
) -> None:
    rated = tuple(
        Sentence(str(index), text, rating=float(rating))
        for index, (text, rating) in enumerate(zip(TEXTS, (1, -1, 0.5, -0.2, 2, -2, 0.1, 0, -1.5, 1.2), strict=True))
    )
    suite = Suite("rated", rated, (Contrast("0", "1"), Contrast("2", "3"), Contrast("4", "5"), Contrast("6", "8")))
    results = evaluate(suite, [f"classifier:{classifier_dir}"], reduce=[reduction], measure=["ADC", "Pearson"])
    for result in results:
        assert result.value is not None
        assert result.reduction == reduction
        assert f".{reduction}" in result.signature


def test_judgements_come_in_the_order_of_the_sentences() -> None:
    texts = ["One two three.", "One.", "One two.", "One."]
    assert [judgement.text for judgement in judge(texts, model="uniform")] == texts
    with pytest.raises(SuiteError, match="sentence 2 is empty"):
        judge(["fine", " "], model="uniform")
    with pytest.raises(SpecError, match="'uniform' is a model, not a sentence; write model='uniform'"):
        judge("Cats sleep.", "uniform")


def test_a_missing_table_is_reported_before_the_model_runs(monkeypatch) -> None:
    monkeypatch.setattr(model.Uniform, "run", lambda *_: pytest.fail("the model ran"))
    with pytest.raises(ScoreError, match="needs a table"):
        score("starter", "uniform", "slor")


def test_unlisted_words_are_noted_and_a_table_without_any_word_is_an_error(tmp_path: Path) -> None:
    suite = Suite("s", (Sentence("a", "The cat sleeps."), Sentence("b", "The dog.")))
    table = tmp_path / "counts.tsv"
    table.write_text("word\tcount\nthe\t5\ncat\t2\n")
    for reduction in (f"slor(unigrams={str(table)!r})", f"exp(slor(unigrams={str(table)!r}))"):
        scores = score(suite, "uniform", reduction)
        assert len(scores.notes) == 1
        assert scores.notes[0].startswith("2 of 5 words are not in counts.tsv#")
    table.write_text("word\tcount\nzebra\t5\n")
    with pytest.raises(ScoreError, match="lists none of the 5 words"):
        score(suite, "uniform", f"slor(unigrams={str(table)!r})")


def test_exponentials_outside_the_range_of_floats_are_refused() -> None:
    suite = Suite("s", (Sentence("a", "word " * 100),))
    with pytest.raises(ScoreError, match="outside the range of float64"):
        score(suite, "uniform", "exp(lp)")


def test_a_model_object_may_be_passed() -> None:
    model = load_model("uniform(vocabulary=7)")
    suite = load_suite("starter/word_order")
    assert dict(score(suite, model).values) == dict(score(suite, "uniform(vocabulary=7)").values)
    (result,) = evaluate(suite, [model], measure=["PairAccuracy"])
    assert result.model == model.signature


def test_a_context_is_read_first_and_not_scored(arpa: Path) -> None:
    alone = Suite("s", (Sentence("a", "cats sleep."),))
    after = Suite("s", (Sentence("a", "cats sleep.", tags={"context": "The"}),))
    (whole,) = judge(["The cats sleep."], model=f"ngram:{arpa}")
    assert score(after, f"ngram:{arpa}")["a"] == pytest.approx(float(whole.output.logprobs[1:].sum()), rel=1e-6)
    assert score(after, f"ngram:{arpa}")["a"] != score(alone, f"ngram:{arpa}")["a"]


def test_progress_is_reported_to_the_end() -> None:
    calls = []
    score("starter", "uniform", progress=lambda *arguments: calls.append(arguments))
    assert calls[0][1] == 0
    assert calls[-1][1] == calls[-1][2] == len({sentence.text for sentence in load_suite("starter").sentences})
