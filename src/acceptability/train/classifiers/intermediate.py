"""Another labelled task that an encoder learns first: sentence pairs with labels, or words with tags.

After Phang et al. (2018), as Warstadt et al. (2019, the NPI paper) do with MNLI and with the categories of CCGbank.
Three kinds of file are read, each perhaps as .gz or .xz:

- sentence pairs, .tsv with a header or .jsonl: ``premise``, ``hypothesis``, ``label``, or, as MNLI itself has them,
  ``sentence1``, ``sentence2``, ``gold_label``; a pair whose label is ``-`` has none, and is left out;
- words with tags, CoNLL-U (.conllu): UPOS, or XPOS;
- words with supertags, any other text: a sentence a line, its words as ``word|category`` or ``word|POS|category``.
"""

from __future__ import annotations

import gzip
import json
import lzma
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from acceptability.errors import SuiteError, TrainError
from acceptability.text import lines

UPOS, XPOS = "upos", "xpos"
TAGS = (UPOS, XPOS)
_COLUMNS = {UPOS: 3, XPOS: 4}
_CONLLU = 10
_NAMES = {
    "premise": ("premise", "sentence1"),
    "hypothesis": ("hypothesis", "sentence2"),
    "label": ("label", "gold_label"),
}
LABELS = ("entailment", "neutral", "contradiction")
_NUMBERS = {str(number): name for number, name in enumerate(LABELS)}
_NONE = "-"
_PACKED = (".gz", ".xz")
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class Pair:
    """Two sentences, and what the first says of the second."""

    premise: str
    hypothesis: str
    label: str


@dataclass(frozen=True)
class Tagged:
    """The words of a sentence, each with its tag; one without a tag has an empty one."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Task:
    """What is learnt first.

    Args:
        examples: Sentence pairs, or tagged sentences: all of one kind.
        labels: Everything that is told apart, in alphabetical order.
        left_out: How many pairs had no label.
    """

    name: str
    kind: str
    examples: tuple[Pair, ...] | tuple[Tagged, ...]
    labels: tuple[str, ...]
    left_out: int = 0


def read_task(place: str | Path, tags: str = UPOS) -> Task:
    """Return the task in a file; what is wrong with it is said with its line.

    Args:
        tags: Which tags of a CoNLL-U file are learnt: upos or xpos.
    """
    path = Path(place).expanduser()
    content, suffix = _content(path)
    try:
        if suffix in (".tsv", ".jsonl"):
            return _of_pairs(path.name, list(_pairs(content, path.name, suffix)))
        read = _conllu(content, path.name, tags) if suffix == ".conllu" else _supertags(content, path.name)
        return _of_tagged(path.name, tags if suffix == ".conllu" else "supertags", list(read))
    except SuiteError as error:
        raise TrainError(str(error)) from error


def _content(path: Path) -> tuple[bytes, str]:
    """Return the bytes of a file, and its ending without that of the compression."""
    try:
        with _opened(path) as opened:
            content = opened.read(_MOST_BYTES + 1)
    except (OSError, lzma.LZMAError, zlib.error, EOFError) as error:
        raise TrainError(f"cannot read {path}: {error}") from error
    if len(content) > _MOST_BYTES:
        raise TrainError(f"{path} holds more than {_MOST_BYTES:,} bytes, which no task has")
    return content, Path(path.stem).suffix if path.suffix in _PACKED else path.suffix


def _opened(path: Path) -> IO[bytes] | gzip.GzipFile | lzma.LZMAFile:
    if path.suffix == ".gz":
        return gzip.open(path)
    return lzma.open(path) if path.suffix == ".xz" else path.open("rb")


def _of_pairs(name: str, pairs: list[Pair | None]) -> Task:
    found = tuple(each for each in pairs if each is not None)
    labels = tuple(sorted({each.label for each in found}))
    if len(labels) < 2:
        raise TrainError(
            f"{name} has {len(found)} labelled pairs with {len(labels)} labels: there is nothing to tell apart"
        )
    return Task(name, "sentence pairs", found, labels, len(pairs) - len(found))


def _of_tagged(name: str, what: str, found: list[Tagged]) -> Task:
    labels = tuple(sorted({tag for each in found for tag in each.tags if tag}))
    if len(labels) < 2:
        raise TrainError(f"{name} has {len(found)} sentences with {len(labels)} tags: there is nothing to tell apart")
    return Task(name, f"words with tags ({what})", tuple(found), labels)


def _pairs(content: bytes, name: str, suffix: str) -> Iterator[Pair | None]:
    """Yield sentence pairs; None for one without a label."""
    for number, row in _json_rows(content, name) if suffix == ".jsonl" else _tab_rows(content, name):
        cells = {}
        for meaning, names in _NAMES.items():
            column = next((each for each in names if each in row), None)
            if column is None:
                raise TrainError(f"{name}, line {number}: there is no {' or '.join(names)}; there is {', '.join(row)}")
            cells[meaning] = str(row[column]).strip()
        label = _NUMBERS.get(cells["label"], cells["label"])
        if label == _NONE:
            yield None
            continue
        if label not in LABELS:
            raise TrainError(f"{name}, line {number}: label is {label!r}; expected {', '.join(LABELS)}, or - for none")
        if not (cells["premise"] and cells["hypothesis"]):
            raise TrainError(f"{name}, line {number}: premise or hypothesis is empty")
        yield Pair(cells["premise"], cells["hypothesis"], label)


def _tab_rows(content: bytes, name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the rows of a file with a header; there is no quoting, as in MNLI's files."""
    rows = lines(content, name)
    header = next(rows, (0, ""))[1].split("\t")
    for number, line in rows:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise TrainError(f"{name}, line {number}: {len(cells)} columns; the header has {len(header)}")
        yield number, dict(zip(header, cells, strict=True))


