"""Unknown words: what they get under each value of the option, and that they are told apart everywhere."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from acceptability import Bootstrap, compare, evaluate, judge, load_model, measure, score
from acceptability.api.comparison import correlate
from acceptability.api.contrasts import score_target_contrasts
from acceptability.api.evaluation import evaluate_suites
from acceptability.api.interface.arguments import as_reduction
from acceptability.api.linking import link
from acceptability.api.scoring import find_deciding_words, score_rows
from acceptability.cli import app
from acceptability.errors import ModelError, QueryError, ScoreError
from acceptability.models.ngram.aggregate_markov import AggregateMarkovTable, serialize_aggregate_markov
from acceptability.models.unknown_words import DEFAULT_POLICY, POLICIES, SpellingModel, validate_unknown_policy
from acceptability.protocols import complete_model
from acceptability.report.terminal import collect_footnotes
from acceptability.store.database import decode_block, encode_block
from acceptability.text.words import SPECIAL_WORDS, Vocabulary
from acceptability.train import train
from acceptability.train.ngram_recipes import NGramRecipe
from acceptability.train.perplexity import perplexity
from acceptability.types import Contrast, Query, Sentence, Suite, TokenScores
from tiny import SENTENCES, arpa_text, make_recurrent

PAIRS = Suite(
    "pairs",
    (
        Sentence("known/good", "The cats sleep."),
        Sentence("known/bad", "The cats the."),
        Sentence("one/good", "The cats sleep."),
        Sentence("one/bad", "The cats zebra."),
        Sentence("both/good", "The zebra sleep."),
        Sentence("both/bad", "sleep the zebra."),
    ),
    tuple(Contrast(f"{item}/good", f"{item}/bad") for item in ("known", "one", "both")),
)


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A model of each kind of word model, by its kind."""
    place = tmp_path_factory.mktemp("models")
    (place / "text.txt").write_text("\n".join(SENTENCES))
    train(NGramRecipe(vocabulary=80, arpa=True), [place / "text.txt"], place / "ngram")
    histories = [[0.5, 0.5], [1, 0], [0, 1], [0.25, 0.75], [0, 1], [0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]
    followers = [[0.1, 0.2], [0, 0], [0.1, 0.2], [0.4, 0.1], [0.2, 0.1], [0.1, 0.3], [0.1, 0.1]]
    (place / "markov").mkdir()
    table = AggregateMarkovTable(np.array(histories), np.array(followers))
    (place / "markov" / "model.safetensors").write_bytes(serialize_aggregate_markov(table))
    vocabulary = Vocabulary((*SPECIAL_WORDS, "cats", "sleep", ".", "the"), "split", lower=True)
    (place / "markov" / "vocabulary.json").write_bytes(vocabulary.to_json())
    (arpa,) = (place / "ngram").glob("*.arpa*")
    return {
        "ngram": f"ngram:{place / 'ngram'}",
        "arpa": f"ngram:{arpa}",
        "aggregate-markov": f"aggregate-markov:{place / 'markov'}",
        "recurrent": f"recurrent:{make_recurrent(place / 'net')}",
    }


KINDS = ("ngram", "arpa", "aggregate-markov", "recurrent")
TEXT = {"arpa": "The cats zebra ."}


def run_model(spec: str, text: str, **options: object) -> TokenScores:
    model = load_model(spec)
    (output,) = model.run(model.encode([Query(text, **options)]))
    return output


def get_vocabulary(spec: str) -> list[str]:
    model = load_model(spec)
    return model.backend.words if spec.endswith("arpa") else model.vocabulary.words[3:]


def test_a_spelling_worked_by_hand() -> None:
    # After the start, "a" has 1/3 without a context, which each longer context mixes with 1: 5/12, 17/24, 41/48, 89/96,
    # 185/192. The end after "a" has the same numbers. After "aa", of which no word has the second a, only the contexts
    # "" and "a" were seen.
    a_or_end = 185 / 192
    second_a = 5 / 12 / 2 / 2 / 2 / 2
    end_after_two = 17 / 24
    expected = a_or_end * second_a * end_after_two / (1 - a_or_end * a_or_end)
    assert SpellingModel(["a"]).logprob("aa") == pytest.approx(math.log(expected))


@given(st.sets(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=5))
def test_spellings_share_one_probability(words: set[str]) -> None:
    spelling = SpellingModel(words)
    strings = [""]
    for _ in range(7):
        strings += [f"{text}{letter}" for text in strings for letter in "ab" if f"{text}{letter}" not in strings]
    total = math.fsum(math.exp(spelling.logprob(text)) for text in dict.fromkeys(strings) if text not in words)
    # The rest belongs to longer strings and to other letters.
    assert 0 < total < 1


def test_likely_spellings_get_more() -> None:
    spelling = SpellingModel(["walk", "walks", "talk", "talks", "bark", "cat", "cats"])
    assert spelling.logprob("barks") > spelling.logprob("xzqvk") > spelling.logprob("ж" * 5)
    assert math.isfinite(SpellingModel([]).logprob("a"))


@pytest.mark.parametrize("kind", KINDS)
def test_each_policy(specs: dict[str, str], kind: str) -> None:
    text = TEXT.get(kind, "the cats zebra.")
    outputs = {
        policy: run_model(f"{specs[kind]}(unknown={policy})", text)
        for policy in ("'spelling'", "'<unk>'", "'uniform'", "-7.0", "'omit'")
    }
    for output in outputs.values():
        assert output.unknown == (2,)
        assert output.unknown_words == ("zebra",)
        assert output.logprobs[:2].tolist() == outputs["'<unk>'"].logprobs[:2].tolist()
    whole = outputs["'<unk>'"].logprobs
    spelled = outputs["'spelling'"].logprobs
    assert spelled[2] - whole[2] == pytest.approx(SpellingModel(get_vocabulary(specs[kind])).logprob("zebra"), abs=1e-4)
    assert spelled[3] == whole[3]
    assert outputs["-7.0"].logprobs[2] == -7
    assert outputs["'uniform'"].logprobs[2] > -10
    assert outputs["'omit'"].logprobs.tolist() == whole.tolist()
    # The default is the one that docs/why/numbers.md measures as the best.
    assert run_model(specs[kind], text).logprobs.tolist() == spelled.tolist()
    assert f"unknown='{DEFAULT_POLICY}'" in load_model(specs[kind]).signature


@pytest.mark.parametrize("kind", KINDS)
def test_a_refused_word(specs: dict[str, str], kind: str) -> None:
    spec = f"{specs[kind]}(unknown='refuse')"
    assert run_model(spec, "the cats .").unknown in ((), (0,))
    with pytest.raises(QueryError, match="does not know 'zebra', and unknown='refuse'"):
        run_model(spec, "cats zebra cats")
    # A word that is not scored only conditions.
    assert run_model(spec, "cats zebra cats", target=(0, 4)).tokens == ("cats",)


def test_the_option_is_checked() -> None:
    assert validate_unknown_policy(-3) == -3.0
    for policy in POLICIES:
        assert validate_unknown_policy(policy) == policy
    for wrong in ("auto", "unk", 1, True, None):
        with pytest.raises(
            ModelError, match=r"expected 'spelling', '<unk>', 'uniform', 'refuse', 'omit' or a log-prob"
        ):
            validate_unknown_policy(wrong)


def test_without_a_symbol_for_unknown_words_nothing_is_shared(tmp_path: Path) -> None:
    path = tmp_path / "m.arpa"
    path.write_text("\\data\\\nngram 1=2\n\n\\1-grams:\n-0.3 a\n-0.3 b\n\n\\end\\\n")
    assert "unknown='uniform'" in load_model(f"ngram:{path}").signature
    for policy in ("<unk>", "spelling"):
        with pytest.raises(ModelError, match="has no <unk>"):
            run_model(f"ngram:{path}(unknown='{policy}')", "a c")
    assert run_model(f"ngram:{path}(unknown='omit')", "a c").unknown == (1,)


def test_results_count_what_unknown_words_touch_and_decide(specs: dict[str, str]) -> None:
    results = evaluate(PAIRS, [specs["ngram"]], measure=["PairAccuracy"])
    assert results[0].notes[0] == (
        "unknown words are in 3 of 6 sentences and 2 of 3 pairs, and decide 1 pair, whose sentences differ in them"
    )
    scores = score(PAIRS, specs["ngram"])
    assert scores.unknown_words == {"one/bad": ("zebra",), "both/good": ("zebra",), "both/bad": ("zebra",)}
    # The same from the store, where the model is not asked again.
    assert score(PAIRS, specs["ngram"]).unknown_words == scores.unknown_words
    known = PAIRS.restrict({"known/good", "known/bad"})
    assert "unknown" not in " ".join(evaluate(known, [specs["ngram"]], measure=["PairAccuracy"])[0].notes)


def test_omitted_sentences_have_no_score_and_are_counted(specs: dict[str, str]) -> None:
    spec = f"{specs['ngram']}(unknown='omit')"
    scores = score(PAIRS, spec)
    assert sorted(scores.values) == ["known/bad", "known/good", "one/good"]
    (result,) = measure(PAIRS, scores, ["PairAccuracy"])
    assert result.n == 1
    assert result.notes[0] == (
        "omitted: 3 of 6 sentences, which have words that the model does not know, and with them 2 of 3 pairs"
    )
    (whole,) = evaluate_suites([PAIRS], [f"{specs['ngram']}(unknown='<unk>')"], measures=["PairAccuracy"])
    assert whole.n == 3
    with pytest.raises(ScoreError, match="no sentence"):
        evaluate(PAIRS.restrict({"both/good", "both/bad"}), [spec], measure=["PairAccuracy"])
    rows = score_rows(PAIRS, spec).rows
    assert [row["score"] is None for row in rows] == [False, False, False, True, True, True]
    assert [row["unknown_words"] for row in rows] == ["", "", "", "zebra", "zebra", "zebra"]
    with pytest.raises(ModelError, match=r"'The zebra sleep\.' no score: it does not know 'zebra', and unknown='omit'"):
        judge(["The cats sleep.", "The zebra sleep."], model=spec)


def test_a_refused_sentence_is_named(specs: dict[str, str]) -> None:
    with pytest.raises(
        ModelError, match=r"cannot score sentence '(one/bad|both/good|both/bad)' .* does not know 'zebra'"
    ):
        evaluate(PAIRS, [f"{specs['ngram']}(unknown='refuse')"])


def test_tokens_in_tables_say_whether_they_are_unknown(specs: dict[str, str]) -> None:
    rows = score_rows(PAIRS, specs["ngram"], per="token").rows
    assert {str(row["token"]) for row in rows if row["unknown"]} == {"zebra"}
    assert "unknown" not in score_rows(PAIRS, "uniform", per="token").rows[0]


def test_words_and_regions_in_tables_say_whether_they_are_unknown(specs: dict[str, str]) -> None:
    rows = score_rows(PAIRS, specs["ngram"], per="word").rows
    assert {str(row["word"]) for row in rows if row["unknown"]} == {"zebra", "zebra."}
    assert {str(row["word"]) for row in rows if not row["unknown"]} == {"The", "the", "the.", "cats", "sleep", "sleep."}
    assert "unknown" not in score_rows(PAIRS, "uniform", per="word").rows[0]
    regions = {"who": (0, 9), "what": (10, 15), "end": (15, 16)}
    suite = Suite("regions", (Sentence("a", "The zebra sleep.", regions=regions),))
    rows = score_rows(suite, specs["ngram"], per="region").rows
    assert [(row["text"], row["unknown"]) for row in rows] == [("The zebra", True), ("sleep", False), (".", False)]


def test_the_whole_probability_of_all_unknown_words_does_not_win(specs: dict[str, str]) -> None:
    pair = ["The dogs bark.", "The dogs barks."]
    whole = judge(pair, model="recurrent:{}(unknown='<unk>')".format(load_model("mini-lstm").folder))
    assert whole[1].score > whole[0].score
    for model in ("mini-lstm", "trigram"):
        right, wrong = judge(pair, model=model)
        assert right.score > wrong.score
        assert find_deciding_words([right, wrong]) == ["barks"]
    assert find_deciding_words(judge(["The cats sleep.", "The cats the."], model=specs["ngram"])) == []
    assert find_deciding_words(judge(["The cats sleep."], model=specs["ngram"])) == []


def test_judge_marks_unknown_words(specs: dict[str, str]) -> None:
    run = CliRunner()
    said = run.invoke(app, ["judge", "The cats sleep.", "The cats zebra.", "--model", specs["ngram"]])
    assert "zebra* " in said.stdout
    assert "depends on what words get that the model does not know: zebra" in said.stdout
    assert "* not in the model's vocabulary" in said.stderr
    known = run.invoke(app, ["judge", "The cats sleep.", "The cats the.", "--model", specs["ngram"]])
    assert "*" not in known.stdout + known.stderr.replace("━", "")
    printed = run.invoke(app, ["judge", "The cats sleep.", "The cats zebra.", "--model", specs["ngram"], "--json"])
    content = json.loads(printed.stdout)
    assert content["decided_by_unknown_words"] == ["zebra"]
    assert [token["unknown"] for token in content["sentences"][1]["tokens"]] == [False, False, True, False]


def test_perplexity_counts_unknown_words_as_one_word(specs: dict[str, str], tmp_path: Path) -> None:
    from acceptability.train.corpus import Corpus

    (tmp_path / "text.txt").write_text("The cats zebra.\n")
    corpus = Corpus([tmp_path / "text.txt"])
    default = perplexity(specs["ngram"], corpus)
    assert "unknown='<unk>'" in default.signature
    assert default.perplexity == perplexity(f"{specs['ngram']}(unknown='<unk>')", corpus).perplexity
    assert perplexity(f"{specs['ngram']}(unknown='spelling')", corpus).perplexity > default.perplexity


def test_the_store_keeps_which_tokens_are_unknown() -> None:
    tokens, spans = ("a", "b"), ((0, 1), (2, 3))
    logprobs = np.array([-1, -2], np.float32)
    outputs = [TokenScores("a b", tokens, spans, logprobs, unknown) for unknown in ((), (1,), (0, 1), None)]
    block = encode_block(outputs, b"", "m")
    decoded = decode_block(block, b"", dict.fromkeys(range(4), "a b"), "m")
    assert [decoded[row].unknown for row in range(4)] == [(), (1,), (0, 1), None]
    assert [decoded[row].tokens for row in range(4)] == [tokens] * 4
    assert all(decoded[row].logprobs.tolist() == [-1, -2] for row in range(4))
    spelled = [
        TokenScores("a b", tokens, spans, logprobs, unknown, spelling)
        for unknown, spelling in (((1,), (-3.5,)), ((), ()), ((0, 1), (-1.5, -2.5)), ((0,), ()))
    ]
    block = encode_block(spelled, b"", "m")
    decoded = decode_block(block, b"", dict.fromkeys((0, 1, 2, 3), "a b"), "m")
    assert [decoded[row].spelling_logprobs for row in range(4)] == [(-3.5,), (), (-1.5, -2.5), ()]
    assert [decoded[row].tokens for row in range(4)] == [tokens] * 4
    assert decode_block(block, b"", {2: "a b"}, "m")[2].spelling_logprobs == (-1.5, -2.5)
    with pytest.raises(ScoreError, match="unknown tokens and their spellings differ in number"):
        TokenScores("a b", tokens, spans, logprobs, (0, 1), (-1.0,))
    # As the version before wrote them.
    plain = encode_block([TokenScores("a b", ("a\0", "b"), spans, logprobs)], b"", "m")
    assert plain[4:5] == b"j"
    assert decode_block(plain, b"", {0: "a b"}, "m")[0].unknown is None
    with pytest.raises(ScoreError, match="an unknown token is none of its 2 tokens"):
        TokenScores("a b", tokens, spans, logprobs, (2,))


def test_a_model_that_only_tells_unknown_tokens_is_asked() -> None:
    class Words:
        signature = "words"

        def encode(self, queries):
            return [type("Encoded", (), {"size": 1, "text": query.text})() for query in queries]

        def run(self, batch):
            return [
                TokenScores(encoded.text, ("w",), ((0, len(encoded.text)),), np.array([-1], np.float32))
                for encoded in batch
            ]

        def is_unknown(self, token: str) -> bool:
            return token == "w"

    suite = Suite("s", (Sentence("a", "x"), Sentence("b", "y")), (Contrast("a", "b"),))
    assert score(suite, complete_model(Words())).unknown_words == {"a": ("x",), "b": ("y",)}


def test_kenlm_gives_unknown_words_the_whole_probability(specs: dict[str, str]) -> None:
    pytest.importorskip("kenlm", reason="kenlm is not installed (make install)")
    from acceptability.models.ngram.model import NGram

    path = Path(specs["arpa"].removeprefix("ngram:"))
    # kenlm reads ARPA files too, so that the same model can be asked through both.
    model = NGram(path, "kenlm", "spaces", False, "auto", True, "auto")
    assert "unknown='<unk>'" in model.signature
    (output,) = model.run(model.encode([Query("The cats zebra .")]))
    ours = run_model(f"{specs['arpa']}(unknown='<unk>', eos=True)", "The cats zebra .")
    assert (output.tokens, output.offsets, output.unknown) == (ours.tokens, ours.offsets, (2,))
    assert output.logprobs == pytest.approx(ours.logprobs, abs=1e-4)
    spelled = NGram(path, "kenlm", "spaces", False, "auto", True, "spelling")
    encoded = spelled.encode([Query("The cats zebra .")])
    with pytest.raises(ModelError, match="does not list its words"):
        spelled.run(encoded)


def test_targets_of_contrasts_are_counted_or_left_out(specs: dict[str, str]) -> None:
    suite = PAIRS.restrict({"known/good", "known/bad", "one/good", "one/bad"})
    target = score_target_contrasts(suite, specs["ngram"])
    assert "unknown words are in 1 of 4 sentences and 1 of 2 pairs, and decide 1 pair" in " ".join(target.notes())
    omitted = score_target_contrasts(suite, f"{specs['ngram']}(unknown='omit')")
    assert [exclusion.reason for exclusion in omitted.exclusions] == [
        "the model does not know a word of its target (unknown='omit')"
    ]
    assert len(omitted.suite.contrasts) == 1


def test_fits_to_ratings_count_or_omit_unknown_words(specs: dict[str, str]) -> None:
    texts = [*SENTENCES, "The dog has slept.", "He was reading.", "The cats the dog.", "The zebra sleep."]
    unrated = Suite("unrated", tuple(Sentence(str(number), text) for number, text in enumerate(texts * 2)))
    scores = score(unrated, specs["ngram"])
    # Ratings that rise with the model's scores, as a fit needs.
    ratings = {name: value + 0.1 * int(name) for name, value in scores.values.items()}
    suite = Suite("rated", tuple(replace(item, rating=ratings[item.id]) for item in unrated.sentences))
    fits = link(suite, [specs["ngram"], f"{specs['ngram']}(unknown='omit')"], unigrams="wordfreq:en", folds=2)
    counted, omitted = fits.values()
    assert (counted.n, omitted.n) == (22, 20)
    assert "unknown words are in 2 of 22 sentences" in counted.notes
    assert "unknown words" not in " ".join(omitted.notes)
    assert omitted.notes[0] == "omitted: 2 of 22 sentences, which have words that the model does not know"
    assert [note for note in omitted.notes if note.startswith("omitted")] == [omitted.notes[0]]


def test_a_group_says_how_many_of_its_pairs_unknown_words_decide(specs: dict[str, str]) -> None:
    contrasts = tuple(replace(pair, tags={"kind": kind}) for pair, kind in zip(PAIRS.contrasts, "aba", strict=True))
    results = measure(replace(PAIRS, contrasts=contrasts), score(PAIRS, specs["ngram"]), ["PairAccuracy"], by="kind")
    decided = {result.group: [note for note in result.notes if "unknown" in note] for result in results}
    assert decided.pop(None) == [
        "unknown words are in 3 of 6 sentences and 2 of 3 pairs, and decide 1 pair, whose sentences differ in them"
    ]
    assert decided == {"kind=a": [], "kind=b": ["unknown words decide 1 of 1 pairs"], "macro(kind)": []}


def test_notes_that_differ_between_models_have_their_names(specs: dict[str, str], tmp_path: Path) -> None:
    """Otherwise two lines count unknown words, and nothing says which model does not know them."""
    other = tmp_path / "other.arpa"
    other.write_text(arpa_text(["The zebra sleep .", "The zebra sleeps ."]))
    models = [specs["ngram"], f"ngram:{other}(units='split')"]
    results = evaluate(PAIRS, models, measure=["PairAccuracy"], bootstrap=Bootstrap(0))
    counts = [next(note for note in result.notes if note.startswith("unknown words")) for result in results]
    assert counts[0] != counts[1]
    for result, count in zip(results, counts, strict=True):
        assert f"{result.model}: {count}" in collect_footnotes(results)
    # One model needs no name, nor does a note that is the same for all.
    assert counts[0] in collect_footnotes(results[:1])
    assert counts[0] in collect_footnotes([results[0], replace(results[0], model="x")])
    scores = [score(PAIRS, model) for model in models]
    (comparison,) = compare(PAIRS, scores, measure=["PairAccuracy"])
    (correlation,) = correlate(PAIRS, scores)
    for model_scores, count in zip(scores, counts, strict=True):
        assert f"{model_scores.model} lp(): {count}" in comparison.notes
        assert f"{model_scores.model} lp(): {count}" in correlation.notes


def test_a_suite_in_another_language_is_remarked_on(specs: dict[str, str], causal_dir: Path) -> None:
    german = Suite("german", (Sentence("a", "The Katze schläft ."), Sentence("b", "The Hunde bellen .")))
    assert (
        "4 of 8 words (50%) are unknown to the model: is the suite in a language"
        in score(german, specs["ngram"]).notes[0]
    )
    assert not score(PAIRS.restrict({"known/good", "known/bad"}), specs["ngram"]).notes
    russian = Suite("russian", (Sentence("a", "Кошка спит."), Sentence("b", "Кошка спать.")))
    (note,) = score(russian, f"causal:{causal_dir}").notes
    assert "tokens for 23 characters, so its vocabulary lacks most of them" in note
    assert not score(PAIRS, f"causal:{causal_dir}").notes


@pytest.mark.parametrize("kind", KINDS)
def test_slor_compares_an_unknown_word_with_its_own_share(specs: dict[str, str], kind: str, tmp_path: Path) -> None:
    # The model and the table share the probability of <unk> out by the same spelling, which SLOR then cancels.
    table = tmp_path / "unigrams.tsv"
    table.write_text("token\tlogprob\nthe\t-2.0\ncats\t-4.0\n.\t-3.0\n<unk>\t-5.0\n")
    text = TEXT.get(kind, "the cats zebra.").lower()
    spelled = run_model(specs[kind], text)
    whole = run_model(f"{specs[kind]}(unknown='<unk>')", text)
    reduce = as_reduction(f"slor(unigrams={str(table)!r})")
    assert spelled.logprobs[2] < whole.logprobs[2] - 3
    assert reduce(spelled) == pytest.approx(reduce(whole), abs=1e-5)
    # By words, "zebra." is one, whose point is not unknown.
    by_word = tmp_path / "words.tsv"
    by_word.write_text("word\tcount\nthe\t90\ncats\t9\n")
    reduce = as_reduction(f"norm_lp_sub(unigrams={str(by_word)!r})")
    assert reduce(spelled) == pytest.approx(reduce(whole), abs=1e-4)


def test_a_table_with_a_value_for_each_word_is_left_alone(specs: dict[str, str]) -> None:
    spelled, whole = (run_model(f"{specs['ngram']}{option}", "The cats zebra.") for option in ("", "(unknown='<unk>')"))
    reduce = as_reduction("norm_lp_sub(unigrams='wordfreq:en')")
    assert reduce(whole) - reduce(spelled) == pytest.approx(whole.logprobs[2] - spelled.logprobs[2], abs=1e-4)
