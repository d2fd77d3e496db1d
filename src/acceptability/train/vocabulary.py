"""From text to numbers: every word of a corpus is counted, the most frequent get a number, the others ``<unk>``."""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import CorpusError
from acceptability.models.splitting import RULES, spelled
from acceptability.models.vocabulary import END, SPECIAL, UNKNOWN, Vocabulary
from acceptability.train.corpus import Corpus

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Encoded:
    """A corpus in numbers.

    Args:
        ids: The number of each word, sentence after sentence; each sentence ends with that of ``</s>``.
        counts: How often each entry of the vocabulary stands there.
    """

    vocabulary: Vocabulary
    ids: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def oov(self) -> float:
        """Which share of the words the vocabulary does not have."""
        words = int(self.counts.sum() - self.counts[END])
        return float(self.counts[UNKNOWN]) / words


def encode(
    corpus: Corpus, size: int, rule: str, *, lower: bool, told: Callable[[int, int], None] = lambda *_: None
) -> Encoded:
    """Return a corpus in numbers, with the vocabulary of its most frequent words.

    Args:
        size: How many words are kept, besides ``<unk>``, ``<s>`` and ``</s>``; 0 keeps all.
        told: Is called with the bytes of disk and the words that were read since the last call.
    """
    raw, types = _numbered(corpus, rule, told)
    words = [spelled(word, lower=lower) for word in types]
    if wrong := {"<s>", "</s>"} & set(words):
        raise CorpusError(f"the corpus has {wrong.pop()} as a word; it marks the edge of a sentence. Remove it.")
    how_often = np.bincount(raw, minlength=len(types))
    vocabulary = most_frequent(dict(_summed(words[1:], how_often[1:].tolist())), size, rule, lower=lower)
    numbers = np.array([END, *vocabulary.numbers(words[1:])], np.int32)
    ids = numbers[raw]
    return Encoded(vocabulary, ids, np.bincount(ids, minlength=len(vocabulary)))


def most_frequent(counts: dict[str, int], size: int, rule: str, *, lower: bool) -> Vocabulary:
    """Return the vocabulary of the most frequent words; of equally frequent ones the first by spelling.

    >>> most_frequent({"b": 2, "a": 2, "c": 1}, 2, "spaces", lower=False).words
    ('<unk>', '<s>', '</s>', 'a', 'b')
    """
    known = [word for word in counts if word not in SPECIAL]
    if size > len(known):
        _log.warning("the vocabulary is to have %s words, and the corpus has %s: it gets these", size, len(known))
    ranked = sorted(known, key=lambda word: (-counts[word], word))
    return Vocabulary((*SPECIAL, *ranked[: size or None]), rule, lower)


def _numbered(corpus: Corpus, rule: str, told: Callable[[int, int], None]) -> tuple[NDArray[np.int32], list[str]]:
    """Return the words in the order of the corpus, numbered as they first come; 0 is the end of a sentence."""
    pattern = re.compile(rf"\n|{RULES[rule]}")
    index: defaultdict[str, int] = defaultdict(count().__next__)
    _ = index["\n"]
    blocks: list[NDArray[np.int32]] = []
    for block in corpus.blocks(lambda size: told(size, 0)):
        words = pattern.findall(block.decode())
        blocks.append(np.fromiter(map(index.__getitem__, words), np.int32, len(words)))
        told(0, len(words))
    raw = np.concatenate(blocks)
    # An empty line is no sentence.
    ends = raw == 0
    raw = raw[~(ends & np.append(True, ends[:-1]))]
    return raw, list(index)


def _summed(words: Sequence[str], counts: Sequence[int]) -> Counter[str]:
    total: Counter[str] = Counter()
    for word, number in zip(words, counts, strict=True):
        total[word] += number
    return total
