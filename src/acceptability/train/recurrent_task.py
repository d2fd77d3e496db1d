"""The training of a recurrent network: batches of sentences or of running text, its loss, its state between steps.

The corpus is one sequence of word ids. At every position the network predicts the word there from the word before it
and its state; the word before the first of a sentence is ``<s>``. An epoch reads every word once, and which words a
step reads follows from the seed and the step alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from acceptability.models.recurrent.network import (
    IGNORE_INDEX,
    DropoutRates,
    LayerState,
    RecurrentNetwork,
    reverse_sequences,
)
from acceptability.text.words import END, START
from acceptability.train.corpus import Corpus, EncodedCorpus
from acceptability.train.recipe import TrainingJob
from acceptability.train.trainer import (
    ProcessGroup,
    StepContext,
    TrainingResult,
    TrainingSchedule,
    TrainingTask,
    constant_then_linear,
    train_network,
)

if TYPE_CHECKING:
    from acceptability.text.words import Vocabulary
    from acceptability.train.recurrent_recipes import LSTMRecipe

Ints = NDArray[np.int64]

_DEV_WORDS = 65_536
_UNLIMITED = 1 << 30


def train_recurrent(
    recipe: LSTMRecipe, job: TrainingJob, encoded: EncodedCorpus, process_group: ProcessGroup
) -> tuple[RecurrentNetwork, TrainingResult]:
    """Return a trained network, and the length and losses of its training."""
    network = build_network(recipe, encoded.counts).to(process_group.device)
    plan = plan_batches(recipe, encoded.ids, process_group.size)
    task = build_training_task(recipe, network, plan, encoded.ids, process_group.device)
    dev = _make_dev_loss(job.dev, encoded.vocabulary, network, process_group.device) if job.dev else None
    schedule = TrainingSchedule(
        steps=0 if recipe.minutes else recipe.epochs * plan.steps,
        minutes=recipe.minutes,
        rate_schedule=constant_then_linear(1 - recipe.decay_fraction) if recipe.decay_fraction else lambda _: 1.0,
        clip=recipe.gradient_clip,
        evaluate_every=recipe.evaluate_every or plan.steps,
        patience=recipe.patience,
        save_every=recipe.save_every,
        seed=recipe.seed,
    )
    return network, train_network(replace(task, dev=dev), schedule, job, process_group)


def build_network(recipe: LSTMRecipe, counts: NDArray[np.int64]) -> RecurrentNetwork:
    """Return an untrained network, whose weights are drawn with the recipe's seed."""
    drop = DropoutRates(
        recipe.dropout_words,
        recipe.dropout_inputs,
        recipe.dropout_hidden,
        recipe.dropout,
        recipe.dropout_recurrent,
        recipe.variational_dropout,
    )
    # Drawn on the CPU, so that the initial weights do not depend on the device.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return RecurrentNetwork(recipe.build_shape(counts), drop)


def plan_batches(recipe: LSTMRecipe, ids: NDArray[np.int32], processes: int) -> SentenceBatches | StreamBatches:
    """Return the plan of batches: of sentences, or of running text."""
    if recipe.sentence_level:
        return SentenceBatches(ids, words_per_step=recipe.batch_words, max_length=recipe.max_length, seed=recipe.seed)
    return StreamBatches(ids, words_per_step=recipe.batch_words, length=recipe.bptt_length, processes=processes)


