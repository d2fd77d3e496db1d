"""Probes of encoders: their scores, and what must not change them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from acceptability import load_suite
from acceptability.errors import MeasureError, MissingExtra, ModelError
from acceptability.probing import probe
from acceptability.probing.representations import load_encoder
from acceptability.types import Sentence, Suite
from tiny import TEXTS


def cats(items: int = 12) -> Suite:
    """Sentences whose factors are a word, and the order of two words."""
    nouns = ["cat", "dog", "rain", "noon", "sleep", "read"]
    sentences = []
    for item in range(items):
        for licensor, word in (("1", "no"), ("0", "the")):
            for first, pair in (("1", "she he"), ("0", "he she")):
                text = f"{word} {nouns[item % 6]} {pair} {nouns[item // 2 % 6]} {'ever' if item % 2 else 'again'}."
                tags = {"item": str(item), "licensor": licensor, "order": first, "constant": "1"}
                tags |= {"half": "a" if item < items // 2 else "b"}
                sentences.append(Sentence(f"{item}/{licensor}/{first}", text, tags=tags))
    return Suite("cats", tuple(sentences))


def test_a_bag_of_words_predicts_words_and_not_their_order() -> None:
    scores = probe(cats(), "bag-of-words", factors=["licensor", "order"], resamples=0)
    words, order = scores
    assert (words.mcc, words.accuracy, words.layer, words.group) == (1.0, 1.0, 0, "all")
    assert order.mcc == pytest.approx(0.0, abs=0.2)
    assert words.selectivity == pytest.approx(1 - words.control)
    assert (words.test, words.train) == (48, 36)


def test_the_mcc_of_the_majority_is_zero_by_definition() -> None:
    for score in probe(cats(), "majority", factors=["licensor"], by="half"):
        assert (score.mcc, score.accuracy, score.control, score.selectivity) == (0.0, 0.5, None, None)


def test_a_factor_of_one_value_has_no_correlation_and_a_reason() -> None:
    for encoder in ("majority", "bag-of-words"):
        licensor, constant = probe(cats(), encoder, factors=["licensor", "constant"], resamples=0)
        assert licensor.mcc is not None
        assert constant.mcc is None
        assert constant.reason == "all test sentences have constant=1"
        assert constant.accuracy == 1.0


def test_a_control_of_items_shows_that_nothing_leaks() -> None:
    scores = probe(cats(24), "bag-of-words", factors=["licensor"], control="items", resamples=0)
    assert scores[0].control < 0.3 < scores[0].mcc


def test_all_layers_of_a_masked_model_and_groups(masked_dir: Path) -> None:
    pytest.importorskip("torch")
    encoder = f"masked:{masked_dir}"
    scores = probe(cats(), encoder, factors=["licensor", "order"], by="half", resamples=40)
    assert [(score.layer, score.group, score.factor) for score in scores][:4] == [
        (0, "a", "licensor"),
        (0, "a", "order"),
        (0, "b", "licensor"),
        (0, "b", "order"),
    ]
    assert {score.layer for score in scores} == {0, 1, 2}
    assert all(score.mcc == 0 for score in scores if score.layer == 0), "the first token is the same in all sentences"
    last = [score for score in scores if score.layer == 2]
    assert max(score.mcc for score in last) > 0.5
    assert all(score.low <= score.mcc <= score.high for score in last)
    assert ".first|" in last[0].signature
    again = probe(cats(), encoder, factors=["licensor", "order"], by="half", layers=[-1], resamples=40)
    assert again == last


def test_held_out_groups_are_tested_by_others(causal_dir: Path) -> None:
    pytest.importorskip("torch")
    scores = probe(cats(), f"causal:{causal_dir}", factors=["licensor"], held_out="half", layers=[1], resamples=0)
    assert [(score.trained, score.group, score.train, score.test) for score in scores] == [
        ("others", "a", 24, 24),
        ("others", "b", 24, 24),
    ]


@pytest.mark.parametrize("pooling", ["first", "last", "mean", "max"])
def test_padding_and_order_change_no_vector(pooling: str, masked_dir: Path, causal_dir: Path) -> None:
    pytest.importorskip("torch")
    for name in (f"masked:{masked_dir}", f"causal:{causal_dir}"):
        encoder = load_encoder(name, pooling)
        result = np.empty((3, len(TEXTS), 32))
        for indices, vectors in encoder.vectors(TEXTS, encoder.layers):
            result[:, indices] = vectors
        for index, text in enumerate(TEXTS):
            ((_, alone),) = encoder.vectors([text], encoder.layers)
            assert result[:, index] == pytest.approx(alone[:, 0], abs=1e-4)


def test_vectors_are_those_of_transformers(masked_dir: Path) -> None:
    torch = pytest.importorskip("torch")
    from transformers import AutoModel, AutoTokenizer

    tokenizer, net = AutoTokenizer.from_pretrained(masked_dir), AutoModel.from_pretrained(masked_dir).eval()
    text = TEXTS[1]
    with torch.no_grad():
        states = net(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
    for pooling, expected in (
        ("first", [state[0, 0] for state in states]),
        ("mean", [state[0, 1:-1].mean(0) for state in states]),
    ):
        ((_, result),) = load_encoder(f"masked:{masked_dir}", pooling).vectors([text], (0, 1, 2))
        assert result[:, 0] == pytest.approx(torch.stack(expected).numpy(), abs=1e-5)


def test_trained_classifiers_of_both_kinds(classifier_dir: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    scores = probe(cats(), f"classifier:{classifier_dir}", factors=["licensor"], resamples=0)
    assert [score.layer for score in scores] == [0, 1, 2]
    ours = make_cbow(tmp_path / "judge")
    (score,) = probe(cats(), f"classifier:{ours}", factors=["licensor"], resamples=0)
    assert (score.layer, score.mcc) == (0, 1.0)
    with pytest.raises(ModelError, match="a sentence vector of its own"):
        load_encoder(f"classifier:{ours}", "mean")


def make_cbow(folder: Path) -> Path:
    """Save an untrained bag of word vectors."""
    import torch

    from acceptability.models.sentence import SentenceNetworkShape
    from acceptability.models.sentence.network import build_sentence_network, serialize_sentence_network
    from acceptability.text.words import SPECIAL_WORDS, Vocabulary

    words = sorted({word.strip(".") for sentence in cats().sentences for word in sentence.text.split()})
    known = Vocabulary((*SPECIAL_WORDS, *words, "."), "split", lower=False)
    torch.manual_seed(0)
    shape = SentenceNetworkShape(network="cbow", words=len(known), width=24, pool="mean", top=5)
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(serialize_sentence_network(build_sentence_network(shape)))
    (folder / "vocabulary.json").write_bytes(known.to_json())
    return folder


def test_word_vectors_are_max_pooled(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("the 1 0\ncat 0 2\nNo 3 -1\n", encoding="utf-8")
    ((_, result),) = load_encoder(f"glove:{path}").vectors(["The cat.", "No cat"], (0,))
    assert result[0].tolist() == [[1, 2], [3, 2]]
    with pytest.raises(ModelError, match="none of the words of 'a dog'"):
        list(load_encoder(f"glove:{path}").vectors(["a dog"], (0,)))


def test_invalid_options_are_refused(masked_dir: Path) -> None:
    with pytest.raises(MeasureError, match="expected words or items"):
        probe(cats(), "majority", factors=["licensor"], control="sentences")
    with pytest.raises(ModelError, match="no layers that can be probed"):
        probe(cats(), "uniform", factors=["licensor"])
    pytest.importorskip("torch")
    with pytest.raises(ModelError, match="no layer 7; its layers are 0 to 2"):
        probe(cats(), f"masked:{masked_dir}", factors=["licensor"], layers=[7])


def test_a_missing_extra_is_named_before_the_encoder_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setattr("acceptability.probing.probes.load_encoder", lambda *_: pytest.fail("loaded"))
    with pytest.raises(MissingExtra, match=r"needs scikit-learn. Install with: pip install 'acceptability\[stats\]'"):
        probe(cats(), "bag-of-words", factors=["licensor"])
    (majority,) = probe(cats(), "majority", factors=["licensor"])
    assert majority.mcc == 0


def test_a_sentence_that_is_too_long_is_named(masked_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("acceptability.models.hf.encoder._TEXTS_PER_CHUNK", 20)
    given = cats()
    longer = replace(given.sentences[30], text="no cat " * 40)
    sentences = (*given.sentences[:30], longer, *given.sentences[31:])
    with pytest.raises(ModelError, match=r"cannot read 'no cat no cat .*: it has 82 tokens"):
        probe(Suite("long", sentences), f"masked:{masked_dir}", factors=["licensor"])


def test_the_published_npi_sentences(data: Path) -> None:
    """As in the paper, words give away licensor and NPI, but not the scope."""
    result = probe(
        load_suite("npi"),
        "bag-of-words",
        factors=["licensor", "npi_present", "scope"],
        by="environment",
        limit=400,
        control=None,
        resamples=0,
    )
    assert len(result) == 27
    by_name = {(item.factor, item.group): item for item in result}
    assert by_name["licensor", "only"].mcc > 0.95
    assert by_name["npi_present", "only"].mcc > 0.95
    assert abs(by_name["scope", "only"].mcc) < 0.3
    assert by_name["scope", "simplequestions"].reason == "all test sentences have scope=1"
