"""What fine-tuning begins with: a language model's files, and a network of its weights with a head of two labels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from acceptability.errors import ModelError, SpellingError, TrainError, reason
from acceptability.models.huggingface import Checkpoint, checkpoint
from acceptability.models.named import delivered
from acceptability.spelling import read_located

if TYPE_CHECKING:
    from acceptability.train.classifiers.finetuned import Finetuned

LABELS = ("unacceptable", "acceptable")
_KINDS = ("causal", "masked", "classifier")
_FRAMING = ("bos", "eos")
_SCORING = ("variant", "dtype", "device", "spaces")
"""Options of a language model that change how it scores, and nothing in its weights or what it reads."""
_DROPOUT = re.compile(r"dropout|pdrop")
_POOLING = {"first": "cls", "mean": "mean"}


@dataclass(frozen=True)
class Start:
    """A network that has learnt language, and no labels yet.

    Args:
        new: The names of the weights that the files do not have: the head, or what of it begins at random.
    """

    files: Checkpoint
    tokenizer: Any
    net: Any
    new: frozenset[str]

    @property
    def padding(self) -> int:
        """The token that fills up the shorter rows."""
        return int(self.net.config.get_text_config().pad_token_id)


def begun(recipe: Finetuned) -> Start:
    """Return the network that a recipe begins with; the head's first weights are drawn with its seed."""
    kind, place, options = located(recipe.model)
    files = checkpoint(kind, place, allow_pickle=bool(options.get("allow_pickle", False)))
    config, tokenizer = files.config, files.tokenizer
    _frame(tokenizer, _start_token(kind, options, tokenizer), bool(options.get("eos", False)))
    if config.is_encoder_decoder:
        raise TrainError(f"{files.name} has an encoder and a decoder; this recipe takes models of one of them")
    _set_padding(config, tokenizer, files.name)
    _set_up(config, recipe)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        net, new = _headed(files, config)
    return Start(files, tokenizer, net, new)


def located(model: str) -> tuple[str, str, Mapping[str, object]]:
    """Return kind, place and options of what is to be taught; a place alone has no options."""
    if model in delivered():
        model = delivered()[model].spelling()
    kind, colon, _ = model.partition(":")
    if not colon or Path(model).expanduser().exists():
        return "transformer", model, {}
    kind, place, options = read_located(model)
    if kind not in _KINDS:
        raise TrainError(f"{model} is no transformer: a folder, a name on the Hub, {': or '.join(_KINDS)}: is taken")
    strange = [name for name in options if name not in (*_FRAMING, *_SCORING, "allow_pickle")]
    if strange:
        raise SpellingError(f"{model}: {', '.join(strange)} has no meaning here; bos, eos and allow_pickle have")
    return kind, place, options


def _start_token(kind: str, options: Mapping[str, object], tokenizer: Any) -> str | None:
    """Return the token that a causal model's texts begin with; None where the tokenizer frames them by itself."""
    if kind != "causal":
        return None
    found = options.get("bos", tokenizer.bos_token)
    return str(found) if found is not None else None


def _frame(tokenizer: Any, start: str | None, end: bool) -> None:
    """Let a tokenizer put a start token before every text, and an end token after it, unless it does already."""
    from tokenizers.processors import TemplateProcessing

    coded = tokenizer("a", return_special_tokens_mask=True)
    marks, names = coded["special_tokens_mask"], tokenizer.convert_ids_to_tokens(coded["input_ids"])
    first, last = marks.index(0), len(marks) - marks[::-1].index(0)
    before, after = names[:first], names[last:]
    if start and before[:1] != [start]:
        before = [start, *before]
    if end and after[-1:] != [tokenizer.eos_token]:
        after = [*after, tokenizer.eos_token]
    if (before, after) == (names[:first], names[last:]):
        return
    known = {name: tokenizer.convert_tokens_to_ids(name) for name in {*before, *after}}
    if lacking := [name for name in known if name is None or name not in tokenizer.get_vocab()]:
        raise ModelError(f"the tokenizer has no token {lacking[0]!r} to frame a text with; choose another bos or eos")
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=[*before, "$A", *after], special_tokens=sorted(known.items())
    )


def _set_padding(config: Any, tokenizer: Any, name: str) -> None:
    """Agree on one token for padding: the tokenizer's, the network's, or else the end token."""
    text = config.get_text_config()
    for found in (tokenizer.pad_token_id, text.pad_token_id, tokenizer.eos_token_id):
        if found is not None and 0 <= found < text.vocab_size:
            config.pad_token_id = text.pad_token_id = found
            tokenizer.pad_token = tokenizer.convert_ids_to_tokens(found)
            return
    raise TrainError(f"{name} has neither a padding token nor an end token: name a pad_token in tokenizer_config.json")


def _set_up(config: Any, recipe: Finetuned) -> None:
    """Write into a network's description what the classifier will be."""
    config.id2label = dict(enumerate(LABELS))
    config.label2id = {name: number for number, name in enumerate(LABELS)}
    config.problem_type = "single_label_classification"
    if hasattr(config, "classifier_pooling") and recipe.pooling in ("auto", *_POOLING):
        config.classifier_pooling = _POOLING.get(recipe.pooling, "cls")
    for name, value in list(vars(config).items()):
        if _DROPOUT.search(name) and (value is None or type(value) in (int, float)):
            setattr(config, name, recipe.dropout)


def _headed(files: Checkpoint, config: Any) -> tuple[Any, frozenset[str]]:
    """Return the network with a head for sentences, and the names of those weights that are new."""
    from transformers import AutoModelForSequenceClassification

    net, new = opened(AutoModelForSequenceClassification, files, config)
    return net, frozenset(_checked(files, net, new))


def opened(opener: Any, files: Checkpoint, config: Any) -> tuple[Any, set[str]]:
    """Return a network of a class of transformers, and the names of the weights that its files do not have."""
    from safetensors import SafetensorError

    place: dict[str, Any] = {"gguf_file": files.gguf} if files.gguf else {}
    if not files.gguf and not files.trust.pickle:
        place["use_safetensors"] = True
    try:
        net, info = opener.from_pretrained(
            files.folder,
            config=config,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **place,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"cannot teach {files.name} in {files.folder}: {reason(error)}") from error
    return net, {*info["missing_keys"], *(each[0] for each in info["mismatched_keys"])}


def _checked(files: Checkpoint, net: Any, new: set[str]) -> set[str]:
    """Return the weights of the head; refuse a body that the files do not have."""
    body = [name for name in sorted(new) if name.startswith(f"{net.base_model_prefix}.") and ".pooler." not in name]
    if body:
        raise ModelError(f"{files.name} has no weights for {', '.join(body[:3])}: there is nothing to begin with")
    output = [name for name, each in net.named_parameters() if not name.startswith(f"{net.base_model_prefix}.")]
    last = output[-1].rpartition(".")[0]
    return new | {name for name in output if name.startswith(f"{last}.")}
