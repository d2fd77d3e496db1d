"""Sentences with parts of speech and trees, from files of Universal Dependencies (CoNLL-U), plain or compressed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from acceptability.errors import CorpusError
from acceptability.train.corpus import Corpus

_COLUMNS = 10


@dataclass(frozen=True, slots=True)
class Token:
    """A word of a tree.

    Args:
        part: Its universal part of speech, such as NOUN.
        head: The place of the word that it depends on, counted from 0; -1 for the root.
        relation: How it depends on it, without what stands after a colon.
        features: Its morphology, such as ``Number=Sing|Person=3``.
    """

    form: str
    part: str
    head: int
    relation: str
    features: str


def is_treebank(path: Path) -> bool:
    """Tell whether a file is CoNLL-U, by its name.

    >>> is_treebank(Path("en-ud-dev.conllu.xz")), is_treebank(Path("dev.txt.xz"))
    (True, False)
    """
    return ".conllu" in path.suffixes


def trees(corpus: Corpus) -> Iterator[tuple[Token, ...]]:
    """Yield the words of each sentence."""
    for path in corpus.files:
        tokens: list[Token] = []
        for number, line in enumerate(_lines(path), start=1):
            if not line.strip():
                yield from _whole(tokens, path, number)
                tokens = []
            elif not line.startswith("#") and (token := _token(line, path, number)):
                tokens.append(token)
        yield from _whole(tokens, path, number)


def _lines(path: Path) -> Iterator[str]:
    for block in Corpus((path,)).blocks():
        yield from block.decode().removesuffix("\n").split("\n")


def _token(line: str, path: Path, number: int) -> Token | None:
    """Return the word of a line; None for a contraction's own line, and for a word that is understood."""
    cells = line.rstrip("\r").split("\t")
    if len(cells) != _COLUMNS:
        raise CorpusError(f"{path}, line {number}: {len(cells)} columns; CoNLL-U has {_COLUMNS}, with tabs between")
    if not cells[0].isdecimal():
        return None
    if not cells[6].isdecimal():
        raise CorpusError(f"{path}, line {number}: the head is {cells[6]!r}; expected the number of a word, or 0")
    return Token(cells[1], cells[3], int(cells[6]) - 1, cells[7].partition(":")[0], cells[5])


def _whole(tokens: list[Token], path: Path, number: int) -> Iterator[tuple[Token, ...]]:
    """Yield a sentence, if there is one; each of its words must lead to its root."""
    if not tokens:
        return
    for place in range(len(tokens)):
        steps, at = 0, place
        while at >= 0:
            steps, at = steps + 1, tokens[at].head if tokens[at].head < len(tokens) else len(tokens)
            if steps > len(tokens) or at == len(tokens):
                raise CorpusError(f"{path}, before line {number}: the heads of this sentence make no tree")
    yield tuple(tokens)
