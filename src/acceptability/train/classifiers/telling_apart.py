"""How an encoder learns to tell real sentences from fakes: they are made once, kept, and read again and again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from acceptability.errors import TrainError
from acceptability.measures.classification import matthews
from acceptability.train.checkpoint import array
from acceptability.train.classifiers import loop
from acceptability.train.classifiers.pupil import Pupil, numbered, source
from acceptability.train.classifiers.reading import Texts
from acceptability.train.corpus import Corpus
from acceptability.train.loop import Learnt, Lesson, Moment, Pace, learn
from acceptability.train.recipe import Job
from acceptability.train.team import Team
from acceptability.train.tick import Tick

if TYPE_CHECKING:
    from acceptability.train.classifiers.encoders import RealFake

_TELL = 1000


@dataclass(frozen=True, eq=False)
class Pairs:
    """Sentences in numbers, and whether each is real (1) or fake (0).

    Args:
        tally: How many of each kind were made, and how many left out, by the reason.
    """

    texts: Texts
    labels: np.ndarray[Any, np.dtype[np.int8]]
    tally: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)


def made(recipe: RealFake, job: Job, pupil: Pupil) -> tuple[Pairs, Pairs | None]:
    """Return the sentences to learn from and those of the dev set, from the checkpoint if they are there."""
    state = job.checkpoints.latest()
    if state is None:
        tally: Counter[str] = Counter()
        found = {"read": _pairs(recipe, job.corpus, recipe.sentences, pupil, job, tally)}
        if job.dev is not None:
            found["held"] = _pairs(recipe, job.dev, recipe.held, pupil, job, Counter())
        parts = {name: each for key, pairs in found.items() for name, each in _parts(key, pairs).items()}
        state = job.save(0, parts, {"tally": dict(sorted(tally.items()))})
    read, held = (_kept(state.parts, key) for key in ("read", "held"))
    assert read is not None
    return replace(read, tally=cast(dict[str, int], state.facts["tally"])), held


def _parts(key: str, pairs: Pairs) -> dict[str, Any]:
    named: dict[str, np.ndarray[Any, Any]] = {
        "numbers": pairs.texts.numbers,
        "lengths": pairs.texts.lengths,
        "labels": pairs.labels,
    }
    return {f"{key}_{name}": array(each) for name, each in named.items()}


def _kept(parts: Any, key: str) -> Pairs | None:
    if f"{key}_labels" not in parts:
        return None
    numbers, lengths, labels = (np.load(parts[f"{key}_{name}"]) for name in ("numbers", "lengths", "labels"))
    return Pairs(Texts(numbers, lengths), labels)


def _pairs(recipe: RealFake, corpus: Corpus, most: int, pupil: Pupil, job: Job, tally: Counter[str]) -> Pairs:
    """Return the first sentences, real and fake, that a text gives."""
    from acceptability.train.classifiers.real_fake import real_fake

    labels: list[int] = []

    def texts() -> Iterator[str]:
        for text, label in real_fake(corpus, recipe.lm, seed=recipe.seed, limit=most or None, tally=tally):
            labels.append(label)
            if len(labels) % _TELL == 0:
                job.tell(Tick("making fakes", len(labels), most or None))
            yield text

    numbers = numbered(pupil, texts())
    if len(set(labels)) < 2:
        raise TrainError(f"the text gives {len(labels)} sentences, not both real and fake ones: give more text")
    return Pairs(numbers, np.array(labels, np.int8))


def taught(recipe: RealFake, job: Job, pupil: Pupil, pairs: tuple[Pairs, Pairs | None], team: Team) -> Learnt:
    """Teach a network to tell the sentences apart, until those of the dev set are told apart no better."""
    read, held = pairs
    plan = _plan(recipe, read)
    sentences, steps = source(pupil, read.texts), len(plan(0))
    labels = torch.from_numpy(read.labels).float().to(team.device)

    def batches(moment: Moment) -> list[Any]:
        places = plan(moment.step // steps)[moment.step % steps]
        places = places[moment.share(len(places))]
        return [(sentences.batch(places), labels[torch.tensor(places, device=team.device)])]

    def loss(net: nn.Module, batch: Any) -> torch.Tensor:
        return binary_cross_entropy_with_logits(net(*batch[0]).float(), batch[1])

    parameters = [each for each in pupil.network.parameters() if each.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=recipe.rate)
    dev = None if held is None else _measured(_lesson(pupil, held))
    lesson = Lesson(pupil.network, [optimiser], batches, loss, len(read.texts.numbers) // steps, dev)
    pace = Pace(
        steps=recipe.epochs * steps,
        evaluate_every=recipe.evaluate_every or steps,
        patience=recipe.patience if held is not None else 0,
        save_every=recipe.save_every,
        seed=recipe.seed,
    )
    return learn(lesson, pace, job, team)


def _plan(recipe: RealFake, pairs: Pairs) -> Callable[[int], Sequence[list[int]]]:
    """Return what gives the batches of an epoch, all of one size; the last one is kept at hand."""
    size, kept = min(recipe.batch, len(pairs)), dict[int, Sequence[list[int]]]()

    def plan(epoch: int) -> Sequence[list[int]]:
        if epoch not in kept:
            found = loop.batches(pairs.texts.lengths, size, np.random.default_rng([recipe.seed, epoch]))
            kept.clear()
            kept[epoch] = [places for places in found if len(places) == size]
        return kept[epoch]

    return plan


def _lesson(pupil: Pupil, pairs: Pairs) -> loop.Lesson:
    return loop.Lesson(source(pupil, pairs.texts), pairs.labels.astype(np.float64))


def _measured(held: loop.Lesson) -> Callable[[nn.Module], float]:
    """Return what falls as the MCC grows."""
    return lambda net: 1 - loop.reached(net, held)[0]


def unigrams(pupil: Pupil, read: Pairs) -> dict[str, int]:
    """Return how often each word stands in the real sentences."""
    is_real = np.repeat(read.labels == 1, read.texts.lengths)
    words = pupil.inputs.vocabulary.words
    found = np.bincount(read.texts.numbers[is_real], minlength=len(words)).tolist()
    return {word: number for word, number in zip(words, found, strict=True) if word not in ("<s>", "</s>")}


def facts(pupil: Pupil, read: Pairs, held: Pairs | None, learnt: Learnt) -> dict[str, object]:
    """Return what is worth knowing: how many sentences there were, and how well those of the dev set are told apart."""
    found: dict[str, object] = {
        "sentences, real and fake": len(read),
        "share of real ones": round(float(read.labels.mean()), 4),
        "sentences made, and left out": dict(read.tally),
        "steps": learnt.steps,
        "loss of a sentence at the end": round(learnt.loss, 4),
        "stopped early": learnt.stopped_early,
    }
    if held is None:
        return found
    logits = loop.judged(pupil.network, _lesson(pupil, held).source)
    correct = (logits > 0) == (held.labels > 0)
    mcc = matthews((logits > 0).astype(np.float64), held.labels.astype(np.float64))
    return found | {
        "sentences of the dev set, real and fake": len(held),
        "real/fake accuracy on the dev set": round(float(correct.mean()), 4),
        "real/fake MCC on the dev set": round(mcc, 4),
    }
