"""How a network with a new head learns: step by step, with looks at what is held out, the best weights kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence

from acceptability.errors import TrainError
from acceptability.measures.classification import matthews
from acceptability.models.huggingface import padded
from acceptability.train.classifiers.finetuned_rows import Rows, dealt
from acceptability.train.classifiers.finetuned_start import Start
from acceptability.train.classifiers.finetuned_states import remembering, states_of
from acceptability.train.tick import Tell, Tick

if TYPE_CHECKING:
    from acceptability.train.classifiers.finetuned import Finetuned

_CLIP = 1.0
_TOGETHER = 64
Answer = Callable[[Rows, Sequence[int]], Tensor]
"""From some rows, by their places, to the logits of both labels."""


@dataclass
class Best:
    """The best look at the sentences held out, and the weights that were then there."""

    mcc: float = -math.inf
    step: int = 0
    looks: list[float] = field(default_factory=list)
    weights: dict[str, Tensor] = field(default_factory=dict)

    def see(self, mcc: float, step: int, learning: dict[str, Tensor]) -> None:
        """Remember a look, and the weights if it is the best."""
        self.looks.append(mcc)
        if mcc > self.mcc:
            self.mcc, self.step = mcc, step
            self.weights = {name: each.detach().to("cpu", copy=True) for name, each in learning.items()}

    def is_over(self, patience: int) -> bool:
        """Tell whether the last looks have brought nothing."""
        since = len(self.looks) - 1 - self.looks.index(max(self.looks))
        return bool(patience) and since >= patience


def learnt(recipe: Finetuned, start: Start, rows: Rows, held: Rows, device: torch.device, tell: Tell) -> Best:
    """Teach all weights, or those of the head on states that are computed once; return the best."""
    net = start.net.to(device)
    learning = {name: each for name, each in net.named_parameters() if not recipe.frozen or name in start.new}
    for name, each in net.named_parameters():
        each.requires_grad_(name in learning)
    if not recipe.frozen:
        return _loop(recipe, start, learning, (rows, held), _reading(net, start.padding), tell)
    states = {id(each): _all_states(net.eval(), each, start.padding, tell) for each in (rows, held)}
    with remembering(net) as body:

        def answer(some: Rows, places: Sequence[int]) -> Tensor:
            body.states = pad_sequence([states[id(some)][place] for place in places], True).to(device)
            return _reading(net, start.padding)(some, places)

        return _loop(recipe, start, learning, (rows, held), answer, tell)


def _reading(net: Any, filler: int) -> Answer:
    def answer(rows: Rows, places: Sequence[int]) -> Tensor:
        ids, mask = padded([rows.ids[place] for place in places], filler)
        device = next(net.parameters()).device
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits: Tensor = net(input_ids=ids.to(device), attention_mask=mask.to(device)).logits
        return logits.float()

    return answer


def _all_states(net: Any, rows: Rows, filler: int, tell: Tell) -> list[Tensor]:
    """Return the states of every row in its place, read in batches of like length."""
    order, found = sorted(range(len(rows)), key=lambda place: len(rows.ids[place])), dict[int, Tensor]()
    for begin in range(0, len(order), _TOGETHER):
        places = order[begin : begin + _TOGETHER]
        read = states_of(net, [rows.ids[place] for place in places], filler)
        found.update(zip(places, (each.clone() for each in read), strict=True))
        tell(Tick("reading", len(found), len(rows)))
    return [found[place] for place in range(len(rows))]


def _loop(
    recipe: Finetuned,
    start: Start,
    learning: dict[str, torch.nn.Parameter],
    both: tuple[Rows, Rows],
    answer: Answer,
    tell: Tell,
) -> Best:
    """Learn epoch by epoch, and look at what is held out several times in each."""
    rows, held = both
    optimiser = optimiser_of(recipe, learning, start.new)
    steps = math.ceil(len(rows) / recipe.batch)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, rising_and_falling(recipe.warmup, steps * recipe.epochs))
    best, step, random = Best(), 0, np.random.default_rng(recipe.seed)
    for _ in range(recipe.epochs):
        for number, places in enumerate(dealt([len(each) for each in rows.ids], recipe.batch, random), start=1):
            start.net.train()
            _loss(rows, places, answer).backward()  # type: ignore[no-untyped-call]
            clip_grad_norm_(learning.values(), _CLIP)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            schedule.step()
            step += 1
            tell(Tick("learning", step, steps * recipe.epochs))
            if number * recipe.looks // steps > (number - 1) * recipe.looks // steps:
                best.see(_look(start.net, held, answer), step, dict(learning))
                if best.is_over(recipe.patience):
                    return best
    return best


def _loss(rows: Rows, places: Sequence[int], answer: Answer) -> Tensor:
    logits = answer(rows, places)
    return functional.cross_entropy(logits, torch.tensor([rows.labels[place] for place in places]).to(logits.device))


def rising_and_falling(warmup: float, steps: int) -> Callable[[int], float]:
    """Return by how much a rate is multiplied at a step: it rises in a straight line, then falls to zero.

    >>> [rising_and_falling(0.5, 4)(step) for step in range(5)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    rising = round(warmup * steps)
    return lambda step: (step + 1) / rising if step < rising else (steps - step) / max(steps - rising, 1)


def optimiser_of(
    recipe: Finetuned, learning: dict[str, torch.nn.Parameter], new: frozenset[str]
) -> torch.optim.Optimizer:
    """Return AdamW: the head has a rate of its own, and only matrices decay."""
    groups = []
    for is_new, rate in ((True, recipe.head_rate or recipe.rate), (False, recipe.rate)):
        for is_matrix, decay in ((True, recipe.decay), (False, 0.0)):
            chosen = [each for name, each in learning.items() if (name in new, each.ndim > 1) == (is_new, is_matrix)]
            groups += [{"params": chosen, "lr": rate, "weight_decay": decay}] if chosen else []
    return torch.optim.AdamW(groups)


def _look(net: Any, held: Rows, answer: Answer) -> float:
    """Return Matthews' correlation on what is held out."""
    net.eval()
    order = sorted(range(len(held)), key=lambda place: len(held.ids[place]))
    gaps = np.empty(len(held))
    with torch.no_grad():
        for begin in range(0, len(order), _TOGETHER):
            places = order[begin : begin + _TOGETHER]
            logits = answer(held, places)
            gaps[places] = (logits[:, 1] - logits[:, 0]).cpu().numpy()
    if not np.isfinite(gaps).all():
        raise TrainError("the weights are no longer numbers: choose a lower rate")
    return matthews((gaps > 0).astype(np.float64), np.array(held.labels, np.float64))
