"""Entropies, ranks and alternatives, against plain loops; models without distributions say so in one line."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from acceptability import Query, TokenPredictions, TokenScores, load_model
from acceptability.errors import ModelError
from acceptability.models.ngram.arpa import Arpa
from acceptability.models.predictions import PredictionStats
from acceptability.models.predictions.word_predictors import BackoffDistributions
from acceptability.store.scores import ScoreStore
from faulty_server import Faulty
from tiny import SENTENCES

torch = pytest.importorskip("torch")

QUERIES = [Query(text) for text in SENTENCES] + [Query("She sleeps.", "The cats chased a dog.")]
TOLERANCE = 1e-4


def run(model: Any, queries: list[Query] = QUERIES) -> list[Any]:
    return list(model.run(model.encode(queries)))


def predict(model: Any, top: int = 5, queries: list[Query] = QUERIES) -> list[TokenPredictions]:
    return run(model.as_predictor(top), queries)


def plain_net(model: Any, kind: str) -> Any:
    import transformers

    return getattr(transformers, kind).from_pretrained(model.files.folder, dtype=torch.float32).eval()


def check_token(found: TokenPredictions, at: int, logprobs: Any, target: int) -> None:
    """Compare what was kept of one distribution with the distribution itself."""
    probabilities = logprobs.exp()
    assert found.entropies[at] == pytest.approx(-float((probabilities * logprobs).sum()), abs=TOLERANCE)
    better = logprobs > logprobs[target]
    assert found.ranks[at] == int(better.sum()) + 1
    assert found.cumulative[at] == pytest.approx(float(probabilities[better].sum() + probabilities[target]), abs=1e-4)
    best = logprobs.topk(found.top_logprobs.shape[1])
    np.testing.assert_allclose(found.top_logprobs[at], best.values.numpy(), atol=TOLERANCE)


@pytest.mark.parametrize("is_trie", [True, False])
def test_causal_models_predict_as_a_plain_loop_does(causal_dir: Path, is_trie: bool, monkeypatch) -> None:
    model = load_model(f"causal:{causal_dir}")
    if not is_trie:
        from acceptability.models.hf.causal_forward import PaddedCausalPath

        model = load_model(f"causal:{causal_dir}(device='cpu')")
        monkeypatch.setitem(vars(model), "forward", PaddedCausalPath(plain_net(model, "AutoModelForCausalLM")))
    net = plain_net(model, "AutoModelForCausalLM")
    for query, scored, found in zip(QUERIES, run(model), predict(model), strict=True):
        np.testing.assert_allclose(found.logprobs, scored.logprobs, atol=1e-5)
        assert (found.tokens, found.offsets) == (scored.tokens, scored.offsets)
        (encoded,) = model.encode_each([query])
        with torch.inference_mode():
            table = net(torch.tensor([encoded.ids])).logits[0].log_softmax(1)
        for at, position in enumerate(encoded.scored):
            check_token(found, at, table[position - 1], encoded.ids[position])
            after = table[position]
            assert found.entropies_after[at] == pytest.approx(-float((after.exp() * after).sum()), abs=TOLERANCE)
            best = int(table[position - 1].argmax())
            text = model.files.tokenizer.decode([best])
            # A part of a character is shown as the vocabulary writes it.
            assert found.top_tokens[at][0] == (model.files.token_names[best] if "�" in text else text)


def test_nothing_is_predicted_after_an_end_token(causal_dir: Path) -> None:
    (found,) = predict(load_model(f"causal:{causal_dir}(eos=True)"), queries=QUERIES[:1])
    assert found.tokens[-1] == "<|end|>"
    assert math.isnan(found.entropies_after[-1])
    assert np.isfinite(found.entropies_after[:-1]).all()


def test_with_trailing_spaces_a_word_is_expected_among_words_alone(causal_dir: Path) -> None:
    model = load_model(f"causal:{causal_dir}(spaces='trailing')")
    net = plain_net(model, "AutoModelForCausalLM")
    opening = model.word_opening_ids
    for query, scored, found in zip(QUERIES, run(model), predict(model), strict=True):
        np.testing.assert_allclose(found.logprobs, scored.logprobs, atol=1e-4)
        (encoded,) = model.encode_each([query])
        with torch.inference_mode():
            table = net(torch.tensor([encoded.ids])).logits[0].log_softmax(1)
        for at, position in enumerate(encoded.scored):
            own, target = table[position - 1], encoded.ids[position]
            if target in opening:
                own = own[opening].log_softmax(0)
                target = int(np.searchsorted(opening, target))
            check_token(found, at, own, target)


def test_masked_models_predict_what_is_masked(masked_dir: Path) -> None:
    for options in ("", "(variant='word_l2r')"):
        model = load_model(f"masked:{masked_dir}{options}")
        net = plain_net(model, "AutoModelForMaskedLM")
        mask = model.files.tokenizer.mask_token_id
        # A plain pass for each token takes long enough for a few sentences.
        few = [*QUERIES[:2], QUERIES[-1]]
        for query, scored, found in zip(few, run(model, few), predict(model, 5, few), strict=True):
            np.testing.assert_allclose(found.logprobs, scored.logprobs, atol=1e-5)
            assert np.isnan(found.entropies_after).all()
            (encoded,) = model.encode_each([query])
            for at, (position, end) in enumerate(zip(encoded.scored, encoded.mask_ends, strict=True)):
                ids = list(encoded.ids)
                ids[position : end + 1] = [mask] * (end + 1 - position)
                with torch.inference_mode():
                    logprobs = net(torch.tensor([ids])).logits[0, position].log_softmax(0)
                check_token(found, at, logprobs, encoded.ids[position])


@pytest.mark.parametrize("options", ["", "(eos=True)"])
def test_recurrent_models_predict_the_next_word(recurrent_dir: Path, options: str) -> None:
    model = load_model(f"recurrent:{recurrent_dir}{options}")
    for query, scored, found in zip(QUERIES, run(model), predict(model), strict=True):
        np.testing.assert_allclose(found.logprobs, scored.logprobs, atol=1e-4)
        (encoded,) = model.encode([query])
        ids = [*encoded.word_ids, 2]
        states = model.compute_last_states([encoded.word_ids])
        with torch.inference_mode():
            table = model.net.output.all_logprobs(states, model.net.table)
        positions = [*encoded.scored_positions, *([len(encoded.words)] if options else [])]
        for at, position in enumerate(positions):
            check_token(found, at, table[position], ids[position])
        assert math.isnan(found.entropies_after[-1]) == bool(options)


def test_an_arpa_model_predicts_by_its_own_probabilities(arpa: Path) -> None:
    model = load_model(f"ngram:{arpa}")
    predictor = model.as_predictor(3)
    backend = Arpa(arpa)
    for query, scored, found in zip(QUERIES[:3], run(model, QUERIES[:3]), run(predictor, QUERIES[:3]), strict=True):
        np.testing.assert_allclose(found.logprobs, scored.logprobs, atol=1e-6)
        (encoded,) = model.encode([query])
        history = ["<s>"]
        for at, word in enumerate(encoded.words):
            own = {other: backend.logprob(other, history) for other in predictor.words if other != "<s>"}
            logprobs = torch.tensor(list(own.values()), dtype=torch.float64).log_softmax(0)
            known = word if word in own else "<unk>"
            check_token(found, at, logprobs, list(own).index(known))
            assert "<s>" not in found.top_tokens[at]
            history.append(known)


def test_a_trained_ngram_model_predicts_by_its_own_probabilities() -> None:
    model = load_model("trigram")
    distributions = BackoffDistributions(model.table, 1)
    words = model.vocabulary.to_ids(["The", "keys", "to", "the"])
    for history in ([], [1], [1, *words[:1]], [1, *words], [0, words[0]]):
        # The table's own search, word by word.
        rows = np.concatenate([[*history, word] for word in range(model.table.size)])
        starts = np.zeros(len(rows), bool)
        starts[:: len(history) + 1] = True
        expected = model.table.logprobs(rows, starts)[len(history) :: len(history) + 1].astype(np.float64)
        expected[1] = -np.inf
        expected -= np.log(np.exp(expected).sum())
        found = distributions.compute(history)
        assert np.isneginf(found[1])
        np.testing.assert_allclose(np.delete(found, 1), np.delete(expected, 1), atol=1e-5)


def test_an_aggregate_markov_model_predicts_the_next_word(aggregate_markov_dir: Path) -> None:
    model = load_model(f"aggregate-markov:{aggregate_markov_dir}")
    for scored, found in zip(run(model), predict(model, 2), strict=True):
        np.testing.assert_array_equal(found.logprobs, scored.logprobs)
        known = [at for at in range(len(found.tokens)) if at not in (found.unknown or ())]
        np.testing.assert_allclose(found.logprobs[known], [found.logprobs[at] for at in known])
        best = [at for at in known if found.ranks[at] == 1]
        np.testing.assert_allclose(found.top_logprobs[best, 0], found.logprobs[best], atol=1e-3)
        assert (np.exp(found.top_logprobs[:, 0]) <= 1).all()


def test_a_server_gives_alternatives_and_no_entropies(toy_server: Faulty) -> None:
    model = load_model(f"remote:{toy_server.url}#toy")
    (scored,), (found,) = run(model, QUERIES[:1]), predict(model, 5, QUERIES[:1])
    np.testing.assert_array_equal(found.logprobs, scored.logprobs)
    assert np.isnan(found.entropies).all()
    assert all(len(row) == 5 for row in found.top_tokens)
    for at, token in enumerate(found.tokens):
        # The server lists the token of the text beside as many others as it was asked for.
        better = int((found.top_logprobs[at] > found.logprobs[at] + 1e-6).sum())
        assert found.ranks[at] in (better + 1, 0)
        assert (found.ranks[at] == 0) == (token not in found.top_tokens[at])


def test_models_without_distributions_say_so_in_one_line(classifier_dir: Path, monkeypatch) -> None:
    for name in ("uniform", f"classifier:{classifier_dir}"):
        with pytest.raises(ModelError, match="offers no distribution over the next token"):
            load_model(f"{name}(predictions=5)")
    with pytest.raises(ModelError, match="predictions is 0; expected"):
        load_model("trigram(predictions=0)")


def test_a_predictor_is_opened_by_its_spec_and_has_a_signature_of_its_own() -> None:
    model = load_model("trigram(predictions=5)")
    assert model.signature == load_model("trigram").signature[:-1] + ", predictions=5)"
    assert load_model(model.signature).signature == model.signature


def test_predictions_come_back_from_the_store_as_they_were(causal_dir: Path, tmp_path: Path) -> None:
    found = predict(load_model(f"causal:{causal_dir}(eos=True)"), 4)
    keys = b"".join(query.key for query in QUERIES)
    with ScoreStore(tmp_path / "scores.sqlite") as store:
        store.add_block("m", keys, found)
        stored = dict(store.iter_known("m", [query.key for query in QUERIES], lambda index: QUERIES[index].text))
    for index, expected in enumerate(found):
        output = stored[index]
        assert isinstance(output, TokenPredictions)
        assert (output.text, output.tokens, output.offsets) == (expected.text, expected.tokens, expected.offsets)
        assert output.top_tokens == expected.top_tokens
        assert output.unknown == expected.unknown
        for name in ("logprobs", "entropies", "entropies_after", "ranks", "cumulative", "top_logprobs"):
            np.testing.assert_array_equal(getattr(output, name), getattr(expected, name), err_msg=name)


def test_impossible_alternatives_are_none() -> None:
    numbers = np.zeros(1, np.float32)
    tops = np.array([[-0.5, -np.inf]], np.float32)
    stats = PredictionStats(numbers, numbers, np.ones(1, np.int64), numbers, np.array([[1, 0]]), tops)
    found = stats.add_to(TokenScores("a", ("a",), ((0, 1),), numbers), lambda word_id: ("<s>", "a")[word_id])
    # As they are read from the store, where -inf fills the rows with fewer alternatives.
    assert found.top_tokens == (("a",),)
