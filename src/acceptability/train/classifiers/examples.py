"""Labelled sentences to learn from, and the tenth of them that is held out.

What is held out decides when to stop and which of several runs is best, so that a development set is only reported on.
It is drawn by source and label with a seed of its own, and is the same for every recipe and restart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import TrainError
from acceptability.signature import fingerprint
from acceptability.suites import load_suite
from acceptability.types import Sentence, Suite

SHARE = 0.1
SEED = 20_190_101
"""Of the draw that holds sentences out: one for all, so that every classifier of a data set is stopped by the same."""


@dataclass(frozen=True)
class Examples:
    """Sentences with labels, 1 for acceptable and 0 for not."""

    sentences: tuple[Sentence, ...]

    def __post_init__(self) -> None:
        unlabelled = [each.id for each in self.sentences if each.label is None]
        if unlabelled:
            raise TrainError(
                f"{len(unlabelled)} sentences have no label, {unlabelled[0]!r} first; a classifier needs 0 or 1"
            )

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences alone."""
        return tuple(each.text for each in self.sentences)

    @property
    def labels(self) -> tuple[int, ...]:
        """Their labels."""
        return tuple(int(each.label or 0) for each in self.sentences)

    @property
    def hash(self) -> str:
        """A fingerprint of texts and labels in their order."""
        return fingerprint([f"{each.label} {each.text}".encode() for each in self.sentences])

    def __len__(self) -> int:
        return len(self.sentences)

    def some(self, places: Iterable[int]) -> Examples:
        """Return the sentences at some places, in this order."""
        return Examples(tuple(self.sentences[place] for place in places))


def read_examples(data: Sequence[str | Suite]) -> Examples:
    """Return the labelled sentences of suites and tables, all together; both labels must be there."""
    suites = [load_suite(each) if isinstance(each, str) else each for each in data]
    found = Examples(tuple(sentence for suite in suites for sentence in suite.sentences))
    only = set(found.labels)
    if len(only) < 2:
        names = ", ".join(suite.name for suite in suites)
        which = "acceptable" if only == {1} else "unacceptable"
        raise TrainError(f"{names}: all {len(found):,} sentences are {which}; a classifier learns from both kinds")
    return found


def held_out(examples: Examples, share: float = SHARE, seed: int = SEED) -> tuple[Examples, Examples]:
    """Return the sentences to learn from and those held out, a share of every source and label."""
    random = np.random.default_rng(seed)
    places = defaultdict(list)
    for place, each in enumerate(examples.sentences):
        places[each.tags.get("source", ""), each.label].append(place)
    chosen: set[int] = set()
    left = 0.0
    for key in sorted(places, key=str):
        # What rounding took from one group the next ones give.
        wanted = share * len(places[key]) + left
        count = round(wanted)
        left = wanted - count
        chosen.update(random.permutation(places[key])[:count].tolist())
    return _both(examples.some(sorted(set(range(len(examples))) - chosen)), examples.some(sorted(chosen)))


def _both(rest: Examples, held: Examples) -> tuple[Examples, Examples]:
    for part, name in ((rest, "learn from"), (held, "hold out")):
        if len(set(part.labels)) < 2:
            raise TrainError(
                f"of the {len(rest) + len(held)} sentences those to {name} would have one label only: give more"
            )
    return rest, held
