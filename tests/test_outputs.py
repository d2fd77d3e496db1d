"""Outputs in columns are the same as outputs one by one, down to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.api.vocabulary_coverage import UnknownWordCounter, mark_unknown_tokens
from acceptability.errors import ScoreError
from acceptability.models import load_model
from acceptability.outputs import IndexedOutputs, TextView, TokenColumns, index_outputs, make_columns
from acceptability.reductions import LP, SLOR, MeanLP, PenLP, SllnLP, reduce_outputs
from acceptability.store.database import decode_rows, encode_block
from acceptability.types import LabelScores, ModelOutput, Sentence, Suite, TokenScores

Logprobs = st.floats(-1e6, 0, width=32)


@st.composite
def token_scores(draw: st.DrawFn) -> TokenScores:
    count = draw(st.integers(1, 12))
    words = draw(st.lists(st.text("abü’ ", min_size=1, max_size=4), min_size=count, max_size=count))
    ends = np.cumsum(list(map(len, words))).tolist()
    spans = tuple((end - len(word), end) for word, end in zip(words, ends, strict=True))
    logprobs = np.array(draw(st.lists(Logprobs, min_size=count, max_size=count)), np.float32)
    unknown = draw(st.none() | st.sets(st.integers(0, count - 1)).map(lambda chosen: tuple(sorted(chosen))))
    spelled = bool(unknown) and draw(st.booleans())
    spellings = tuple(float(np.float32(draw(Logprobs))) for _ in unknown or ()) if spelled else ()
    return TokenScores("".join(words), tuple(words), spans, logprobs, unknown, spellings)


def fields(output: ModelOutput) -> tuple[object, ...]:
    assert isinstance(output, TokenScores)
    about = output.text, output.tokens, output.offsets, output.unknown, output.spelling_logprobs
    return (*about, output.logprobs.tobytes())


@given(st.lists(token_scores(), min_size=1, max_size=6), st.data())
def test_columns_give_the_same_objects(outputs: list[TokenScores], data: st.DataObject) -> None:
    columns = make_columns(outputs)
    expected = list(map(fields, outputs))
    assert list(map(fields, columns)) == expected
    assert [fields(columns[row]) for row in range(len(columns))] == expected
    rows = data.draw(st.lists(st.integers(0, len(outputs) - 1), min_size=1, max_size=6))
    taken = columns.take(np.array(rows))
    assert list(map(fields, taken)) == [expected[row] for row in rows]
    assert list(map(fields, columns[1:])) == expected[1:]


@given(st.lists(token_scores(), min_size=1, max_size=6))
def test_columns_make_the_block_that_objects_make(outputs: list[TokenScores]) -> None:
    columns = make_columns(outputs)
    assert encode_block(columns, b"keys", "m") == encode_block(outputs, b"keys", "m")
    rows = np.arange(len(outputs))[::-1].copy()
    texts = TextView(lambda number: outputs[number].text, rows)
    decoded = decode_rows(encode_block(columns, b"keys", "m"), b"keys", rows, texts, "m")
    assert decoded is not None
    assert list(map(fields, decoded)) == list(map(fields, outputs[::-1]))


@given(st.lists(token_scores(), min_size=1, max_size=6))
def test_unknown_words_are_counted_alike(outputs: list[TokenScores]) -> None:
    suite = Suite("toy", tuple(Sentence(f"s{index}", "x") for index in range(len(outputs))))
    # The first output twice, as a sentence that occurs twice has it.
    rows = np.array([*range(len(outputs)), 0])
    indices = np.array([*range(len(outputs)), 0])
    one_by_one, in_columns = UnknownWordCounter(suite), UnknownWordCounter(suite)
    one_by_one.add_batch([(int(index), outputs[row]) for index, row in zip(indices, rows, strict=True)])
    in_columns.add_batch(IndexedOutputs(indices, make_columns(outputs), rows))
    assert vars(in_columns) == vars(one_by_one)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=8), st.integers(0, 2**32 - 1))
def test_sums_over_columns_equal_those_over_objects_to_the_last_bit(counts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    outputs = []
    for count in counts:
        # Of very different sizes, so that a sum in another order has other digits.
        logprobs = -(10.0 ** rng.uniform(-12, 12, count)).astype(np.float32)
        outputs.append(TokenScores("x", ("x",) * count, ((0, 1),) * count, logprobs))
    for reduction in (LP(), MeanLP(), PenLP(), SllnLP(0.3)):
        expected = [reduction(output) for output in outputs]
        assert reduce_outputs(reduction, make_columns(outputs)).tolist() == expected


def test_a_sentence_longer_than_the_buffer_is_summed_in_the_same_pieces() -> None:
    logprobs = -(10.0 ** np.random.default_rng(0).uniform(-12, 12, 20_000)).astype(np.float32)
    outputs = [TokenScores("x", ("x",) * 20_000, ((0, 1),) * 20_000, logprobs)]
    assert reduce_outputs(LP(), make_columns(outputs)).tolist() == [LP()(outputs[0])]


def test_a_reduction_that_inherits_from_lp_is_asked_itself() -> None:
    class Doubled(LP):
        def __call__(self, output: ModelOutput) -> float:
            return 2 * super().__call__(output)

    output = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1, -2], np.float32))
    assert reduce_outputs(Doubled(), make_columns([output])).tolist() == [-6.0]
    assert reduce_outputs(SLOR("wordfreq:en"), make_columns([output]))[0] == SLOR("wordfreq:en")(output)


@pytest.mark.parametrize("wrong", [math.nan, -math.inf])
def test_a_log_probability_that_is_not_finite_is_named_with_its_text(wrong: float) -> None:
    logprobs = np.array([-1, -2, wrong], np.float32)
    spans = np.array([[0, 1]] * 3, np.uint32)
    with pytest.raises(ScoreError, match="'b': the model gave a log-probability that is not finite"):
        TokenColumns(["a", "b"], np.array([1, 2]), ["x"] * 3, spans, logprobs)


def test_columns_without_tokens_or_of_different_lengths_are_refused() -> None:
    spans, logprobs = np.array([[0, 1]], np.uint32), np.array([-1], np.float32)
    with pytest.raises(ScoreError, match="'b': the model scored no token of it"):
        TokenColumns(["a", "b"], np.array([1, 0]), ["x"], spans, logprobs)
    for texts, counts, tokens in ((["a"], [2], ["x"]), (["a"], [1], ["x", "y"]), (["a", "b"], [1], ["x"])):
        with pytest.raises(ScoreError, match="differ in length"):
            TokenColumns(texts, np.array(counts), tokens, spans, logprobs)


def test_a_batch_lends_its_outputs_to_several_sentences() -> None:
    outputs = [LabelScores(text, (0.0, 1.0)) for text in "abc"]
    batch = index_outputs([(4, outputs[0]), (1, outputs[1]), (2, outputs[2])])
    # Query 1 has the sentences 10 and 11, query 2 the sentence 12, query 4 the sentence 15.
    starts, members = np.array([0, 0, 2, 3, 3, 4]), np.array([10, 11, 12, 15])
    expected = [(15, outputs[0]), (10, outputs[1]), (11, outputs[1]), (12, outputs[2])]
    spread = batch.spread(starts, members)
    assert list(spread) == expected == [spread[position] for position in range(4)]
    assert list(spread.listed_outputs) == [output for _, output in expected]
    assert index_outputs(spread) is spread
    with pytest.raises(ValueError, match="2 outputs for 1 queries"):
        IndexedOutputs(np.array([1]), outputs[:2])


def test_tokens_are_marked_as_unknown_where_the_output_does_not_say() -> None:
    model = load_model("trigram")
    outputs = [
        TokenScores("cats xqzw", ("cats", "xqzw"), ((0, 4), (5, 9)), np.array([-1, -2], np.float32), unknown)
        for unknown in (None, ())
    ]
    marked = mark_unknown_tokens(IndexedOutputs(np.arange(2), make_columns(outputs)), model)
    assert [output.unknown for _, output in marked if isinstance(output, TokenScores)] == [(1,), ()]
