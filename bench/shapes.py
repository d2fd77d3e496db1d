"""The models that are timed: the shapes of well-known ones with random weights, and real tokenizers.

    python -m bench.shapes SCRATCH gpt2 bert

makes each model once in ``SCRATCH/models/NAME`` and writes beside it, in ``NAME.json``, how many multiplications one
token costs. Speed does not depend on what the weights are; agreement between tools does, so that the weights are
drawn with a fixed seed and scaled for scores that differ from token to token by a few nats, as a trained model's do.
A scratch folder made on one machine can be taken to another that has no network.
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
    """A model on disk, and how many weights one token is multiplied with.

    Args:
        body: Weights of all matrices between the embeddings and the head.
        head: Weights of the matrices that turn a position into logits.
    """

    name: str
    kind: str
    folder: str
    body: int
    head: int


def made(scratch: Path, name: str) -> Shape:
    """Return the shape of a name, made now if the scratch folder does not have it."""
    note = scratch / "models" / f"{name}.json"
    if not note.is_file():
        kind, maker = _MAKERS[name]
        net, tokenizer = maker(scratch / "vocabularies")
        folder = scratch / "models" / name
        _save(net, tokenizer, folder)
        head = _matrices(_head(net))
        shape = Shape(name, kind, "", _matrices(net) - head, head)
        note.write_text(json.dumps(asdict(shape), indent=1), encoding="utf-8")
    noted = json.loads(note.read_text(encoding="utf-8"))
    return Shape(**noted | {"folder": str((scratch / "models" / name).resolve())})


def _gpt2(vocabulary: Path, **sizes: Any) -> tuple[Any, Any]:
    from transformers import GPT2Config, GPT2LMHeadModel

    tokenizer = _wrapped(
        vocabularies.gpt2(vocabulary), bos_token=vocabularies.GPT2_END, eos_token=vocabularies.GPT2_END
    )
    ends: dict[str, Any] = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = GPT2Config(vocab_size=len(tokenizer), initializer_range=_BODY_SPREAD, **ends, **sizes)
    return _drawn(GPT2LMHeadModel, config), tokenizer


def _tiny(vocabulary: Path) -> tuple[Any, Any]:
    return _gpt2(vocabulary, n_layer=2, n_embd=128, n_head=2)


def _llama(vocabulary: Path) -> tuple[Any, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _wrapped(
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
    return _drawn(LlamaForCausalLM, config), tokenizer


def _bert(vocabulary: Path) -> tuple[Any, Any]:
    from transformers import BertConfig, BertForMaskedLM

    names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    tokenizer = _wrapped(vocabularies.bert(vocabulary), model_max_length=512, **names)
    return _drawn(BertForMaskedLM, BertConfig(vocab_size=len(tokenizer), initializer_range=_BODY_SPREAD)), tokenizer


def _roberta(vocabulary: Path) -> tuple[Any, Any]:
    from tokenizers import AddedToken
    from transformers import RobertaConfig, RobertaForMaskedLM

    names = {"cls_token": "<s>", "bos_token": "<s>", "sep_token": "</s>", "eos_token": "</s>"}
    mask = AddedToken("<mask>", lstrip=True, special=True)
    raw = vocabularies.roberta(vocabulary)
    tokenizer = _wrapped(raw, pad_token="<pad>", unk_token="<unk>", mask_token=mask, model_max_length=512, **names)
    config = RobertaConfig(
        vocab_size=50_265,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        initializer_range=_BODY_SPREAD,
    )
    return _drawn(RobertaForMaskedLM, config), tokenizer


_MAKERS: dict[str, tuple[str, Callable[[Path], tuple[Any, Any]]]] = {
    "gpt2": ("causal", _gpt2),
    "llama": ("causal", _llama),
    "bert": ("masked", _bert),
    "roberta": ("masked", _roberta),
    "tiny": ("causal", _tiny),
}
NAMES = tuple(_MAKERS)


def _wrapped(tokenizer: Any, **names: Any) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def _drawn(head: Any, config: Any) -> Any:
    """Return a model with seeded weights, its (tied) output embeddings scaled to the wanted spread of logits."""
    import torch

    torch.manual_seed(_SEED)
    net = head(config).eval()
    weight = net.get_output_embeddings().weight
    with torch.no_grad():
        # A normalised state has one unit of variance in each of its dimensions.
        weight.mul_(_LOGIT_SPREAD / math.sqrt(weight.shape[1]) / float(weight.std()))
    return net


def _save(net: Any, tokenizer: Any, folder: Path) -> None:
    net.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    # Newer releases of transformers write a class name here that older ones do not know; all know this one.
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(settings, indent=1), encoding="utf-8")


def _head(net: Any) -> Any:
    return next(part for name, part in net.named_children() if name in ("lm_head", "cls"))


def _matrices(part: Any) -> int:
    """Return the number of weights in the matrices of linear layers; embeddings are looked up, not multiplied."""
    layers = (each for each in part.modules() if type(each).__name__ in ("Linear", "Conv1D"))
    return sum(int(each.weight.numel()) for each in layers)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the shapes that are named on the command line."""
    reader = argparse.ArgumentParser(prog="python -m bench.shapes", description="Make the models that are timed.")
    reader.add_argument("scratch", type=Path)
    reader.add_argument("names", nargs="*", choices=NAMES, default=list(NAMES))
    given = reader.parse_args(arguments)
    for name in given.names:
        print(made(given.scratch, name))


if __name__ == "__main__":
    main()
