"""The models that are timed: the shapes of well-known models with random weights, and real tokenizers.

    python -m bench.shapes SCRATCH gpt2 bert

makes each model once in ``SCRATCH/models/NAME`` and writes the number of multiplications per token into ``NAME.json``
beside it. Speed does not depend on the values of the weights, but agreement between tools does. So the weights are
drawn with a fixed seed, and scaled so that scores differ from token to token by a few nats, as those of a trained model
do. A scratch folder made on one machine can be copied to another that has no network.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench import vocabularies

_SEED = 20
_BODY_SPREAD = 0.04
_LOGIT_SPREAD = 2.5
"""The standard deviation of the logits over the vocabulary, in nats."""


@dataclass(frozen=True)
class Shape:
    """A model on disk, and the number of weights that one token is multiplied with.

    Args:
        body: Weights of all matrices between the embeddings and the head.
        head: Weights of the matrices that compute the logits of a position.
    """

    name: str
    kind: str
    folder: str
    body: int
    head: int


def make_shape(scratch: Path, name: str) -> Shape:
    """Return the shape of a name; the model is made if the scratch folder does not have it."""
    info_file = scratch / "models" / f"{name}.json"
    if not info_file.is_file():
        kind, maker = _MAKERS[name]
        net, tokenizer = maker(scratch / "vocabularies")
        folder = scratch / "models" / name
        _save(net, tokenizer, folder)
        head = _count_matrix_weights(_head(net))
        shape = Shape(name, kind, "", _count_matrix_weights(net) - head, head)
        info_file.write_text(json.dumps(asdict(shape), indent=1), encoding="utf-8")
    info = json.loads(info_file.read_text(encoding="utf-8"))
    return Shape(**info | {"folder": str((scratch / "models" / name).resolve())})


def _gpt2(vocabulary: Path, merge_count: int | None = None, **sizes: Any) -> tuple[Any, Any]:
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = _wrap_tokenizer(
        vocabularies.gpt2(vocabulary, merge_count), bos_token=vocabularies.GPT2_END, eos_token=vocabularies.GPT2_END
    )
    ends: dict[str, Any] = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = GPT2Config(vocab_size=len(tokenizer), initializer_range=_BODY_SPREAD, **ends, **sizes)
    return _make_random_model(GPT2LMHeadModel, config), tokenizer


def _tiny(vocabulary: Path) -> tuple[Any, Any]:
    return _gpt2(vocabulary, n_layer=2, n_embd=128, n_head=2)


def _minimal(vocabulary: Path) -> tuple[Any, Any]:
    # Of the tiny shape, the head over 50,257 tokens is nearly all of the time.
    return _gpt2(vocabulary, 3_839, n_layer=1, n_embd=16, n_head=1)


def _llama(vocabulary: Path) -> tuple[Any, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _wrap_tokenizer(
        vocabularies.gpt2(vocabulary), bos_token=vocabularies.GPT2_END, eos_token=vocabularies.GPT2_END
    )
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
        max_position_embeddings=1024,
        initializer_range=_BODY_SPREAD,
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    return _make_random_model(LlamaForCausalLM, config), tokenizer


def _bert(vocabulary: Path) -> tuple[Any, Any]:
    from transformers import BertConfig, BertForMaskedLM

    names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    tokenizer = _wrap_tokenizer(vocabularies.bert(vocabulary), model_max_length=512, **names)
    return _make_random_model(
        BertForMaskedLM, BertConfig(vocab_size=len(tokenizer), initializer_range=_BODY_SPREAD)
    ), tokenizer


def _roberta(vocabulary: Path) -> tuple[Any, Any]:
    from tokenizers import AddedToken
    from transformers import RobertaConfig, RobertaForMaskedLM

    names = {"cls_token": "<s>", "bos_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"}
    mask = AddedToken("<mask>", lstrip=True, special=True)
    raw = vocabularies.roberta(vocabulary)
    tokenizer = _wrap_tokenizer(
        raw, pad_token="<pad>", unk_token="<unk>", mask_token=mask, model_max_length=512, **names
    )
    config = RobertaConfig(
        vocab_size=50_265,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        initializer_range=_BODY_SPREAD,
    )
    return _make_random_model(RobertaForMaskedLM, config), tokenizer


_MAKERS: dict[str, tuple[str, Callable[[Path], tuple[Any, Any]]]] = {
    "gpt2": ("causal", _gpt2),
    "llama": ("causal", _llama),
    "bert": ("masked", _bert),
    "roberta": ("masked", _roberta),
    "tiny": ("causal", _tiny),
    "minimal": ("causal", _minimal),
}
NAMES = tuple(_MAKERS)


def _wrap_tokenizer(tokenizer: Any, **names: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _make_random_model(head: Any, config: Any) -> Any:
    """Return a model with seeded weights; the (tied) output embeddings are scaled to the right spread of logits."""
    import torch

    torch.manual_seed(_SEED)
    net = head(config).eval()
    weight = net.get_output_embeddings().weight
    with torch.no_grad():
        # A hidden state after layer normalisation has variance 1 in each dimension.
        weight.mul_(_LOGIT_SPREAD / math.sqrt(weight.shape[1]) / float(weight.std()))
    return net


def _save(net: Any, tokenizer: Any, folder: Path) -> None:
    net.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # Newer releases of transformers write a class name here that older ones do not know; all of them know this one.
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")


def _head(net: Any) -> Any:
    return next(part for name, part in net.named_children() if name in ("lm_head", "cls"))


def _count_matrix_weights(part: Any) -> int:
    """Return the number of weights in the matrices of linear layers; embeddings are looked up, not multiplied."""
    layers = (module for module in part.modules() if type(module).__name__ in ("Linear", "Conv1D"))
    return sum(int(layer.weight.numel()) for layer in layers)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the models that are named on the command line."""
    reader = argparse.ArgumentParser(prog="python -m bench.shapes", description="Make the models that are timed.")
    reader.add_argument("scratch", type=Path)
    reader.add_argument("names", nargs="*", choices=NAMES, default=list(NAMES))
    given = reader.parse_args(arguments)
    for name in given.names:
        print(make_shape(given.scratch, name))


if __name__ == "__main__":
    main()
