"""The recipe ``transformer`` from beginning to end: what is read, what the head pools, what is saved and reached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from acceptability.errors import TrainError, reason
from acceptability.measures.classification import matthews
from acceptability.models.classifier import Classifier, Tokens, open_model
from acceptability.models.huggingface import enough_memory
from acceptability.train.classifiers.course import Fitted
from acceptability.train.classifiers.examples import Examples
from acceptability.train.classifiers.finetuned_loop import Best, learnt
from acceptability.train.classifiers.finetuned_rows import Rows, check_ends, read_rows
from acceptability.train.classifiers.finetuned_start import Start, begun
from acceptability.train.classifiers.finetuned_states import OWN, pooled
from acceptability.train.classifiers.intermediate_teaching import learnt_first
from acceptability.train.tick import Tell
from acceptability.types import Query

if TYPE_CHECKING:
    from acceptability.train.classifiers.finetuned import Finetuned

_TOGETHER = 64


def taught(recipe: Finetuned, learn: Examples, held: Examples, out: Path, tell: Tell) -> Fitted:
    """Teach a network, save the weights that judge the held-out sentences best, and say what these reach."""
    start = begun(recipe)
    limit = min(recipe.longest or start.files.positions, start.files.positions)
    rows, kept = (read_rows(each, start.tokenizer, limit, cut=recipe.cut) for each in (learn, held))
    pooling = pooled(start.net, rows.longest, start.padding)
    if pooling not in ("first", "mean"):
        check_ends(rows, learn, start.padding)
        check_ends(kept, held, start.padding)
    _check_pooling(recipe, start, pooling)
    device = chosen_device(recipe.device)
    with randomness(recipe.seed, device), enough_memory(f"{start.files.name}: batch={recipe.batch}"):
        first = learnt_first(recipe, start, device, tell) if recipe.intermediate else {}
        best = learnt(recipe, start, rows, kept, device, tell)
    _save(recipe, start, best, out)
    return Fitted({"pooling": pooling, **first, **_facts(start, rows, kept, best)}, _reached(out, held, kept, device))


def chosen_device(name: str) -> torch.device:
    """Return where the network learns."""
    try:
        found = torch.device(("cuda" if torch.cuda.is_available() else "cpu") if name == "auto" else name)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError) as error:
        raise TrainError(f"the device {name!r} cannot be used here: {reason(error)}") from error
    return found


@contextmanager
def randomness(seed: int, device: torch.device) -> Iterator[None]:
    """Let whatever is random come from a seed, and leave nothing of it behind."""
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def _check_pooling(recipe: Finetuned, start: Start, seen: str) -> None:
    """Refuse an architecture that cannot do what is asked, or whose answer may depend on padding."""
    name = type(start.net).__name__
    if seen == OWN:
        raise TrainError(f"{name} of transformers pools {OWN}, perhaps padding too: take a model of another kind")
    if recipe.pooling not in ("auto", seen):
        can = "first or mean" if hasattr(start.net.config, "classifier_pooling") else seen
        raise TrainError(
            f"pooling is {recipe.pooling!r}, and {name} of transformers pools {seen!r}; it can do: {can}. "
            "Leave pooling=auto, or take another model."
        )


def _save(recipe: Finetuned, start: Start, best: Best, out: Path) -> None:
    """Save the best weights as transformers does, with the tokenizer."""
    net = start.net.cpu()
    with torch.no_grad():
        for name, each in net.named_parameters():
            each.requires_grad_(True)
            if name in best.weights:
                each.copy_(best.weights[name])
    net.to(getattr(torch, recipe.dtype))
    if start.files.gguf:  # the weights are not quantised any more
        net.config.__dict__.pop("quantization_config", None)
        net.hf_quantizer = None
    start.tokenizer.backend_tokenizer.no_truncation()
    start.tokenizer.backend_tokenizer.no_padding()
    net.save_pretrained(out)
    start.tokenizer.save_pretrained(out)


def _reached(out: Path, held: Examples, rows: Rows, device: torch.device) -> dict[str, float]:
    """Return what the saved classifier reaches, opened as anyone would open it; it must read what was taught."""
    model, queries = open_model(str(out), device=str(device)), [Query(text) for text in held.texts]
    assert isinstance(model, Classifier)
    if not rows.cut and [each.ids for each in model.encode(queries)] != list(rows.ids):
        raise TrainError(f"{out}: the tokenizer that was saved cuts sentences otherwise than the one that was given")
    order, predicted = sorted(range(len(rows)), key=lambda place: len(rows.ids[place])), np.empty(len(rows))
    for begin in range(0, len(order), _TOGETHER):
        places = order[begin : begin + _TOGETHER]
        said = model.run([Tokens(queries[place], rows.ids[place]) for place in places])
        predicted[places] = [bad < good for bad, good in (each.logits for each in said)]
    labels = np.array(rows.labels, np.float64)
    return {"mcc": matthews(predicted, labels), "accuracy": float((predicted == labels).mean())}


def _facts(start: Start, rows: Rows, held: Rows, best: Best) -> dict[str, object]:
    return {
        "begins with": start.files.signature,
        "architecture": type(start.net).__name__,
        "parameters": sum(each.numel() for each in start.net.parameters()),
        "parameters that learnt": sum(each.numel() for each in best.weights.values()),
        "tokens of the longest sentence": max(len(rows.longest), len(held.longest)),
        "sentences cut": rows.cut + held.cut,
        "mcc at each look": [round(each, 4) for each in best.looks],
        "steps to the best look": best.step,
    }
