"""Models of transformers in memory: their scores are those of the files, their signatures follow the weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from acceptability import from_transformers, load_model, score
from acceptability.errors import ModelError
from acceptability.models.hf.loading import Checkpoint
from tiny import TEXTS

CLASSES = {
    "causal": "AutoModelForCausalLM",
    "masked": "AutoModelForMaskedLM",
    "seq2seq": "AutoModelForSeq2SeqLM",
    "classifier": "AutoModelForSequenceClassification",
}


def load(folder: Path, kind: str) -> tuple[Any, Any]:
    network = getattr(transformers, CLASSES[kind]).from_pretrained(folder)
    return network, transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("kind", CLASSES)
def test_the_scores_are_those_of_the_folder(kind: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(f"{kind}_dir")
    model = from_transformers(*load(folder, kind), name="mine")
    assert model.signature.startswith(f"{kind}:mine@")
    expected = score(TEXTS, load_model(f"{kind}:{folder}"))
    assert list(score(TEXTS, model).values.values()) == pytest.approx(list(expected.values.values()), abs=1e-4)


def test_the_users_network_is_left_alone(causal_dir: Path) -> None:
    network, tokenizer = load(causal_dir, "causal")
    network.train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    layers = [type(module) for module in network.modules()]
    score(TEXTS, from_transformers(network, tokenizer))
    assert network.training
    assert [type(module) for module in network.modules()] == layers
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_the_signature_follows_weights_configuration_and_tokenizer(causal_dir: Path) -> None:
    network, tokenizer = load(causal_dir, "causal")
    same = from_transformers(*load(causal_dir, "causal"), name="mine")
    first = from_transformers(network, tokenizer, name="mine")
    assert first.signature == same.signature
    # Truncation and padding, which others may have switched on, change no score.
    tokenizer.backend_tokenizer.enable_truncation(3)
    assert from_transformers(network, tokenizer, name="mine").signature == first.signature
    with torch.no_grad():
        next(network.parameters())[0, 0] += 1e-3
    assert from_transformers(network, tokenizer, name="mine").signature != first.signature
    network, tokenizer = load(causal_dir, "causal")
    tokenizer.add_tokens(["xyzzy"])
    assert from_transformers(network, tokenizer, name="mine").signature != first.signature


def test_a_network_that_was_trained_on_is_another_model(causal_dir: Path) -> None:
    network, tokenizer = load(causal_dir, "causal")
    model = from_transformers(network, tokenizer, name="mine")
    with torch.no_grad():
        next(network.parameters())[0, 0] += 1e-3
    with pytest.raises(ModelError, match="the weights of mine have changed; call from_transformers again"):
        score(TEXTS, model)


def test_options_are_those_of_the_kind(causal_dir: Path, masked_dir: Path) -> None:
    network, tokenizer = load(causal_dir, "causal")
    assert "bos=None" in from_transformers(network, tokenizer, bos=None).signature
    with pytest.raises(ModelError, match="a causal model does not take these options"):
        from_transformers(network, tokenizer, variant="pll")
    masked = from_transformers(*load(masked_dir, "masked"), variant="word_l2r")
    assert "variant='word_l2r'" in masked.signature
    with pytest.raises(ModelError, match="variant"):
        from_transformers(*load(masked_dir, "masked"), variant="wordl2r")


def test_what_is_no_model_of_transformers_is_refused(causal_dir: Path) -> None:
    network, tokenizer = load(causal_dir, "causal")
    with pytest.raises(ModelError, match="Linear is no model of transformers"):
        from_transformers(torch.nn.Linear(1, 1), tokenizer)
    with pytest.raises(ModelError, match="str is no fast tokenizer"):
        from_transformers(network, "gpt2")
    with pytest.raises(ModelError, match="does not say what it is for; give kind="):
        from_transformers(network.transformer, tokenizer)


def test_half_precision_is_in_the_signature(causal_dir: Path) -> None:
    network, tokenizer = load(causal_dir, "causal")
    model = from_transformers(network.to(torch.bfloat16), tokenizer)
    assert "dtype='bfloat16'" in model.signature
    with pytest.raises(ModelError, match="dtype"):
        from_transformers(network.to(torch.float64), tokenizer)


def test_it_is_a_checkpoint_in_all_that_models_ask_of_one() -> None:
    from acceptability.models.hf.in_memory import LoadedCheckpoint

    assert issubclass(LoadedCheckpoint, Checkpoint)