def build_training_task(
    recipe: LSTMRecipe,
    network: RecurrentNetwork,
    plan: SentenceBatches | StreamBatches,
    ids: NDArray[np.int32],
    device: torch.device,
) -> TrainingTask:
    """Return the task without its dev loss: batches, loss with the state carried over, Adam."""
    text, memory = build_encoded_text(ids, device), dict[str, Tensor]()

    def batches(context: StepContext) -> list[SequenceBatch]:
        # Running text starts an epoch at its beginning, where the state of its end means nothing.
        if recipe.sentence_level or context.step % plan.steps == 0:
            memory.clear()
        return [text.take_rows(*plan.select_rows(context.step, context.rank, context.processes))]

    def loss(net: nn.Module, batch: SequenceBatch) -> Tensor:
        batch_loss: Tensor
        batch_loss, after = net(batch, unflatten_states(memory, network))
        if not recipe.sentence_level:
            memory.update(flatten_states(after))
        return batch_loss

    optimiser = torch.optim.Adam(network.parameters(), lr=recipe.learning_rate, fused=device.type == "cuda")
    return TrainingTask(RecurrentLMLoss(network), [optimiser], batches, loss, len(ids) // plan.steps, memory=memory)


class RecurrentLMLoss(nn.Module):
    """A recurrent network, with the mean cross-entropy per word and its new state as outputs."""

    def __init__(self, network: RecurrentNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: SequenceBatch, before: list[LayerState] | None) -> tuple[Tensor, list[LayerState]]:
        """Return the loss, averaged over directions where there are two, and the state of the forward network."""
        logprobs, after = self.network(batch.inputs, batch.targets, before)
        loss = -logprobs.mean()
        if self.network.shape.directions == 2:
            inputs, targets = reverse_batch(batch)
            loss = (loss - self.network(inputs, targets, stack=1)[0].mean()) / 2
        return loss, after


def reverse_batch(batch: SequenceBatch) -> tuple[Tensor, Tensor]:
    """Return the inputs and targets of the backward network: each row reversed within its own length."""
    # IGNORE_INDEX is negative and no word id; as padding any id will do.
    filled = batch.targets.clamp(min=0)
    reversed_words = reverse_sequences(torch.cat([batch.inputs[:1], filled]), batch.lengths + 1)
    return reversed_words[:-1], torch.where(batch.targets == IGNORE_INDEX, IGNORE_INDEX, reversed_words[1:])


def flatten_states(states: list[LayerState]) -> dict[str, Tensor]:
    """Return the states of all layers by name, detached, so that the next step does not backpropagate into this one."""
    return {
        f"{layer}/{part}": tensor.detach().clone()
        for layer, state in enumerate(states)
        for part, tensor in enumerate(state)
    }


def unflatten_states(memory: dict[str, Tensor], network: RecurrentNetwork) -> list[LayerState] | None:
    """Return the states that ``flatten_states`` named; None for the empty state."""
    if not memory:
        return None
    # An LSTM has a hidden state and a cell state; a QRNN its cell state and its last input.
    parts = {"rnn": 1}.get(network.shape.cell, 2)
    return [tuple(memory[f"{layer}/{part}"] for part in range(parts)) for layer in range(network.shape.layers)]


def _make_dev_loss(
    dev: Corpus, vocabulary: Vocabulary, network: RecurrentNetwork, device: torch.device
) -> Callable[[nn.Module], float]:
    """Return a function that computes the mean loss per word of the dev set, ``</s>`` included."""
    ids = np.array([word_id for sentence in _encode_sentences(dev, vocabulary) for word_id in sentence], np.int32)
    plan = SentenceBatches(ids, words_per_step=_DEV_WORDS, max_length=_UNLIMITED, seed=0)
    text = build_encoded_text(ids, device)

    # Without the wrapper that the loop passes: the dev loss is that of the forward direction, which gives the scores.
    def compute_dev_loss(_: nn.Module) -> float:
        total = torch.zeros((), dtype=torch.float64, device=device)
        for step in range(plan.steps):
            batch = text.take_rows(*plan.select_rows(step))
            total -= network(batch.inputs, batch.targets)[0].sum(dtype=torch.float64)
        return float(total) / len(ids)

    return compute_dev_loss


def _encode_sentences(dev: Corpus, vocabulary: Vocabulary) -> Iterator[list[int]]:
    for sentence in dev.sentences():
        if words := vocabulary.tokenize(sentence)[0]:
            yield [*vocabulary.to_ids(words), vocabulary.index["</s>"]]


@dataclass(frozen=True)
class SequenceBatch:
    """The text of a step.

    Args:
        inputs: The words that the network reads, (time, rows).
        targets: The words that it predicts after them; ``IGNORE_INDEX`` beyond the end of a row.
        lengths: The number of words in each row.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor


@dataclass(frozen=True)
class EncodedText:
    """A corpus as word ids on the device that trains: the word at each position, and the word before it."""

    targets: Tensor
    inputs: Tensor

    def take_rows(self, starts: Ints, lengths: Ints) -> SequenceBatch:
        """Return pieces of the text as the rows of a batch."""
        device = self.targets.device
        start, size = (torch.from_numpy(values).to(device) for values in (starts, lengths))
        # At least one position, also where a process has no words left in this step of running text.
        times = torch.arange(int(lengths.max(initial=1)), device=device).unsqueeze(1)
        # Positions beyond the end of a short row are clamped to the text, and masked below.
        positions = (start + times).clamp(max=len(self.targets) - 1)
        is_inside = times < size
        inputs = torch.where(is_inside, self.inputs[positions].long(), END)
        return SequenceBatch(inputs, torch.where(is_inside, self.targets[positions].long(), IGNORE_INDEX), size)


def build_encoded_text(ids: NDArray[np.int32], device: torch.device) -> EncodedText:
    """Return a corpus on a device; its sentences end with ``</s>``."""
    targets = torch.from_numpy(ids).to(device)
    # The roll puts the last word of the corpus, which is ``</s>``, before the first.
    previous = torch.roll(targets, 1)
    return EncodedText(targets, torch.where(previous == END, torch.full_like(previous, START), previous))


class SentenceBatches:
    """Batches of sentences of similar length (bucketing), in another order in each epoch.

    Args:
        words_per_step: The largest number of words in a batch, padding included, unless one sentence alone has more.
        max_length: A longer sentence is divided into pieces; the second one starts from an empty state and reads the
            last word of the first.
    """

    def __init__(self, ids: NDArray[np.int32], *, words_per_step: int, max_length: int, seed: int) -> None:
        self.starts, self.lengths = _cut_pieces(ids, max_length)
        self.seed = seed
        # The lengths in ascending order are the same in every epoch, so the batches are cut once.
        sorted_lengths = np.sort(self.lengths, kind="stable")
        self.batch_edges = _find_batch_edges(sorted_lengths, words_per_step)
        self._epoch_order = lru_cache(maxsize=1)(self._shuffle_epoch)

    @property
    def steps(self) -> int:
        """The number of steps in an epoch."""
        return len(self.batch_edges) - 1

    def select_rows(self, step: int, rank: int = 0, processes: int = 1) -> tuple[Ints, Ints]:
        """Return the first positions and the lengths of the rows that a process reads in a step.

        Every process gets equally many rows; where rows cannot be divided evenly, some are read twice.
        """
        order, batches = self._epoch_order(step // self.steps)
        batch = batches[step % self.steps]
        rows = order[self.batch_edges[batch] : self.batch_edges[batch + 1]]
        rows = np.resize(rows, -(-len(rows) // processes) * processes)[rank::processes]
        return self.starts[rows], self.lengths[rows]

    def _shuffle_epoch(self, epoch: int) -> tuple[Ints, Ints]:
        """Return the pieces by length, those of equal length shuffled, and the order of the batches."""
        random = np.random.default_rng([self.seed, epoch])
        order = np.lexsort((random.random(len(self.lengths)), self.lengths))
        return order, random.permutation(self.steps)


class StreamBatches:
    """Running text divided into parallel streams, of which each step reads the next words with the state carried over.

    Args:
        words_per_step: The number of words in a step.
        length: The words of a stream in a step: the length of truncated backpropagation through time.
        processes: The number of streams is divisible by the number of processes.
    """

    def __init__(self, ids: NDArray[np.int32], *, words_per_step: int, length: int, processes: int = 1) -> None:
        count = max(words_per_step // length // processes, 1) * processes
        self.size = -(-len(ids) // count)
        self.count, self.length, self.total = count, length, len(ids)

    @property
    def steps(self) -> int:
        """The number of steps in an epoch."""
        return -(-self.size // self.length)

    def select_rows(self, step: int, rank: int = 0, processes: int = 1) -> tuple[Ints, Ints]:
        """Return the first positions and the lengths of the rows that a process reads in a step."""
        offset = step % self.steps * self.length
        starts = np.arange(self.count)[rank::processes] * self.size
        # The last stream is shorter than the others, and may have no words left before the others end.
        ends = np.minimum(starts + np.minimum(offset + self.length, self.size), self.total)
        return starts + offset, np.maximum(ends - starts - offset, 0)


def _cut_pieces(ids: NDArray[np.int32], max_length: int) -> tuple[Ints, Ints]:
    """Return the first positions and the lengths, ``</s>`` included, of sentences and of the pieces of long ones."""
    ends = np.flatnonzero(ids == END) + 1
    starts = np.append(0, ends[:-1])
    counts = -(-(ends - starts) // max_length)
    sentence = np.repeat(np.arange(len(ends)), counts)
    piece_number = np.arange(len(sentence)) - np.repeat(np.cumsum(counts) - counts, counts)
    piece_starts = starts[sentence] + piece_number * max_length
    return piece_starts, np.minimum(ends[sentence] - piece_starts, max_length)


def _find_batch_edges(lengths: Ints, words_per_step: int) -> list[int]:
    """Return where batches begin among ascending lengths, such that rows × longest row stays within the budget."""
    edges = [0]
    while edges[-1] < len(lengths):
        # The longest row decides the padded size. No more rows can fit than if all were as long as the first.
        first = edges[-1]
        last = min(first + max(words_per_step // int(lengths[first]), 1), len(lengths))
        fits = np.arange(1, last - first + 1) * lengths[first:last] <= words_per_step
        edges.append(first + max(int(fits.sum()), 1))
    return edges
