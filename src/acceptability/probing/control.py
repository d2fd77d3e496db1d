"""Control tasks: labels without linguistic sense, as frequent as those of a factor (after Hewitt and Liang 2019).

Their control gives every word type a random label, which a probe can only learn by heart. A factor belongs to whole
sentences, most of which are new in the test: a random label for each sentence could not be learnt at all. Hence two
controls. ``words`` gives every word type a random number, and a sentence the mean of its words' numbers; the line that
keeps the factor's balance divides sentences into classes. It can be told for new sentences by whoever knows their words
by heart, and by nothing else. ``items`` gives every item (paradigm) a random label: on new items nobody can tell it, so
that anything clearly above 0 shows that test sentences were seen in training. (It may well lie below 0 in folds of few
items: what is frequent in training is then rare in the test.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from acceptability.probing.bags import words_of
from acceptability.types import Floats


def control_labels(
    kind: str, texts: Sequence[str], items: NDArray[np.int64], labels: NDArray[np.int64], seed: str
) -> NDArray[np.int64]:
    """Return the labels of a control task, with as many sentences of each class as the factor's own, or nearly so.

    Args:
        seed: Whatever tells this labelling from others.
    """
    return _cut(CONTROLS[kind](texts, items, seed), labels)


def _by_words(texts: Sequence[str], items: NDArray[np.int64], seed: str) -> Floats:
    numbers: dict[str, float] = {}
    found = []
    for text in texts:
        words = words_of(text) or [text]
        for word in words:
            if word not in numbers:
                numbers[word] = _number(word, seed)
        found.append(float(np.mean([numbers[word] for word in words])))
    return np.array(found)


def _by_items(texts: Sequence[str], items: NDArray[np.int64], seed: str) -> Floats:
    return np.array([_number(str(item), seed) for item in items.tolist()])


CONTROLS: dict[str, Callable[[Sequence[str], NDArray[np.int64], str], Floats]] = {
    "words": _by_words,
    "items": _by_items,
}


def _number(name: str, seed: str) -> float:
    """Return a number from 0 to 1 that depends on nothing but a name and the seed."""
    digest = blake2b(f"{seed}\n{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _cut(numbers: Floats, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return classes of numbers, the lowest first, as large as those of the labels; equal numbers stay together."""
    shares = np.cumsum(np.bincount(labels))[:-1] / len(labels)
    lines = np.quantile(numbers, shares, method="higher")
    return np.searchsorted(lines, numbers, side="right").astype(np.int64)
