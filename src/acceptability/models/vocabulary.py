"""The words that a model knows, how it cuts text into words, and the file that keeps both beside its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from acceptability.errors import ModelError
from acceptability.models.splitting import RULES, spans, spelled
from acceptability.types import Span

FILE = "vocabulary.json"
UNKNOWN, START, END = 0, 1, 2
SPECIAL = ("<unk>", "<s>", "</s>")
"""The first three entries of every vocabulary: an unknown word, and the edges of a sentence."""


@dataclass(frozen=True)
class Vocabulary:
    """Words in the order of their numbers, the first three of which are ``<unk>``, ``<s>`` and ``</s>``.

    Args:
        rule: How text is cut into words, by its name in ``splitting``.
        lower: Whether words are put into lower case.

    >>> known = Vocabulary((*SPECIAL, "cats", "."), "split", lower=True)
    >>> known.cut("Cats purr.")
    (['cats', 'purr', '.'], [(0, 4), (5, 9), (9, 10)])
    >>> known.numbers(["cats", "purr", "."])
    [3, 0, 4]
    """

    words: tuple[str, ...]
    rule: str
    lower: bool

    def __post_init__(self) -> None:
        if self.words[:3] != SPECIAL:
            raise ModelError(f"a vocabulary begins with {', '.join(SPECIAL)}, not {', '.join(self.words[:3])}")
        if self.rule not in RULES:
            raise ModelError(f"no rule {self.rule!r} to cut words by; the rules are {', '.join(RULES)}")
        if len(self.index) < len(self.words):
            raise ModelError("a word stands twice in the vocabulary")

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def cut(self, text: str) -> tuple[list[str], list[Span]]:
        """Return the words of a text as the vocabulary spells them, and where they stand."""
        places = spans(text, self.rule)
        return [spelled(text[start:end], lower=self.lower) for start, end in places], places

    def numbers(self, words: Sequence[str]) -> list[int]:
        """Return the number of each word; unknown ones get that of ``<unk>``."""
        return [self.index.get(word, UNKNOWN) for word in words]

    def to_json(self) -> bytes:
        """Return the content of the file."""
        kept = {"words_by": self.rule, "lower": self.lower, "words": self.words}
        return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def read_vocabulary(folder: Path) -> Vocabulary:
    """Return the vocabulary of a model's folder."""
    path = folder / FILE
    try:
        kept = json.loads(path.read_bytes())
        return Vocabulary(tuple(map(str, kept["words"])), str(kept["words_by"]), bool(kept["lower"]))
    except OSError as error:
        raise ModelError(f"cannot read the vocabulary {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"{path} is no vocabulary of a model that was trained here: {error}") from error
