"""How an encoder learns another task first: a head of its own for that task, whose body's weights are then kept.

Pairs are read as one row: the premise as the tokenizer frames it, then the hypothesis without what stands before a
text. A word's tag is learnt at its first token. A tenth is held out to say how well the task was learnt.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_

from acceptability.errors import ModelError, TrainError, reason
from acceptability.models.files import file_hash
from acceptability.models.huggingface import padded
from acceptability.train.checkpoint import atomic
from acceptability.train.classifiers.finetuned_loop import optimiser_of, rising_and_falling
from acceptability.train.classifiers.finetuned_rows import dealt
from acceptability.train.classifiers.finetuned_start import Start, begun, opened
from acceptability.train.classifiers.intermediate import Pair, Tagged, Task, read_task
from acceptability.train.recipe import FILE
from acceptability.train.tick import Tell, Tick

if TYPE_CHECKING:
    from acceptability.train.classifiers.finetuned import Finetuned

_IGNORED = -100
_CLIP = 1.0
_HELD = 10
_MOST_HELD = 2000


@dataclass(frozen=True)
class _Rows:
    """Examples as tokens; the label of each row, or of each of its tokens."""

    ids: list[list[int]]
    labels: list[list[int]]


def learnt_first(recipe: Finetuned, start: Start, device: torch.device, tell: Tell) -> dict[str, object]:
    """Teach a copy of a network another task, give the network the copy's weights, and say how it went."""
    task = read_task(recipe.intermediate, recipe.tags)
    rows = _read(task, start.tokenizer, start.files.positions)
    order = np.random.default_rng(recipe.seed).permutation(len(rows.ids)).tolist()
    held = order[: min(_MOST_HELD, max(1, len(order) // _HELD))]
    rest = order[len(held) :]
    if not rest:
        raise TrainError(f"{task.name} has one example: there is nothing to learn from")
    net = _network(recipe, start, task).to(device)
    _learn(recipe, net, start, _some(rows, rest), tell)
    right = _right(net, _some(rows, held), start.padding)
    _give(net.cpu(), start)
    return {
        "learnt first": task.kind,
        "learnt first from": f"{task.name}#{file_hash(Path(recipe.intermediate).expanduser())[:8]}",
        "labels of that task": len(task.labels),
        "examples of that task": len(rest),
        "examples without a label": task.left_out,
        "accuracy in that task": round(right, 4),
    }


def write_encoder(recipe: Finetuned, out: Path, device: torch.device, tell: Tell) -> dict[str, object]:
    """Put an encoder that has learnt another task into a folder, without a head, for several classifiers to begin with.

    One that lies there already is not taught again.
    """
    if (out / FILE).is_file():
        told: dict[str, object] = json.loads((out / FILE).read_text(encoding="utf-8"))
        return told
    start = begun(recipe)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(recipe.seed)
        told = learnt_first(recipe, start, device, tell)
    body = {name: each for name, each in start.net.state_dict().items() if name not in start.new}
    start.net.save_pretrained(out, state_dict=body)
    start.tokenizer.save_pretrained(out)
    with atomic(out / FILE) as file:
        file.write(json.dumps(told, indent=1, ensure_ascii=False).encode())
    return told


def _network(recipe: Finetuned, start: Start, task: Task) -> Any:
    """Return the network with a head for the task, of the class that transformers has for the architecture."""
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    is_pairs = isinstance(task.examples[0], Pair)
    head = AutoModelForSequenceClassification if is_pairs else AutoModelForTokenClassification
    config = type(start.net.config).from_dict(start.net.config.to_dict())
    config.id2label = dict(enumerate(task.labels))
    config.label2id = {name: number for number, name in enumerate(task.labels)}
    torch.manual_seed(recipe.seed)
    try:
        return opened(head, start.files, config)[0]
    except (ValueError, ModelError) as error:
        raise TrainError(f"{start.files.name} cannot learn {task.kind}: {reason(error)}") from error


def _read(task: Task, tokenizer: Any, limit: int) -> _Rows:
    place = {name: number for number, name in enumerate(task.labels)}
    found = _Rows([], [])
    for each in task.examples:
        if isinstance(each, Pair):
            ids, labels = _of_pair(each, tokenizer), [place[each.label]]
        else:
            ids, labels = _of_words(each, place, tokenizer)
        # Nothing is measured on these: what is too long for the model is cut.
        found.ids.append(ids[:limit])
        found.labels.append(labels if isinstance(each, Pair) else labels[:limit])
    return found


def _of_pair(each: Pair, tokenizer: Any) -> list[int]:
    first = tokenizer(each.premise, verbose=False)["input_ids"]
    second = tokenizer(each.hypothesis, return_special_tokens_mask=True, verbose=False)
    begin = second["special_tokens_mask"].index(0) if 0 in second["special_tokens_mask"] else 0
    return [*first, *second["input_ids"][begin:]]


def _of_words(each: Tagged, place: dict[str, int], tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the tokens of a sentence, and the tag at the first token of each word."""
    coded = tokenizer(" ".join(each.words), return_offsets_mapping=True, verbose=False)
    labels, spans = [_IGNORED] * len(coded["input_ids"]), coded["offset_mapping"]
    begin, token = 0, 0
    for word, tag in zip(each.words, each.tags, strict=True):
        while token < len(spans) and not (spans[token][1] > begin and spans[token][1] > spans[token][0]):
            token += 1
        if token < len(spans) and tag and spans[token][0] < begin + len(word):
            labels[token] = place[tag]
            token += 1
        begin += len(word) + 1
    return coded["input_ids"], labels


def _some(rows: _Rows, places: Sequence[int]) -> _Rows:
    return _Rows([rows.ids[place] for place in places], [rows.labels[place] for place in places])


def _learn(recipe: Finetuned, net: Any, start: Start, rows: _Rows, tell: Tell) -> None:
    learning = dict(net.named_parameters())
    optimiser = optimiser_of(recipe, learning, start.new)
    steps = math.ceil(len(rows.ids) / recipe.batch) * recipe.intermediate_epochs
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rising_and_falling(recipe.warmup, steps))
    random, step = np.random.default_rng(recipe.seed), 0
    net.train()
    for _ in range(recipe.intermediate_epochs):
        for places in dealt([len(each) for each in rows.ids], recipe.batch, random):
            logits, labels = _asked(net, rows, places, start.padding)
            functional.cross_entropy(logits, labels, ignore_index=_IGNORED).backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(learning.values(), _CLIP)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            schedule.step()
            step += 1
            tell(Tick("learning first", step, steps))


def _asked(net: Any, rows: _Rows, places: Sequence[int], filler: int) -> tuple[Tensor, Tensor]:
    """Return logits, a row for each label that is asked for, and these labels."""
    ids, mask = padded([rows.ids[place] for place in places], filler)
    device = next(net.parameters()).device
    with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
        logits = net(input_ids=ids.to(device), attention_mask=mask.to(device)).logits.float()
    wanted = [rows.labels[place] for place in places]
    if logits.ndim == 2:
        return logits, torch.tensor([each[0] for each in wanted], device=device)
    width = ids.shape[1]
    filled = torch.tensor([[*each, *[_IGNORED] * (width - len(each))] for each in wanted], device=device)
    return logits.flatten(0, 1), filled.flatten()


def _right(net: Any, rows: _Rows, filler: int) -> float:
    """Return the share of labels that are told right."""
    net.eval()
    right, total = 0, 0
    with torch.no_grad():
        for begin in range(0, len(rows.ids), 64):
            places = range(begin, min(begin + 64, len(rows.ids)))
            logits, labels = _asked(net, rows, places, filler)
            told = labels != _IGNORED
            right += int((logits.argmax(-1) == labels)[told].sum())
            total += int(told.sum())
    if not total:
        raise TrainError("none of the sentences held out of the first task has a tag")
    return right / total


def _give(taught: Any, start: Start) -> None:
    """Give a network all weights of another that it has too, but for its own head."""
    from_there = dict(taught.named_parameters())
    with torch.no_grad():
        for name, each in start.net.named_parameters():
            there = from_there.get(name)
            if name not in start.new and there is not None and there.shape == each.shape:
                each.copy_(there)
