"""Texts that are split all at once have the words that they have one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import QueryError
from acceptability.models import load_model
from acceptability.models.ngram.word_columns import split_texts
from acceptability.text.words import SPECIAL_WORDS, SPLIT_RULES, Vocabulary
from acceptability.types import Query

PIECES = st.sampled_from(
    ["cats", "don't", "U.S.", "1,000", "…", "’", " ", "\n", "\u3000", "\x1c", "ü", "\U0001f600", "<unk>"]
)
TEXTS = st.lists(PIECES | st.characters(), max_size=8).map("".join)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("rule", SPLIT_RULES)
@given(texts=st.lists(TEXTS, max_size=5))
def test_all_texts_are_split_as_each_is(rule: str, lower: bool, texts: list[str]) -> None:
    vocabulary = Vocabulary((*SPECIAL_WORDS, "cats", "do", "n't", "ü"), rule, lower=lower)
    split = split_texts(texts, vocabulary)
    expected = [vocabulary.tokenize(text) for text in texts]
    assert split.counts.tolist() == [len(words) for words, _ in expected]
    assert split.words.tolist() == [word for words, _ in expected for word in words]
    assert list(map(tuple, split.spans.tolist())) == [span for _, spans in expected for span in spans]
    assert split.word_ids.tolist() == vocabulary.to_ids(split.words.tolist())


@pytest.mark.parametrize(
    ("spec", "queries", "index", "problem"),
    [
        ("trigram", [Query("Cats sleep."), Query(" ")], 1, "no word in it"),
        ("trigram", [Query("Cats."), Query("xqzw zzqx"), Query(" ")], 1, "knows none of its words"),
        ("trigram", [Query("Cats sleep.", target=(4, 5))], 0, "no word in its target"),
        ("trigram(unknown='refuse')", [Query("Cats."), Query("Cats xqzw zzqx.")], 1, "know 'xqzw', 'zzqx'"),
    ],
)
def test_the_first_wrong_query_is_named(spec: str, queries: list[Query], index: int, problem: str) -> None:
    with pytest.raises(QueryError, match=problem) as caught:
        load_model(spec).encode(queries)
    assert caught.value.index == index


def test_an_unknown_word_of_the_context_is_not_refused() -> None:
    (output,) = load_model("trigram(unknown='refuse')").run(
        load_model("trigram(unknown='refuse')").encode([Query("Cats sleep.", "Xqzw.")])
    )
    assert output.unknown == ()


def test_parts_of_an_encoding_score_like_the_whole() -> None:
    model = load_model("trigram(eos=True)")
    encoded = model.encode([Query("Cats sleep."), Query("The dog xqzws.", "Now."), Query("He left.", target=(0, 2))])
    whole = [(output.tokens, output.offsets, output.logprobs.tolist()) for output in model.run(encoded)]
    parts = model.run([encoded[2], encoded[0], encoded[1]])
    assert [(output.tokens, output.offsets, output.logprobs.tolist()) for output in parts] == [
        whole[2],
        whole[0],
        whole[1],
    ]
    assert whole[0][0][-1] == "</s>"
    # A target does not contain the end.
    assert whole[2][0] == ("He",)
