"""Which states of a network its head reads, and a head taught on states that were computed once.

What an architecture's class pools is not looked up but seen: states are put in place of the body's, and those count
on which the answer depends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from acceptability.models.huggingface import padded

OWN = "in a way of its own"


class Remembered(nn.Module):
    """Stands in for the body of a network, and gives states that were computed before."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.pooler = getattr(body, "pooler", None)
        self.activation = getattr(body, "pooler_activation", None)  # of ALBERT, whose pooler is one matrix
        self.states: Tensor | None = None

    def forward(self, *_: object, **__: object) -> Any:
        """Return the states, whatever is read."""
        from transformers.modeling_outputs import BaseModelOutputWithPoolingAndCrossAttentions

        assert self.states is not None
        return BaseModelOutputWithPoolingAndCrossAttentions(
            last_hidden_state=self.states,  # type: ignore[arg-type]
            pooler_output=self._pooled(self.states),
        )

    def _pooled(self, states: Tensor) -> Any:
        if self.pooler is None:
            return None
        return self.activation(self.pooler(states[:, 0])) if self.activation is not None else self.pooler(states)


@contextmanager
def remembering(net: Any) -> Iterator[Remembered]:
    """Put remembered states in place of a network's body."""
    body = getattr(net, net.base_model_prefix)
    stand_in = Remembered(body)
    setattr(net, net.base_model_prefix, stand_in)
    try:
        yield stand_in
    finally:
        setattr(net, net.base_model_prefix, body)


def pooled(net: Any, row: Sequence[int], filler: int) -> str:
    """Return which states the head reads of a row that is filled up: the first, the last, or the mean of all."""
    if not stands_alone(net, row, filler):
        return OWN
    ids, mask = padded([row, [*row, filler, filler]], filler)
    ids, mask = ids[:1], mask[:1]
    width = net.config.get_text_config().hidden_size
    states = torch.randn(1, ids.shape[1], width, generator=torch.Generator().manual_seed(0), requires_grad=True)
    with remembering(net) as body:
        body.states = states
        logits = net.eval()(input_ids=ids, attention_mask=mask).logits
    (gradient,) = torch.autograd.grad(logits[0, 1], states)
    places = gradient[0].abs().sum(-1).nonzero().flatten().tolist()
    known = {"first": [0], "last": [len(row) - 1], "mean": list(range(len(row)))}
    return next((name for name, each in known.items() if each == places), OWN)


def stands_alone(net: Any, row: Sequence[int], filler: int) -> bool:
    """Tell whether the head says the same of remembered states as it does above the body."""
    ids, mask = padded([row], filler)
    with torch.no_grad():
        whole = net.eval()(input_ids=ids, attention_mask=mask).logits
        states = states_of(net, [row], filler)
        with remembering(net) as body:
            body.states = states[0].unsqueeze(0)
            try:
                alone = net(input_ids=ids, attention_mask=mask).logits
            except (RuntimeError, TypeError, AttributeError):  # a head that asks the body for more than states
                return False
    return alone.shape == whole.shape and bool(torch.allclose(alone, whole, atol=1e-4, rtol=1e-3))


def states_of(net: Any, rows: Sequence[Sequence[int]], filler: int) -> list[Tensor]:
    """Return the last states of every token of some rows, read together."""
    ids, mask = padded(rows, filler)
    ids, mask = ids.to(net.device), mask.to(net.device)
    with torch.no_grad():
        found = getattr(net, net.base_model_prefix)(input_ids=ids, attention_mask=mask).last_hidden_state.float().cpu()
    return [states[: len(row)] for states, row in zip(found, rows, strict=True)]
