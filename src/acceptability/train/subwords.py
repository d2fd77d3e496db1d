"""Text as pieces of words: a byte-level BPE vocabulary learnt from a corpus, and the corpus in its numbers.

One token, ``<s>``, stands between sentences: it begins each, and its coming again says that one has ended.
Every text can be written in bytes, so no word is unknown. The first word of a text is
spelled as it is within one, with a space before it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import CorpusError, shorten
from acceptability.train.corpus import Corpus

EDGE, PAD, MASK = "<s>", "<pad>", "<mask>"
SPECIAL = (EDGE, PAD, MASK)
SMALLEST = 256 + len(SPECIAL)
"""The size of a vocabulary that has bytes alone."""
_AT_ONCE = 20_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pieces:
    """A corpus as numbers of subwords.

    Args:
        tokenizer: The vocabulary, of the package tokenizers.
        ids: All sentences one after the other, each with ``<s>`` before it.
    """

    tokenizer: Any
    ids: NDArray[np.uint16] | NDArray[np.int32]

    @property
    def edge(self) -> int:
        """The number of ``<s>``."""
        return int(self.tokenizer.token_to_id(EDGE))

    def counts(self) -> dict[str, int]:
        """Return how often each token stands in the corpus."""
        size = self.tokenizer.get_vocab_size()
        found = np.bincount(self.ids, minlength=size).tolist()
        return {self.tokenizer.id_to_token(number): found[number] for number in range(size)}


def learn_subwords(corpus: Corpus, size: int) -> Any:
    """Return the byte-level BPE vocabulary of a corpus."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_checked(corpus), trainer)
    found = tokenizer.get_vocab_size()
    if found < size:
        _log.warning("the vocabulary is to have %s subwords, and the corpus has %s: it gets these", size, found)
    return tokenizer


def encode(tokenizer: Any, corpus: Corpus, told: Callable[[int, int], None] = lambda *_: None) -> Pieces:
    """Return a corpus in numbers.

    Args:
        told: Is called with the sentences and the tokens that were read since the last call.
    """
    kind = np.uint16 if tokenizer.get_vocab_size() <= 1 << 16 else np.int32
    edge, blocks, sentences = tokenizer.token_to_id(EDGE), [], _checked(corpus)
    while texts := list(islice(sentences, _AT_ONCE)):
        coded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        blocks.append(_joined([each.ids for each in coded], edge).astype(kind))
        told(len(texts), len(blocks[-1]))
    return Pieces(tokenizer, np.concatenate(blocks))


def _joined(rows: Sequence[Sequence[int]], edge: int) -> NDArray[np.int64]:
    """Return all rows as one, each with the mark of an edge before it.

    >>> _joined([[5, 6], [7]], edge=0).tolist()
    [0, 5, 6, 0, 7]
    """
    total = sum(map(len, rows)) + len(rows)
    return np.fromiter(chain.from_iterable((edge, *row) for row in rows), np.int64, total)


def _checked(corpus: Corpus) -> Iterator[str]:
    """Yield the sentences; one that spells a mark of ours is an error."""
    for sentence in corpus.sentences():
        if "<" in sentence and (wrong := next((each for each in SPECIAL if each in sentence), None)):
            raise CorpusError(f"the corpus has {wrong} in {shorten(sentence)!r}; it is a mark of the model. Remove it.")
        yield sentence
