"""The text that a user gives beside models: a column of Table 1 for each, and treebanks for Table 6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from acceptability.studies.sense import sense_suite
from acceptability.studies.treebank import is_treebank
from acceptability.train.corpus import Corpus, open_corpus
from acceptability.types import Suite

_PARTS = ("train", "dev", "valid", "validation", "test")
"""Names that tell nothing without the folder above them."""


@dataclass(frozen=True)
class Text:
    """Plain text, and what its column is called."""

    name: str
    corpus: Corpus


@dataclass(frozen=True)
class Texts:
    """What the user gave beside models.

    Args:
        plain: Texts for perplexities, in the order in which they were given.
        sense: Sense and nonsense, of which the sense comes from a treebank.
    """

    plain: tuple[Text, ...] = ()
    sense: Suite | None = None


def given(places: Sequence[str | Path]) -> Texts:
    """Return the user's texts, one for each place, and what their treebanks (CoNLL-U files) give."""
    if not places:
        return Texts()
    banks = tuple(path for path in open_corpus(places).files if is_treebank(path))
    plain = {Path(place): _plain(place) for place in places}
    names = dict(zip(plain, short_names(list(plain)), strict=True))
    texts = tuple(Text(names[place], Corpus(files)) for place, files in plain.items() if files)
    return Texts(texts, sense_suite(Corpus(banks)) if banks else None)


def _plain(place: str | Path) -> tuple[Path, ...]:
    return tuple(path for path in open_corpus([place]).files if not is_treebank(path))


def short_names(places: Sequence[Path]) -> list[str]:
    """Return a name for each file or folder: its own, with as many folders above it as tell it apart.

    >>> short_names([Path("/a/mix/test"), Path("/a/wiki"), Path("/b/wiki"), Path("/b/held-out.txt")])
    ['mix/test', 'a/wiki', 'b/wiki', 'held-out.txt']
    """
    whole = [place.resolve().parts for place in places]
    lengths = [2 if parts[-1] in _PARTS else 1 for parts in whole]
    while True:
        names = ["/".join(parts[-length:]) for parts, length in zip(whole, lengths, strict=True)]
        longer = [length + (names.count(name) > 1) for name, length in zip(names, lengths, strict=True)]
        longer = [min(length, len(parts)) for length, parts in zip(longer, whole, strict=True)]
        if longer == lengths:
            return names
        lengths = longer
