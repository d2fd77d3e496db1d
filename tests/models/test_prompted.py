"""Judgement by asking, against a plain computation written here."""

from __future__ import annotations

import shutil
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from acceptability import Contrast, Sentence, Suite, evaluate, load_model, load_suite, score
from acceptability.errors import ModelError, QueryError, SpecError, SuiteError
from acceptability.models import list_named_models
from acceptability.models.prompted import DEFAULT_TEMPLATES, read_templates
from acceptability.specs import fingerprint
from acceptability.store.scores import ScoreStore
from acceptability.types import LabelScores, Query, TokenScores
from tiny import SENTENCES, WORDINGS

torch = pytest.importorskip("torch")

GOOD, BAD, OTHER = "The dog chased the cats.", "The dog chase the cats.", "The the dog chased."
PAIR = Suite("pair", (Sentence("good", GOOD), Sentence("bad", BAD)), (Contrast("good", "bad"),))
STAR = Suite(
    "star",
    (Sentence("good", GOOD), Sentence("bad", BAD), Sentence("other", OTHER)),
    (Contrast("good", "bad"), Contrast("good", "other")),
)


class Plain:
    """Log-probabilities from transformers alone: one text, no batch, a full log-softmax."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.net = AutoModelForCausalLM.from_pretrained(folder).eval()

    def after(self, prompt: str, text: str) -> list[float]:
        """Return the log-probability of each token of a text after a prompt, which it is appended to as it is."""
        before = [self.tokenizer.bos_token_id, *self.tokenizer(prompt, add_special_tokens=False)["input_ids"]]
        ids = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        with torch.no_grad():
            table = self.net(torch.tensor([before + ids])).logits[0].log_softmax(-1)
        return [float(table[len(before) + index - 1, token]) for index, token in enumerate(ids)]

    def p(self, prompt: str, *answers: str) -> float:
        return sum(np.exp(sum(self.after(prompt, answer))) for answer in answers)


@pytest.fixture(scope="module")
def plain(causal_dir: Path) -> Plain:
    return Plain(causal_dir)


@pytest.fixture
def asking(causal_dir: Path, wordings: Path):
    def make_spec(method: str, template: str = "auto") -> str:
        options = f"method={method!r}, template={template!r}, templates={str(wordings)!r}"
        return f"prompted:causal:{causal_dir}({options})"

    return make_spec


def both(plain: Plain, sentence: str) -> float:
    fine = np.log(plain.p(f"{sentence} Fine?", " sleep", " I") / plain.p(f"{sentence} Fine?", " dog"))
    odd = np.log(plain.p(f"{sentence} Odd?", " dog") / plain.p(f"{sentence} Odd?", " sleep", " I"))
    return (fine + odd) / 2


def lines(plain: Plain, sentence: str) -> float:
    prompt = f"{sentence}\nSo:\n"
    return np.log(plain.p(prompt, "the") / plain.p(prompt, "it"))


def two(plain: Plain, sentence: str, rival: str) -> float:
    first, second = f"{sentence} {rival} Best:", f"{rival} {sentence} Best:"
    names_first = np.log(plain.p(first, " A") / plain.p(first, " The dog", " I"))
    names_second = np.log(plain.p(second, " The dog", " I") / plain.p(second, " A"))
    return (names_first + names_second) / 2


def test_yes_no_averages_a_question_and_its_opposite(plain: Plain, asking) -> None:
    suite = Suite("s", tuple(Sentence(str(index), text) for index, text in enumerate(SENTENCES)))
    scores = score(suite, asking("yes_no"))
    expected = [both(plain, text) for text in SENTENCES]
    assert np.ptp(expected) > 0.1, "a test that cannot fail"
    assert scores.of(map(str, range(len(SENTENCES)))) == pytest.approx(expected, abs=1e-4)
    assert scores.reduction == "log_odds()"


def test_templates_are_averaged_with_equal_weights(plain: Plain, asking) -> None:
    scores = score(PAIR, asking("yes_no", "all"))
    assert scores["good"] == pytest.approx((both(plain, GOOD) + lines(plain, GOOD)) / 2, abs=1e-4)
    assert score(PAIR, asking("yes_no", "lines"))["bad"] == pytest.approx(lines(plain, BAD), abs=1e-4)
    assert dict(score(PAIR, asking("yes_no", "both+lines")).values) == dict(scores.values)


def test_one_question_gives_the_probability_of_yes(plain: Plain, asking) -> None:
    prompt = f"{GOOD}\nSo:\n"
    yes, no = plain.p(prompt, "the"), plain.p(prompt, "it")
    assert score(PAIR, asking("yes_no", "lines"), "p_acceptable")["good"] == pytest.approx(yes / (yes + no), abs=1e-5)


def test_which_averages_both_orders(plain: Plain, asking) -> None:
    scores = score(PAIR, asking("which"))
    assert scores["good"] == pytest.approx(two(plain, GOOD, BAD), abs=1e-4)
    assert abs(scores["good"]) > 0.01, "a test that cannot fail"
    assert scores["good"] == pytest.approx(-scores["bad"], abs=1e-5)


def test_the_order_of_sentences_and_contrasts_changes_nothing(asking) -> None:
    expected = dict(score(STAR, asking("which")).values)
    for sentences in permutations(STAR.sentences):
        with ScoreStore() as store:
            store.path.unlink()
        turned = Suite("turned", sentences, tuple(Contrast(each.worse, each.better) for each in STAR.contrasts[::-1]))
        assert dict(score(turned, asking("which")).values) == pytest.approx(expected, abs=1e-4)


def test_a_sentence_with_several_rivals_gets_the_mean(plain: Plain, asking) -> None:
    scores = score(STAR, asking("which"))
    assert scores["good"] == pytest.approx((two(plain, GOOD, BAD) + two(plain, GOOD, OTHER)) / 2, abs=1e-4)
    assert scores["other"] == pytest.approx(two(plain, OTHER, GOOD), abs=1e-4)


def test_the_sentence_is_scored_in_its_frame_and_the_frame_is_not(plain: Plain, asking) -> None:
    model = load_model(asking("in_template_lp"))
    (scores,) = model.run(model.encode([Query(GOOD)]))
    assert isinstance(scores, TokenScores)
    assert scores.logprobs == pytest.approx(plain.after("She slept:\n", GOOD), abs=1e-4)
    assert scores.offsets[0][0] == 0
    assert scores.offsets[-1][1] == len(GOOD)
    after = np.mean([plain.after("She slept:\n", GOOD), plain.after("He was reading\n", GOOD)], axis=0)
    assert score(PAIR, asking("in_template_lp", "all"))["good"] == pytest.approx(after.sum(), abs=1e-4)
    mean = score(PAIR, asking("in_template_lp", "all"), "mean_lp")
    assert mean["good"] == pytest.approx(after.mean(), abs=1e-4)


def test_a_context_comes_between_frame_and_sentence_and_regions_can_be_scored(plain: Plain, asking) -> None:
    model = load_model(asking("in_template_lp"))
    (scores,) = model.run(model.encode([Query("the cats.", "The dog chased", (4, 9))]))
    assert scores.logprobs == pytest.approx(plain.after("She slept:\nThe dog chased the", " cats."), abs=1e-4)


def test_frames_with_different_tokenizations_have_no_mean(causal_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "frames.toml"
    path.write_text(WORDINGS.replace("She slept:\n{sentence}", "She slept: {sentence}"), encoding="utf-8")
    model = load_model(
        f"prompted:causal:{causal_dir}(method='in_template_lp', template='all', templates={str(path)!r})"
    )
    with pytest.raises(ModelError, match="differently after different frames"):
        model.run(model.encode([Query("sleep")]))


def test_the_ensemble_is_a_majority_vote(plain: Plain, asking) -> None:
    def lp(frame: str, sentence: str) -> float:
        return sum(plain.after(frame, sentence))

    voters = [
        lambda text: both(plain, text),
        lambda text: lines(plain, text),
        lambda text: lp("She slept:\n", text),
        lambda text: lp("He was reading\n", text),
    ]
    seen = set()
    for good, bad in permutations(SENTENCES[:4], 2):
        suite = Suite("two", (Sentence("good", good), Sentence("bad", bad)), (Contrast("good", "bad"),))
        margin = np.mean([np.sign(voter(good) - voter(bad)) for voter in voters])
        scores = score(suite, asking("ensemble"))
        assert scores["good"] == pytest.approx(margin)
        assert scores["bad"] == -scores["good"]
        (result,) = evaluate(suite, [asking("ensemble")], measure=["PairAccuracy(ties=0.5)"])
        assert result.value == (np.sign(margin) + 1) / 2
        seen.add(result.value)
    assert len(seen) > 1, "a test that cannot fail"


def test_an_ensemble_of_one_votes_as_its_member_does(asking) -> None:
    for template, method in (("lines", "yes_no"), ("read", "in_template_lp")):
        scores = score(PAIR, asking(method, template))
        vote = score(PAIR, asking("ensemble", template))
        assert vote["good"] == np.sign(scores["good"] - scores["bad"])


def test_batches_change_nothing_and_shared_queries_are_scored_once(asking, monkeypatch) -> None:
    model = load_model(asking("which"))
    queries = [Query(GOOD, rival=BAD), Query(BAD, rival=GOOD), Query(OTHER, rival=GOOD)]
    alone = [model.run(model.encode([query]))[0].logits for query in queries]
    coded = model.encode(queries)
    assert [each.logits for each in model.run(coded)] == [pytest.approx(each, abs=1e-4) for each in alone]
    sizes = []
    inner = type(model.inner)
    original = inner.run
    monkeypatch.setattr(inner, "run", lambda self, batch: sizes.append(len(batch)) or original(self, batch))
    model.run(coded[:2])
    assert sizes == [6]
    assert coded[0].size == sum(part.size for part in coded[0].parts.values())


def test_stored_scores_are_not_computed_again(asking, monkeypatch) -> None:
    first = dict(score(STAR, asking("which")).values)
    monkeypatch.setattr(
        type(load_model(asking("which")).inner), "encode", lambda *_: pytest.fail("the model was asked")
    )
    assert dict(score(STAR, asking("which")).values) == first


def test_a_query_without_a_rival_keeps_its_key() -> None:
    for query in (Query("a"), Query("a", "b"), Query("a", "b", (0, 1))):
        parts = [query.text, query.context, *map(str, query.target or ())]
        assert query.key.hex() == fingerprint((part.encode() for part in parts), digits=32)
    assert Query("Cats sleep.").key.hex() == "2881ae9a79ae37e6b1f6e80c7a59f258"
    keys = {Query("a", rival=rival).key for rival in ("", "b", "c")} | {Query("a", "b").key, Query("a", "", (0, 1)).key}
    assert len(keys) == 5


def test_the_signature_names_model_method_and_wordings(causal_dir: Path, wordings: Path, tmp_path: Path) -> None:
    inner = load_model(f"causal:{causal_dir}").signature
    ours = load_model(f"prompted:causal:{causal_dir}")
    assert ours.signature.startswith(f"prompted:{inner}(method='yes_no', language='en', template='plain@")
    theirs = load_model(f"prompted:causal:{causal_dir}(templates={str(wordings)!r})")
    (tmp_path / "copy.toml").write_text(WORDINGS, encoding="utf-8")
    copied = load_model(f"prompted:causal:{causal_dir}(templates={str(tmp_path / 'copy.toml')!r})")
    (tmp_path / "other.toml").write_text(WORDINGS.replace("Fine?", "Good?"), encoding="utf-8")
    other = load_model(f"prompted:causal:{causal_dir}(templates={str(tmp_path / 'other.toml')!r})")
    assert theirs.signature == copied.signature
    assert len({ours.signature, theirs.signature, other.signature}) == 3


def test_a_signature_reads_back_and_other_wordings_are_refused() -> None:
    model = load_model("prompted:uniform(template='plain+labels')")
    assert model.signature.startswith("prompted:uniform(vocabulary=50000)(method='yes_no', ")
    assert load_model(model.signature).signature == model.signature
    with pytest.raises(ModelError, match="not 123: their wordings differ"):
        load_model("prompted:uniform(template='plain@123')")


def test_the_last_brackets_belong_to_the_prompting(causal_dir: Path) -> None:
    model = load_model(f"prompted:causal:{causal_dir}(bos=None)(method='which')")
    assert (model.inner.bos, model.method) == (None, "which")
    assert load_model(f"prompted:causal:{causal_dir}(bos=None)()").inner.bos is None
    with pytest.raises(SpecError, match="unexpected keyword argument 'bos'"):
        load_model(f"prompted:causal:{causal_dir}(bos=None)")


def test_our_templates_are_complete_and_any_model_can_be_prompted(arpa: Path) -> None:
    counts: dict[tuple[str, str], int] = {}
    for each in read_templates(DEFAULT_TEMPLATES):
        counts[each.method, each.language] = counts.get((each.method, each.language), 0) + 1
    assert {key: counts[key, "en"] for key in ("yes_no", "which", "in_template_lp")} == {
        "yes_no": 3,
        "which": 2,
        "in_template_lp": 3,
    }
    suite = Suite("s", (Sentence("a", "The cats sleep."), Sentence("b", "The cats since.")), (Contrast("a", "b"),))
    for method in ("yes_no", "which", "in_template_lp", "ensemble"):
        for language in ("en", "ja", "zh"):
            options = f"method={method!r}, language={language!r}, template='all'"
            scores = score(suite, f"prompted:ngram:{arpa}({options})")
            assert len(scores.values) == 2
            assert load_model(f"prompted:uniform({options})").templates


def test_a_masked_model_scores_the_answers(masked_dir: Path, wordings: Path) -> None:
    scores = score(PAIR, f"prompted:masked:{masked_dir}(template='lines', templates={str(wordings)!r})")
    masked = load_model(f"masked:{masked_dir}")
    queries = [Query(answer, f"{GOOD}\nSo:\n") for answer in ("the", "it")]
    yes, no = (float(each.logprobs.sum()) for each in masked.run(masked.encode(queries)))
    assert scores["good"] == pytest.approx(yes - no, abs=1e-4)


def test_a_length_baseline_has_no_opinion_on_yes_and_no() -> None:
    assert dict(score(PAIR, "prompted:uniform").values) == {"good": 0, "bad": 0}


CHAT = (
    "{{ bos_token }}{{ date_string or strftime_now('%d %b %Y') }}"
    "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<me>\n{% endif %}"
)


def test_a_chat_template_makes_the_question_a_turn(causal_dir: Path, wordings: Path, tmp_path: Path) -> None:
    folder = tmp_path / "chat"
    shutil.copytree(causal_dir, folder)
    (folder / "chat_template.jinja").write_text(CHAT)
    plain = Plain(folder)
    prompt = f"01 Jan 2025<user>{GOOD}\nSo:\n\n<me>\n"
    expected = np.log(plain.p(prompt, "the") / plain.p(prompt, "it"))
    options = f"template='lines', templates={str(wordings)!r}"
    asked = score(PAIR, f"prompted:causal:{folder}({options}, chat=True)")
    assert asked["good"] == pytest.approx(expected, abs=1e-4)
    assert asked["good"] != pytest.approx(score(PAIR, f"prompted:causal:{folder}({options})")["good"], abs=1e-4)
    assert "chat=True" in asked.signature


def test_chat_without_a_chat_template_is_an_error(causal_dir: Path, wordings: Path) -> None:
    with pytest.raises(ModelError, match="has no chat template; remove chat=True"):
        score(PAIR, f"prompted:causal:{causal_dir}(templates={str(wordings)!r}, chat=True)")
    with pytest.raises(ModelError, match=r"needs the chat template of a causal model; uniform.* has none"):
        load_model("prompted:uniform(chat=True)")
    with pytest.raises(ModelError, match="has no question"):
        load_model(f"prompted:causal:{causal_dir}(method='in_template_lp', chat=True)")


@pytest.mark.parametrize("method", ["which", "ensemble"])
def test_a_sentence_without_a_rival_is_an_error(asking, method: str) -> None:
    with pytest.raises(SuiteError, match=r"suite 's': sentence 'a' is in no contrast.*judges single sentences"):
        score(Suite("s", (Sentence("a", GOOD),)), asking(method))
    with pytest.raises(SuiteError, match="sentence 'alone' is in no contrast"):
        score(Suite("s", (*PAIR.sentences, Sentence("alone", OTHER)), PAIR.contrasts), asking(method))
    with pytest.raises(QueryError, match="there is none"):
        load_model(asking(method)).encode([Query(GOOD)])


def test_questions_are_about_whole_sentences(asking) -> None:
    suite = Suite("s", (Sentence("a", GOOD, regions={"verb": (8, 14)}),))
    with pytest.raises(ModelError, match="cannot score sentence 'a'.*not regions or continuations"):
        score(suite, asking("yes_no"), region="verb")


def test_a_sentence_that_is_too_long_with_its_prompt_is_named(asking) -> None:
    suite = Suite("s", (Sentence("short", GOOD), Sentence("long", "The cats sleep. " * 15 + "The end.")))
    with pytest.raises(
        ModelError, match="cannot score sentence 'long'.*with the method yes_no, it has .* reads at most 64"
    ):
        score(suite, asking("yes_no"))


def test_a_classifier_cannot_be_prompted(classifier_dir: Path) -> None:
    with pytest.raises(ModelError, match="a classifier judges whole sentences"):
        score(PAIR, f"prompted:classifier:{classifier_dir}")

    class Labels:
        signature = "labels"

        def encode(self, queries):
            return load_model("uniform").encode(queries)

        def run(self, batch):
            return [LabelScores(each.query.text, (0.0, 0.0)) for each in batch]

    model = replace(load_model("prompted:uniform"), inner=Labels())
    with pytest.raises(ModelError, match="labels gives no log-probabilities of tokens"):
        model.run(model.encode([Query(GOOD)]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("method='maybe'", "method is 'maybe'; expected one of 'yes_no', 'which', 'in_template_lp', 'ensemble'"),
        ("chat=1", "chat is 1; expected True or False"),
        ("template='plian'", "no template named 'plian' in prompts.toml. Did you mean 'plain'.*plain, speaker, labels"),
        ("template=3", "template is 3; expected a text"),
        ("templates=False", "templates is False; expected a text"),
        ("language='tlh'", "no template of yes_no for language 'tlh'; its languages: en, ja, zh"),
        ("templates='nowhere.toml'", "cannot read the templates nowhere.toml: No such file"),
    ],
)
def test_invalid_options_are_refused(options: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_model(f"prompted:uniform({options})")


def test_a_missing_model_is_an_error() -> None:
    with pytest.raises(ModelError, match="prompted: which model"):
        load_model("asking(method='yes_no')")


ONE = """
[[template]]
method = "yes_no"
language = "en"
name = "one"
[[template.ask]]
text = "{sentence}?"
good = ["Yes"]
bad = ["No"]
"""
FRAME = """
[[template]]
method = "in_template_lp"
language = "en"
name = "one"
[[template.ask]]
text = "Fine: {sentence}"
"""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name = ", "is not valid TOML"),
        ("", r"expected \[\[template\]\] tables and nothing else; found none"),
        ("title = 'x'\n" + ONE, "nothing else; found title, template"),
        ("template = [3]", "template 1: found 3; expected a table with method, language, name, ask"),
        (ONE.replace('"yes_no"', '"yesno"'), "template 1: method is 'yesno'; expected one of 'yes_no'"),
        (ONE.replace("language", "langage"), "unknown field 'langage'. Did you mean 'language'"),
        (ONE.replace('language = "en"\n', ""), "template 1: it has no language"),
        (ONE.replace('"one"', '"all"'), "name is 'all'; expected letters"),
        (ONE.replace('"one"', '"a+b"'), r"name is 'a\+b'; expected letters"),
        (ONE.replace('"en"', "3"), "language is 3; expected a text"),
        (ONE.split("[[template.ask]]")[0] + "ask = []", r"ask is \[\]; expected \[\[template.ask\]\] tables"),
        (ONE.replace("{sentence}", "it"), r"template 1 \(one\): the text of yes_no must have {sentence} once each"),
        (ONE.replace("{sentence}", "{sentence} {first}"), "nothing else in braces"),
        (ONE.replace("{sentence}", "{sentence} {sentence}"), "once each"),
        (ONE.replace('["Yes"]', '"Yes"'), "good is 'Yes'; expected a list of answers"),
        (ONE.replace('["Yes"]', "[]"), r"good is \[\]; expected a list of answers"),
        (ONE.replace('["Yes"]', "[1]"), "good is 1; expected a text"),
        (ONE.replace('["Yes"]', '[" Yes"]'), "the answer ' Yes' has spaces around it"),
        (ONE.replace('["Yes"]', '["No"]'), "an answer is listed twice"),
        (ONE.replace('bad = ["No"]', ""), "it has no bad; expected text, good, bad"),
        (ONE.replace("yes_no", "which"), "unknown field 'good'.* Expected text, first, second"),
        (ONE + ONE, "two templates of yes_no in 'en' have the name 'one'"),
        (FRAME.replace("{sentence}", "{sentence}!"), r"must end in {sentence}, after a space or a new line"),
        (FRAME.replace(" {sentence}", "{sentence}"), r"must end in {sentence}, after a space or a new line"),
        (FRAME + '[[template.ask]]\ntext = "So: {sentence}"', "has one wording per template"),
    ],
)
def test_invalid_templates_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ModelError, match=message) as caught:
        load_model(f"prompted:uniform(templates={str(path)!r})")
    assert "mine.toml" in str(caught.value)


def test_braces_in_a_sentence_are_not_placeholders(asking) -> None:
    model = load_model(asking("which"))
    (asked,) = model.encode([Query("The {second} cat.", rival="A {first} dog.")])
    assert {part.text[: part.target[0]] for part in asked.parts} == {
        "The {second} cat. A {first} dog. Best:",
        "A {first} dog. The {second} cat. Best:",
    }


@pytest.mark.slow
@pytest.mark.skipif(not list_named_models()["smollm2-135m"].is_installed(), reason="smollm2-135m is not installed")
@pytest.mark.parametrize(
    ("method", "accuracy"),
    [("in_template_lp", 0.917), ("which", 0.604), ("yes_no", 0.562)],
)
def test_smollm2_on_the_starter_suite(method: str, accuracy: float) -> None:
    """Every eighth pair. So small a model has 94 % by log-probability, and answers questions little above chance."""
    starter = load_suite("starter")
    contrasts = starter.contrasts[::8]
    wanted = {name for each in contrasts for name in (each.better, each.worse)}
    sample = Suite("starter-sample", tuple(each for each in starter.sentences if each.id in wanted), contrasts)
    (result,) = evaluate(sample, [f"prompted:smollm2-135m(method={method!r})"], measure=["PairAccuracy"])
    assert result.n == 48
    assert result.value == pytest.approx(accuracy, abs=0.045)