def _json_rows(content: bytes, name: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, line in lines(content, name):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise TrainError(f"{name}, line {number}: not JSON: {error}") from error
        if not isinstance(row, dict):
            raise TrainError(f"{name}, line {number}: expected an object with premise, hypothesis and label")
        yield number, row


def _conllu(content: bytes, name: str, tags: str) -> Iterator[Tagged]:
    """Yield the sentences of a treebank: its words, not the ranges that they share in writing, nor empty nodes."""
    if tags not in TAGS:
        raise TrainError(f"tags is {tags!r}; expected {' or '.join(TAGS)}")
    words: list[tuple[str, str]] = []
    for number, line in enumerate(content.decode("utf-8").split("\n"), start=1):
        if not line.strip():
            yield from _sentence(words)
            words = []
        elif not line.startswith("#"):
            cells = line.rstrip("\r").split("\t")
            if len(cells) != _CONLLU:
                raise TrainError(f"{name}, line {number}: {len(cells)} columns; CoNLL-U has {_CONLLU}")
            if cells[0].isdigit():
                tag = cells[_COLUMNS[tags]]
                words.append((cells[1], "" if tag == "_" else tag))
    yield from _sentence(words)


def _supertags(content: bytes, name: str) -> Iterator[Tagged]:
    for number, line in lines(content, name):
        words = []
        for token in line.split():
            parts = token.rsplit("|", 2 if token.count("|") > 1 else 1)
            if len(parts) < 2 or not all(parts):
                raise TrainError(
                    f"{name}, line {number}: {token!r} is no word with a supertag; expected word|category or "
                    "word|POS|category. Sentence pairs end in .tsv or .jsonl, treebanks in .conllu."
                )
            words.append((parts[0], parts[-1]))
        yield from _sentence(words)


def _sentence(words: list[tuple[str, str]]) -> Iterator[Tagged]:
    if words:
        yield Tagged(*(tuple(each) for each in zip(*words, strict=True)))
