"""What a classifier of words reads: which words it knows, and where their vectors come from.

Vectors are learnt with the classifier (``""``), stand in a file (``glove.6B.300d.txt``), are those of a language model
that was trained here (``recurrent:DIR``), or are mixed from the states of its layers (``elmo:recurrent:DIR``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import TrainError
from acceptability.models import load_model
from acceptability.models.files import file_hash
from acceptability.models.recurrent import Recurrent
from acceptability.models.sentence_networks import mixed_layers
from acceptability.models.vocabulary import SPECIAL, Vocabulary
from acceptability.models.word_vectors import WordVectors, read_vectors
from acceptability.train.classifiers.cutting import Cutting

_ELMO = "elmo:"
_LM = "recurrent:"


@dataclass(frozen=True, eq=False)
class Inputs:
    """What stands for words before anything is learnt.

    Args:
        width: How many numbers a word vector has, or a layer of the language model.
        table: The vectors of all words of the vocabulary, which then stay as they are; None where they are learnt.
        lm: The language model whose states are mixed.
        facts: What is worth knowing of them.
    """

    vocabulary: Vocabulary
    width: int
    table: NDArray[Any] | None = None
    lm: Recurrent | None = None
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def sizes(self) -> dict[str, Any]:
        """What the shape of a network must say of its inputs."""
        if self.lm is None:
            return {"words": len(self.vocabulary), "width": self.width}
        lm = self.lm.net.shape
        return {"mixed": mixed_layers(lm.widths)[0], "width": self.width, "directions": lm.directions}


def inputs_of(vectors: str, texts: Iterable[str], cutting: Cutting, width: int) -> Inputs:
    """Return what stands for the words of sentences.

    Args:
        vectors: Where vectors come from, as the options of a recipe say it.
        width: How many numbers a vector has that is learnt.
    """
    if not vectors:
        return _learnt(texts, cutting, width)
    if vectors.startswith(_ELMO):
        return _states(vectors.removeprefix(_ELMO), texts)
    if vectors.startswith(_LM):
        return _of_language_model(vectors, texts)
    return _of_file(Path(vectors).expanduser(), texts, cutting)


def _learnt(texts: Iterable[str], cutting: Cutting, width: int) -> Inputs:
    counts = cutting.counts(texts)
    known = sorted((word for word in counts if counts[word] >= cutting.least), key=lambda word: (-counts[word], word))
    if not known:
        raise TrainError(f"no word stands {cutting.least} times in the sentences: give more, or a lower least=")
    vocabulary = Vocabulary((*SPECIAL, *known[: cutting.most or None]), cutting.rule, cutting.lower)
    return Inputs(vocabulary, width, facts=facts_of(vocabulary, width, counts))


def _of_file(path: Path, texts: Iterable[str], cutting: Cutting) -> Inputs:
    counts = cutting.counts(texts)
    found = read_vectors(path, counts, cutting.most)
    words = tuple(word for word in found.words if word not in SPECIAL)
    vocabulary = Vocabulary((*SPECIAL, *words), cutting.rule, cutting.lower)
    facts = {**facts_of(vocabulary, found.dimension, counts), "file of vectors": f"{path.name}@{file_hash(path)}"}
    if found.repeated:
        facts["lines left out, their word had come before"] = found.repeated
    return Inputs(vocabulary, found.dimension, _table(found, words), facts=facts)


def _table(found: WordVectors, words: Sequence[str]) -> NDArray[Any]:
    """Return the vectors in the order of a vocabulary; the edges of sentences are never looked up."""
    edges = np.zeros((2, found.dimension), found.table.dtype)
    rows = found.table if len(words) == len(found.words) else found.table[[found.index[word] for word in words]]
    return np.concatenate([found.unknown[None], edges, rows])


def _of_language_model(spelling: str, texts: Iterable[str]) -> Inputs:
    lm = _language_model(spelling)
    table = lm.net.table.detach().cpu().numpy()
    facts = facts_of(lm.vocabulary, table.shape[1], counts_of(lm.vocabulary, texts))
    return Inputs(lm.vocabulary, table.shape[1], table, facts={**facts, "language model": lm.signature})


def _states(spelling: str, texts: Iterable[str]) -> Inputs:
    lm = _language_model(spelling)
    mixed, width = mixed_layers(lm.net.shape.widths)
    facts = facts_of(lm.vocabulary, width * lm.net.shape.directions, counts_of(lm.vocabulary, texts))
    facts |= {"layers mixed": mixed, "directions": lm.net.shape.directions, "language model": lm.signature}
    return Inputs(lm.vocabulary, width, lm=lm, facts=facts)


def _language_model(spelling: str) -> Recurrent:
    lm = load_model(spelling) if spelling.startswith(_LM) else None
    if not isinstance(lm, Recurrent):
        raise TrainError(f"vectors={spelling!r}: only a model that was trained here can be taken: recurrent:FOLDER")
    return lm


def counts_of(vocabulary: Vocabulary, texts: Iterable[str]) -> Counter[str]:
    """Return how often each word stands in texts, in the spelling of a vocabulary."""
    return Cutting(vocabulary.rule, vocabulary.lower).counts(texts)


def facts_of(vocabulary: Vocabulary, width: int, counts: Mapping[str, int]) -> dict[str, object]:
    """Return what a model's card tells of words: how many are known, and how much of the sentences they are."""
    known = [word for word in counts if word in vocabulary.index]
    running = sum(counts[word] for word in known) / sum(counts.values())
    return {
        "words known": len(vocabulary) - len(SPECIAL),
        "numbers of a word": width,
        "share of different words known": round(len(known) / len(counts), 4),
        "share of running words known": round(running, 4),
    }
