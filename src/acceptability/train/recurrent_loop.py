"""How a recurrent network is taught: what it reads at each step, what it remembers, how it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from acceptability.models.cells import Dropouts, State
from acceptability.models.recurrent_networks import NOTHING, Network, turned
from acceptability.train.corpus import Corpus
from acceptability.train.loop import Learnt, Lesson, Moment, Pace, constant_then_linear, learn
from acceptability.train.recipe import Job
from acceptability.train.sequences import Reading, Sentences, Streams, text_of
from acceptability.train.team import Team
from acceptability.train.vocabulary import Encoded

if TYPE_CHECKING:
    from acceptability.models.vocabulary import Vocabulary
    from acceptability.train.recurrent import LSTM

_DEV_WORDS = 65_536


class Reader(nn.Module):
    """A network that reads pieces of text, and gives the mean loss of a word."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, reading: Reading, before: list[State] | None) -> tuple[Tensor, list[State]]:
        """Return the loss, the mean of two directions where there are two, and what the network then has in mind."""
        said, after = self.network(reading.inputs, reading.targets, before)
        loss = -said.mean()
        if self.network.shape.directions == 2:
            inputs, targets = _backwards(reading)
            loss = (loss - self.network(inputs, targets, stack=1)[0].mean()) / 2
        return loss, after


def _backwards(reading: Reading) -> tuple[Tensor, Tensor]:
    """Return what is read and foretold from the end: each word after those that follow it, the first one last."""
    filled = reading.targets.clamp(min=0)
    whole = turned(torch.cat([reading.inputs[:1], filled]), reading.lengths + 1)
    return whole[:-1], torch.where(reading.targets == NOTHING, NOTHING, whole[1:])


def taught(recipe: LSTM, job: Job, encoded: Encoded, team: Team) -> tuple[Network, Learnt]:
    """Return a trained network, and how its training went."""
    network = begun(recipe, encoded.counts).to(team.device)
    plan = planned(recipe, encoded.ids, team.size)
    lesson = lesson_of(recipe, network, plan, encoded.ids, team.device)
    dev = _measured(job.dev, encoded.vocabulary, network, team.device) if job.dev else None
    pace = Pace(
        steps=0 if recipe.minutes else recipe.epochs * plan.steps,
        minutes=recipe.minutes,
        schedule=constant_then_linear(1 - recipe.decay) if recipe.decay else lambda _: 1.0,
        clip=recipe.clip,
        evaluate_every=recipe.evaluate_every or plan.steps,
        patience=recipe.patience,
        save_every=recipe.save_every,
        seed=recipe.seed,
    )
    return network, learn(replace(lesson, dev=dev), pace, job, team)


def begun(recipe: LSTM, counts: NDArray[np.int64]) -> Network:
    """Return a network that has learnt nothing yet."""
    drop = Dropouts(
        recipe.dropout_words,
        recipe.dropout_inputs,
        recipe.dropout_between,
        recipe.dropout,
        recipe.dropout_recurrent,
        recipe.locked,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return Network(recipe.shape(counts), drop)


def planned(recipe: LSTM, ids: NDArray[np.int32], processes: int) -> Sentences | Streams:
    """Return which words are read together."""
    if recipe.by_sentences:
        return Sentences(ids, words=recipe.batch, longest=recipe.longest, seed=recipe.seed)
    return Streams(ids, words=recipe.batch, length=recipe.steps_back, processes=processes)


def lesson_of(
    recipe: LSTM, network: Network, plan: Sentences | Streams, ids: NDArray[np.int32], device: torch.device
) -> Lesson:
    """Return what is learnt, without a dev set."""
    text, memory = text_of(ids, device), dict[str, Tensor]()

    def batches(moment: Moment) -> list[Reading]:
        if recipe.by_sentences or moment.step % plan.steps == 0:
            memory.clear()
        return [text.rows(*plan.chosen(moment.step, moment.rank, moment.processes))]

    def loss(net: nn.Module, reading: Reading) -> Tensor:
        found: Tensor
        found, after = net(reading, remembered(memory, network))
        if not recipe.by_sentences:
            memory.update(kept(after))
        return found

    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.rate, fused=device.type == "cuda")
    return Lesson(Reader(network), [optimiser], batches, loss, len(ids) // plan.steps, memory=memory)


def kept(states: list[State]) -> dict[str, Tensor]:
    """Return states under names, cut off from how they came about."""
    return {
        f"{layer}/{part}": each.detach().clone()
        for layer, state in enumerate(states)
        for part, each in enumerate(state)
    }


def remembered(memory: dict[str, Tensor], network: Network) -> list[State] | None:
    """Return the states that ``kept`` named; None where there are none."""
    if not memory:
        return None
    parts = {"rnn": 1}.get(network.shape.cell, 2)
    return [tuple(memory[f"{layer}/{part}"] for part in range(parts)) for layer in range(network.shape.layers)]


def _measured(dev: Corpus, known: Vocabulary, network: Network, device: torch.device) -> Callable[[nn.Module], float]:
    """Return what tells the mean loss of a word of the dev set, each sentence's end among them."""
    ids = np.array([number for words in _numbered(dev, known) for number in words], np.int32)
    plan = Sentences(ids, words=_DEV_WORDS, longest=1 << 30, seed=0)
    text = text_of(ids, device)

    def loss(_: nn.Module) -> float:
        total = torch.zeros((), dtype=torch.float64, device=device)
        for step in range(plan.steps):
            reading = text.rows(*plan.chosen(step))
            total -= network(reading.inputs, reading.targets)[0].sum(dtype=torch.float64)
        return float(total) / len(ids)

    return loss


def _numbered(dev: Corpus, known: Vocabulary) -> Iterator[list[int]]:
    for sentence in dev.sentences():
        if words := known.cut(sentence)[0]:
            yield [*known.numbers(words), known.index["</s>"]]
